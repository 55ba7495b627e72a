"""What the SQL code needs from a database. SQLite and PostgreSQL each implement it.

Statements are written with `?` placeholders. A `write` transaction sees the newest state and holds its locks until it
ends; a `read` transaction sees one snapshot. Both commit at the end of the block and roll back on any exception, and
both raise only `StoreError`s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]

_BATCH = 500

Progress: TypeAlias = Callable[[int, int], None]
"""Called during long work with how much is done, and of how much."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store is opened."""

    wait_seconds: float = 10.0
    """How long a call waits for another process before it raises `StoreBusy`."""
    read_only: bool = False
    synchronous: str = "FULL"
    """SQLite only: `FULL` (an acknowledged write survives a power cut) or `NORMAL`."""
    connections: int = 8
    """PostgreSQL only: the most connections this process opens."""
    clock: Callable[[], float] = time.time


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

        Without `durable` it does not wait for the disk: a power cut may undo it, as a whole. Use that only for data
        that can be derived again.
        """

    def read(self) -> AbstractContextManager[Transaction]: ...

    def close(self) -> None: ...


def integer(tx: Transaction, sql: str, *params: Any) -> int:
    """The one number a query answers with; 0 for NULL or no row. PostgreSQL adds up BIGINTs as Decimals."""
    row = tx.row(sql, *params)
    return int(row[0]) if row and row[0] is not None else 0


def rows_in(tx: Transaction, sql: str, values: Sequence[Any], *params: Any) -> Iterator[Row]:
    """The rows of a query that ends with `IN`, for any number of values."""
    for start in range(0, len(values), _BATCH):
        some = values[start : start + _BATCH]
        yield from tx.rows(f"{sql} ({', '.join('?' * len(some))})", *params, *some)
