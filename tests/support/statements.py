"""What is said to a database, counted where the database hears it: every statement, begin and commit included."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from leporello.store import Store
from leporello.store.sqlite.database import SqliteDatabase

PATIENCE = 60.0
"""Nothing waits for ever; no test depends on how long anything takes."""
_LOGGED = re.compile(r"\[(\d+)\] LOG:  (?:statement|execute [^:]*): (.*)")
_BESIDE = ("SELECT 1", "SELECT DISTINCT f.id FROM inbox")
"""What is asked by the clock, not for a message: whether a connection lives, whether a dead worker left something."""

Said = tuple[object, str]
"""A connection and what it said."""


class Heard:
    """The transactions of a while, each with its statements; those that come by the clock are left out."""

    def __init__(self, read: Callable[[], list[Said]]) -> None:
        self._read = read
        self._kept: list[Said] | None = None

    @property
    def _transactions(self) -> list[list[str]]:
        under_way: dict[object, list[str]] = {}
        ended: list[list[str]] = []
        for connection, said in self._read() if self._kept is None else self._kept:
            under_way.setdefault(connection, []).append(said)
            if said.startswith(("COMMIT", "ROLLBACK")):
                ended.append(under_way.pop(connection))
        return [said for said in ended if len(said) > 1 and not said[1].startswith(_BESIDE)]

    @property
    def statements(self) -> list[str]:
        """Without what begins and ends transactions."""
        return [said for each in self._transactions for said in each[1:-1]]

    @property
    def transactions(self) -> int:
        return len(self._transactions)

    @property
    def writes(self) -> int:
        """Transactions that could write."""
        begun = ("BEGIN IMMEDIATE", "BEGIN ISOLATION LEVEL READ COMMITTED")
        return sum(each[0] in begun for each in self._transactions)

    def wait_for(self, beginning: str) -> None:
        """Until a statement that begins so was committed."""
        pause = threading.Event()
        for _ in range(round(PATIENCE / 0.01)):
            if any(said.startswith(beginning) for said in self.statements):
                return
            pause.wait(0.01)
        raise AssertionError(f"never said: {beginning}")

    def keep(self) -> None:
        """What is said from now on is not counted."""
        self._kept = self._read()


@contextmanager
def listening_to_sqlite(store: Store) -> Iterator[Heard]:
    """All that this store's connections say to its file."""
    database = store.database
    assert isinstance(database, SqliteDatabase)
    said: list[Said] = []
    heard = Heard(lambda: list(said))

    def trace(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(lambda text: said.append((connection, text)))

    def connect(reader: bool = False) -> sqlite3.Connection:
        connection = SqliteDatabase.connect(database, reader)
        trace(connection)
        return connection

    with database.alone() as writer:
        known = [writer, *database._readers]
    for connection in known:
        trace(connection)
    database.connect = connect  # type: ignore[method-assign]
    try:
        yield heard
    finally:
        heard.keep()
        del database.connect  # type: ignore[method-assign]
        for connection in known:
            connection.set_trace_callback(None)


def log_statements(url: str) -> None:
    """Let the server write down what connections to a database say that are opened from now on."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET log_statement = 'all'")  # type: ignore[arg-type]


@contextmanager
def listening_to_postgres(folder: Path) -> Iterator[Heard]:
    """All that the server of this folder hears from databases whose statements are logged."""
    log = folder / "server.log"
    begun = log.stat().st_size

    def read() -> list[Said]:
        with log.open("rb") as lines:
            lines.seek(begun)
            return _LOGGED.findall(lines.read().decode("utf-8", "replace"))

    heard = Heard(read)
    yield heard
    heard.keep()
