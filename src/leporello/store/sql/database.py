"""What the shared SQL code asks of a database: transactions, and the few words in which dialects differ.

Statements are written with `?` placeholders. A `write` transaction sees the newest state and holds what it has locked
until it ends; a `read` transaction sees one snapshot. Both commit at the end of the block and roll back on any
exception, and both raise only `StoreError`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]


class Transaction(Protocol):
    """Statements inside one transaction."""

    def row(self, sql: str, *params: Any) -> Row | None:
        """The first row of the answer."""

    def rows(self, sql: str, *params: Any) -> list[Row]:
        """All rows of the answer."""

    def run(self, sql: str, *params: Any) -> int:
        """Run a statement and return how many rows it changed."""

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of parameters."""


class Database(Protocol):
    """A SQL database."""

    @property
    def url(self) -> str: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def for_update(self) -> str:
        """What a SELECT says at its end to lock its rows; empty where the whole database has one writer."""

    def now(self) -> int:
        """The time in milliseconds, by the clock that all users of this database share."""

    def write(self, durable: bool = True) -> AbstractContextManager[Transaction]:
        """A transaction that is on disk when it ends.

        One that is not `durable` does not wait for the disk: a power cut may undo it, as a whole. It is for what can be
        made again.
        """

    def read(self) -> AbstractContextManager[Transaction]: ...

    def close(self) -> None: ...
