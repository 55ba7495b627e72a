"""What the SQL code needs from a database, and how its parts find and lock a conversation there.

SQLite and PostgreSQL each implement `Database`. Statements are written with `?` placeholders. A `write` transaction
sees the newest state and holds its locks until it ends; a `read` transaction sees one snapshot. Both commit at the end
of the block and roll back on any exception, and both raise only `StoreError`s.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote

from msgspec import Struct

from leporello.errors import NotFound
from leporello.lazy_regex import lazy_regex
from leporello.store.sql.encoding import millis, name_key, pack, pack_key, shown

Row: TypeAlias = tuple[Any, ...]

_BATCH = 500

Progress: TypeAlias = Callable[[int, int], None]  # called during long work with how much is done, and of how much


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
    answer_seconds: float = 120.0
    """PostgreSQL only: how long the server may be silent before a call gives up."""
    clock: Callable[[], float] = time.time


_SECRET_OPTION = lazy_regex(r"(?P<name>[?&](?:ssl)?password=)(?P<value>[^&]+)", re.IGNORECASE)
_SEPARATOR = lazy_regex(r"[@:/?#&=]")


def without_password(url: str) -> str:
    """A URL that may be shown and logged. A password may hold any sign, also those that end one in a proper URL."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    user, at, place = rest.rpartition("@")
    shown = _SECRET_OPTION.sub(r"\g<name>***", place)
    return f"{scheme}://{user.partition(':')[0]}{at}{shown}"


def without_parts_of_password(text: str, url: str) -> str:
    """What a driver says about a URL: it may name what it took for a port, a host or an option."""
    rest = url.partition("://")[2]
    user, _, place = rest.rpartition("@")
    secrets = [user.partition(":")[2], *(found["value"] for found in _SECRET_OPTION.finditer(place))]
    parts = {part for secret in secrets for part in (secret, unquote(secret), *_SEPARATOR.split(secret)) if part}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "***")
    return text


class Transaction(Protocol):
    def row(self, sql: str, *params: Any) -> Row | None: ...

    def rows(self, sql: str, *params: Any) -> list[Row]: ...

    def run(self, sql: str, *params: Any) -> int:
        """Run a statement and return how many rows it changed."""

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...


class Database(Protocol):
    @property
    def url(self) -> str: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def for_update(self) -> str:
        """What a SELECT says at its end to lock its rows; empty where the whole database has one writer."""

    @property
    def free_for_update(self) -> str:
        """The same, for those rows alone that nobody holds: whoever takes them waits for nobody."""

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


class Conditions:
    """The conditions of a query that depend on what is asked for, each behind an AND, and their parameters."""

    def __init__(self) -> None:
        self.sql = ""
        self.params: list[Any] = []

    def add(self, test: str, value: Any, stored: Callable[[Any], Any] = pack) -> None:
        """A test of one value in its stored form; nothing when the value is None."""
        if value is not None:
            self.sql += f" AND {test}"
            self.params.append(stored(value))

    def add_any(self, column: str, values: Sequence[str]) -> None:
        """The column holds one of the values of a key; nothing when there are none."""
        if values:
            self.sql += f" AND {column} IN ({', '.join('?' * len(values))})"
            self.params.extend(map(pack_key, values))


STORE_ITSELF = 0  # the conversation key under which the store keeps its own state


class Locked(Struct, frozen=True):
    """A conversation that is locked until the transaction ends."""

    key: int
    last: int
    generation: int
    tip: int


def locate(tx: Transaction, id: str) -> tuple[int, int]:
    """The conversation key and session ordinal of any id."""
    row = tx.row("SELECT conversation, ordinal FROM directory WHERE name = ?", name_key(id))
    if row is None:
        raise unknown(id)
    return row[0], row[1]


def key_of(tx: Transaction, conversation: str | None) -> int:
    """The key of a conversation; None is the store itself."""
    return STORE_ITSELF if conversation is None else locate(tx, conversation)[0]


KEY_OF_NAME = "(SELECT d.conversation FROM directory d WHERE d.name = ?)"
"""The key of a conversation inside a statement, from the `name_key` of any id of it."""


def lock(db: Database, tx: Transaction, id: str) -> Locked:
    """Find a conversation and keep others from changing it in this transaction.

    Always the first lock that is taken, so that no two transactions wait for each other.
    """
    return Locked(*read_conversation(tx, id, "c.conversation, c.last, c.generation, c.tip", db.for_update))


def read_conversation(tx: Transaction, id: str, columns: str, ending: str = "") -> Row:
    """Some columns of a conversation, in one query."""
    row = tx.row(
        f"SELECT {columns} FROM conversations c WHERE c.conversation = {KEY_OF_NAME}{ending}",  # noqa: S608 - constants
        name_key(id),
    )
    if row is None:
        raise unknown(id)
    return row


def unknown(id: str) -> NotFound:
    """The error for an id that no session has."""
    return NotFound(
        f"No conversation or session has the id {shown(id)}. `leporello sessions list` shows what there is."
    )


class StorePart:
    """Statements about one conversation. Their first parameter is always the conversation's key.

    The key is looked up inside the statement; only where it finds nothing is it asked whether the conversation exists.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    def _row(self, conversation: str | None, sql: str, *params: Any) -> Row | None:
        return next(iter(self._rows(conversation, sql, *params)), None)

    def _rows(self, conversation: str | None, sql: str, *params: Any) -> list[Row]:
        with self._db.read() as tx:
            if conversation is None:
                return tx.rows(sql, STORE_ITSELF, *params)
            found = tx.rows(sql.replace("?", KEY_OF_NAME, 1), name_key(conversation), *params)
            if not found:
                locate(tx, conversation)
            return found

    def _moment(self, at: float | None) -> int:
        """A given time, or now, as stored."""
        return self._db.now() if at is None else millis(at)

    @contextmanager
    def _locked(self, conversation: str) -> Iterator[tuple[Transaction, Locked]]:
        """A write transaction in which the conversation is locked."""
        with self._db.write() as tx:
            yield tx, lock(self._db, tx, conversation)
