"""A PostgreSQL database as a `Database`: a pool of connections, all tables in the schema `leporello`."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

import psycopg
from psycopg import IsolationLevel, errors
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from leporello.errors import (
    InputError,
    LeporelloError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    StoreUnreachable,
)
from leporello.lazy_regex import lazy_regex
from leporello.store.sql.database import Row, StoreOptions, without_parts_of_password, without_password

CHECK_SECONDS = 2.0  # how long a connection of the pool may take to say that it lives
QUIET_SECONDS = 1.0  # a connection that was used so recently is not asked whether it lives
LISTEN_SECONDS = 60.0
_Value = TypeVar("_Value")


class ServerSilent(psycopg.OperationalError):
    """The server has sent nothing for too long; the connection was given up."""


class BoundedConnection(psycopg.Connection[Row]):
    """A connection on which no wait is longer than `answer_seconds` without a sign of the server; None is no bound."""

    answer_seconds: float | None = None
    heard_at = 0.0
    """When the server last ended a transaction on it."""

    def wait(self, gen: Generator[Any, Any, _Value], *args: Any, **more: Any) -> _Value:
        if self.answer_seconds is None:
            return super().wait(gen, *args, **more)
        try:
            return super().wait(_bounded(gen, self.answer_seconds), *args, **more)
        except ServerSilent:
            # Without a word to the server, which would not hear it.
            self.pgconn.finish()
            raise

    @property
    def surely_alive(self) -> bool:
        """Whether the server answered a moment ago, and has not hung up since: then it need not be asked."""
        if time.monotonic() - self.heard_at > QUIET_SECONDS:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno(), selectors.EVENT_READ)
            return not selector.select(0)

    def check(self) -> None:
        """Ask the server for a sign of life, for a shorter time than other questions."""
        usual, self.answer_seconds = self.answer_seconds, CHECK_SECONDS
        try:
            self.execute("SELECT 1")
            self.rollback()
        finally:
            self.answer_seconds = usual


class BoundedAsyncConnection(psycopg.AsyncConnection[Row]):
    """The same for those who wait on an event loop."""

    answer_seconds = 6.0
    _listens = False

    async def notifies(self, **bounds: Any) -> AsyncGenerator[psycopg.Notify, None]:
        """The same, without a bound: a server that has nothing to tell is not silent."""
        self._listens = True
        try:
            async for told in super().notifies(**bounds):
                yield told
        finally:
            self._listens = False

    async def wait(self, gen: Generator[Any, Any, _Value], *args: Any, **more: Any) -> _Value:
        if self._listens:
            # What is told wakes it. Looking ten times a second, as is usual, is all that an idle worker would do.
            return await super().wait(gen, LISTEN_SECONDS, *args, **more)
        try:
            return await super().wait(_bounded(gen, self.answer_seconds), *args, **more)
        except ServerSilent:
            self.pgconn.finish()
            raise


def _bounded(inner: Generator[Any, Any, _Value], seconds: float) -> Generator[Any, Any, _Value]:
    """The same steps; `ServerSilent` when none of them could be taken for this long."""
    heard = time.monotonic()
    ready: Any = None
    while True:
        try:
            wanted = next(inner) if ready is None else inner.send(ready)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        ready = yield wanted
        now = time.monotonic()
        if ready:
            heard = now
        elif now - heard > seconds:
            inner.close()
            raise ServerSilent(f"the server has been silent for {seconds:g} s")


def network_options(given: dict[str, Any], answer_seconds: float | None) -> dict[str, Any]:
    """What makes the system notice a dead line; what the URL says goes first."""
    wanted: dict[str, Any] = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 3, "keepalives_count": 3}
    if answer_seconds is not None:
        wanted["tcp_user_timeout"] = round(answer_seconds * 1000)
    return {name: value for name, value in wanted.items() if name not in given}


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
SILENT_SECONDS = 1.0  # how long nobody asks again after the server was silent
PATIENT_SECONDS = 3600.0
_PASSING = lazy_regex(r"the database system is|too many (?:clients|connections)|remaining connection slots")
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
    for_update = " FOR UPDATE OF c"
    free_for_update = " FOR UPDATE SKIP LOCKED"

    def __init__(self, url: str, options: StoreOptions) -> None:
        self._conninfo = url
        self.url = without_password(url)
        self.read_only = options.read_only
        self._wait = options.wait_seconds
        self._connections = options.connections
        self._clock = options.clock
        # Whoever waits for a lock is silent, too, and for as long as it may.
        self._answer_seconds = max(options.answer_seconds, options.wait_seconds + CHECK_SECONDS)
        self._silent_until = 0.0
        self._heard_at = 0.0
        self._closed = False
        self._pid = os.getpid()
        self._pool: ConnectionPool[BoundedConnection] | None = None
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
            connection.answer_seconds = None
            connection.set_autocommit(True)
            yield connection
        except psycopg.Error as error:
            raise translate(error, self.url, self._wait) from error
        finally:
            connection.answer_seconds = self._answer_seconds
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
    def patiently(self) -> Iterator[None]:
        """For work that may keep the server busy without a word, such as building an index."""
        usual, self._answer_seconds = self._answer_seconds, PATIENT_SECONDS
        try:
            yield
        finally:
            self._answer_seconds = usual

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
            connection.heard_at = self._heard_at = time.monotonic()
        except psycopg.Error as error:
            self._note_silence(error)
            raise translate(error, self.url, self._wait, committing) from error
        finally:
            self._give_back(connection)

    def _take(self) -> BoundedConnection:
        if self._closed:
            raise StoreUnavailable(f"{self.url} was closed. Open the store again.")
        now = time.monotonic()
        if now < self._silent_until:
            # Others have just waited in vain; a queue of callers that each wait as long would never be through.
            raise StoreUnavailable(f"{self.url}: the server is silent. Nothing was written.")
        if self._silent_until:
            # One tries again; until it knows more, the others need not.
            self._silent_until = now + self._wait
        try:
            connection = self._connected().getconn(timeout=self._wait)
        except psycopg.Error as error:
            if self._silent_until or self._heard_at < now:
                # Nobody else heard from the server meanwhile: it is silent, not only busy.
                self._silent_until = time.monotonic() + SILENT_SECONDS
            raise translate(error, self.url, self._wait) from error
        self._silent_until = 0.0
        self._heard_at = time.monotonic()
        connection.answer_seconds = self._answer_seconds
        return connection

    def _check(self, connection: BoundedConnection) -> None:
        if connection.surely_alive:
            return
        try:
            connection.check()
        except psycopg.Error as error:
            self._note_silence(error)
            raise

    def _note_silence(self, error: psycopg.Error) -> None:
        if isinstance(error, ServerSilent):
            self._silent_until = time.monotonic() + SILENT_SECONDS

    def _give_back(self, connection: BoundedConnection) -> None:
        if connection.info.transaction_status is TransactionStatus.IDLE:
            # All it asked was answered: whoever waited in vain for this connection met a busy server, not a silent one.
            self._silent_until, self._heard_at = 0.0, time.monotonic()
        else:
            with suppress(psycopg.Error):
                connection.rollback()
        if self._pool is not None:
            self._pool.putconn(connection)

    def _connected(self) -> ConnectionPool[BoundedConnection]:
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
                # A new attempt begins with the next caller, not after pauses that grow for minutes.
                reconnect_timeout=max(5.0, self._wait),
                connection_class=BoundedConnection,
                kwargs=self._options(),
                check=self._check,
                open=True,
            )
        return self._pool

    def _options(self) -> dict[str, Any]:
        given = psycopg.conninfo.conninfo_to_dict(self._conninfo)
        settings = f"-c search_path={SCHEMA},public,extensions -c lock_timeout={round(self._wait * 1000)}ms"
        return {
            "options": f"{given.get('options') or ''} {settings}",
            "connect_timeout": max(2, round(self._wait)),
            **network_options(given, self._answer_seconds),
        }

    def _clock_offset(self) -> float:
        """How far the server's clock is ahead of ours. Also the first contact, with a clear error."""
        try:
            with BoundedConnection.connect(self._conninfo, connect_timeout=max(2, round(self._wait))) as connection:
                connection.answer_seconds = self._answer_seconds
                before = time.time()
                row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
                offset = float(row[0]) - (before + time.time()) / 2 if row else 0.0
        except psycopg.Error as error:
            said = without_parts_of_password(_text(error), self._conninfo)
            # The driver's own text is not kept: it may quote the password.
            if isinstance(error, psycopg.ProgrammingError):
                hint = "In a password, signs such as @ : / ? # % and blanks are written as %40 and the like."
                raise InputError(f"This is not a PostgreSQL URL: {said}. {hint}", self.url) from None
            raise _unreachable(said, self.url) from None
        # Smaller differences are the time of the question itself.
        return offset if abs(offset) > 0.05 else 0.0


def _unreachable(text: str, url: str) -> StoreUnavailable:
    """A server that answered has a reason that waiting does not mend, but for one that is starting or ending."""
    refused = "FATAL" in text and not _PASSING.search(text)
    return (StoreUnavailable if refused else StoreUnreachable)(f"{url} can't be reached: {text}")
