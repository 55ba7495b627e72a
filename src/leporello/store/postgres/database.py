"""A PostgreSQL database as a `Database`: a pool of connections, all tables in the schema `leporello`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import IsolationLevel, errors
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from leporello.errors import InputError, LeporelloError, StoreBusy, StoreCorrupt, StoreError, StoreUnavailable
from leporello.store.sql.database import Row

_BUSY = (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected, errors.SerializationFailure)
_FULL = (errors.DiskFull, errors.InsufficientResources, errors.ConfigurationLimitExceeded, errors.OutOfMemory)
_DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted)
_FORBIDDEN = (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege)
_TOO_LARGE = (errors.ProgramLimitExceeded, errors.NumericValueOutOfRange)


def translate(error: psycopg.Error, url: str, waited: float, committing: bool = False) -> LeporelloError:
    """The error to raise instead; `committing` says that the answer to a COMMIT never came."""
    if isinstance(error, PoolTimeout | TooManyRequests):
        return StoreUnavailable(f"No connection to {url} within {waited:g} s. Check that the server runs and has room.")
    if isinstance(error, _BUSY):
        return StoreBusy(f"{url}: another worker held what was needed for more than {waited:g} s. Try again.")
    if isinstance(error, _DAMAGED):
        return StoreCorrupt(f"{url} is damaged ({_text(error)}). Restore a backup.")
    if isinstance(error, _FULL):
        return StoreUnavailable(f"{url}: the server has no space or memory left ({_text(error)}). Nothing was written.")
    if isinstance(error, _FORBIDDEN):
        return StoreUnavailable(f"{url} can't be written: it is read-only ({_text(error)}). Nothing was written.")
    if isinstance(error, _TOO_LARGE):
        return InputError(f"A value is larger than PostgreSQL can store ({_text(error)}).", url)
    if isinstance(error, psycopg.OperationalError | PoolClosed):
        outcome = "Whether the last write arrived is unknown: look before you repeat it." if committing else ""
        return StoreUnavailable(f"{url}: the connection was lost ({_text(error)}). {outcome or 'Nothing was written.'}")
    return StoreError(f"{url}: PostgreSQL refused a statement ({_text(error)}).")


def _text(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__


SCHEMA = "leporello"
_inherited: list[ConnectionPool[Any]] = []


@cache
def _placeholders(sql: str) -> str:
    return sql.replace("?", "%s")


class PostgresTransaction:
    __slots__ = ("_connection",)

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def row(self, sql: str, *params: Any) -> Row | None:
        return self._connection.execute(_placeholders(sql), params).fetchone()

    def rows(self, sql: str, *params: Any) -> list[Row]:
        return self._connection.execute(_placeholders(sql), params).fetchall()

    def run(self, sql: str, *params: Any) -> int:
        return self._connection.execute(_placeholders(sql), params or None).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_placeholders(sql), rows)


class PostgresDatabase:
    """A pool of connections to one database."""

    for_update = " FOR UPDATE OF c"

    def __init__(self, url: str, wait: float, connections: int, read_only: bool, clock: Callable[[], float]) -> None:
        self._conninfo = url
        self.url = without_password(url)
        self.read_only = read_only
        self._wait = wait
        self._connections = connections
        self._clock = clock
        self._closed = False
        self._pid = os.getpid()
        self._pool: ConnectionPool[psycopg.Connection[Row]] | None = None
        self._offset = self._clock_offset()

    def now(self) -> int:
        # By the server's clock, which all workers share.
        return round((self._clock() + self._offset) * 1000)

    @contextmanager
    def write(self, durable: bool = True) -> Iterator[PostgresTransaction]:
        if self.read_only:
            raise StoreUnavailable(f"{self.url} was opened read-only. Nothing was written.")
        with self._transaction(read=False) as tx:
            if not durable:
                tx.run("SET LOCAL synchronous_commit = off")
            yield tx

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        with self._transaction(read=True) as tx:
            yield tx

    @contextmanager
    def alone(self) -> Iterator[psycopg.Connection[Row]]:
        """A connection outside a transaction, for VACUUM."""
        connection = self._take()
        try:
            connection.set_autocommit(True)
            yield connection
        except psycopg.Error as error:
            raise translate(error, self.url, self._wait) from error
        finally:
            with suppress(psycopg.Error):
                connection.set_autocommit(False)
            self._give_back(connection)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pool is not None:
            if self._pid == os.getpid():
                self._pool.close()
            else:
                _inherited.append(self._pool)
            self._pool = None

    @contextmanager
    def _transaction(self, read: bool) -> Iterator[PostgresTransaction]:
        connection = self._take()
        committing = False
        try:
            # None leaves it to the server, which may be a standby.
            connection.set_read_only(True if read else None)
            connection.set_isolation_level(IsolationLevel.REPEATABLE_READ if read else IsolationLevel.READ_COMMITTED)
            yield PostgresTransaction(connection)
            committing = not read
            connection.commit()
        except psycopg.Error as error:
            raise translate(error, self.url, self._wait, committing) from error
        finally:
            self._give_back(connection)

    def _take(self) -> psycopg.Connection[Row]:
        if self._closed:
            raise StoreUnavailable(f"{self.url} was closed. Open the store again.")
        try:
            return self._connected().getconn(timeout=self._wait)
        except psycopg.Error as error:
            raise translate(error, self.url, self._wait) from error

    def _give_back(self, connection: psycopg.Connection[Row]) -> None:
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                connection.rollback()
        if self._pool is not None:
            self._pool.putconn(connection)

    def _connected(self) -> ConnectionPool[psycopg.Connection[Row]]:
        if self._pid != os.getpid():
            if self._pool is not None:
                _inherited.append(self._pool)
            self._pool = None
            self._pid = os.getpid()
        if self._pool is None:
            self._pool = ConnectionPool(
                self._conninfo,
                min_size=1,
                max_size=max(1, self._connections),
                timeout=self._wait,
                kwargs={"options": self._options(), "connect_timeout": max(2, round(self._wait))},
                check=ConnectionPool.check_connection,
                open=True,
            )
        return self._pool

    def _options(self) -> str:
        given = psycopg.conninfo.conninfo_to_dict(self._conninfo).get("options") or ""
        return f"{given} -c search_path={SCHEMA},public,extensions -c lock_timeout={round(self._wait * 1000)}ms"

    def _clock_offset(self) -> float:
        """How far the server's clock is ahead of ours. Also the first contact, with a clear error."""
        try:
            with psycopg.connect(self._conninfo, connect_timeout=max(2, round(self._wait))) as connection:
                before = time.time()
                row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
                offset = float(row[0]) - (before + time.time()) / 2 if row else 0.0
        except psycopg.ProgrammingError as error:
            raise InputError(f"This is not a PostgreSQL URL: {error}", self.url) from error
        except psycopg.Error as error:
            raise StoreUnavailable(f"{self.url} can't be reached: {' '.join(str(error).split())}") from error
        # Smaller differences are the time of the question itself.
        return offset if abs(offset) > 0.05 else 0.0


def without_password(url: str) -> str:
    """A URL that may be shown and logged."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}@{host}"))
