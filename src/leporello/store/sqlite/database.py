"""A SQLite file as a `Database`: one writing connection per process, reading connections beside it, WAL."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from leporello.errors import InputError, LeporelloError, StoreBusy, StoreCorrupt, StoreError, StoreUnavailable
from leporello.store.sql.database import Row

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "there is no space left on the disk (or a size limit was reached). Free some space",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only. Make it writable or open another store",
    sqlite3.SQLITE_CANTOPEN: "the file or its folder can't be opened. Check that the folder exists and may be written",
    sqlite3.SQLITE_IOERR: "reading or writing the file failed. Check the disk and its free space",
    sqlite3.SQLITE_PERM: "access is not permitted. Check the file's permissions",
    sqlite3.SQLITE_AUTH: "access is not permitted. Check the file's permissions",
    sqlite3.SQLITE_NOLFS: "the disk can't hold a file of this size",
}


def translate(error: sqlite3.Error, path: str, waited: float) -> LeporelloError:
    code = getattr(error, "sqlite_errorcode", None)
    # The low byte is the kind, the rest the detail.
    kind = code & 0xFF if isinstance(code, int) else None
    if kind in _BUSY:
        return StoreBusy(f"{path} is in use by another process; gave up after {waited:g} s. Try again later.")
    if kind in _CORRUPT:
        return StoreCorrupt(
            f"{path} is damaged or is not a Leporello store ({error}). "
            "Run `leporello doctor` to see what is readable, and restore a backup."
        )
    if kind in _UNAVAILABLE:
        return StoreUnavailable(f"{path}: {_UNAVAILABLE[kind]} ({error}). Nothing was written.")
    if kind == sqlite3.SQLITE_TOOBIG or isinstance(error, sqlite3.DataError):
        return InputError(f"A value is larger than SQLite can store ({error}).", path)
    return StoreError(f"{path}: SQLite refused a statement ({error}).")


_RETRY_SECONDS = (0.0005, 0.004)
_CHECKPOINT_PAGES = 1000
_LARGEST_LOG = 64 * 1024 * 1024
_SMALLEST_DATABASE = 512
_IDLE_READERS = 8
_WRITER_CACHE, _READER_CACHE = 16_384, 4_096
"""KiB of pages that a connection keeps."""

_inherited: list[sqlite3.Connection] = []


class SqliteTransaction:
    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def row(self, sql: str, *params: Any) -> Row | None:
        cursor = self._connection.execute(sql, params)
        row: Row | None = cursor.fetchone()
        # A statement that is not read to its end keeps its snapshot open.
        cursor.close()
        return row

    def rows(self, sql: str, *params: Any) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def run(self, sql: str, *params: Any) -> int:
        return self._connection.execute(sql, params).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)


class SqliteDatabase:
    for_update = ""
    free_for_update = ""

    def __init__(self, path: str, wait: float, synchronous: str, clock: Callable[[], float]) -> None:
        # A process may change its folder while the store is open.
        self.path = os.path.abspath(path)
        self._file = self.path  # what is opened: the file itself, or a copy of it where it can't be read in its place
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self.read_only = False
        self.wants_to_write = False
        """Whether it is read-only only because it could not be written."""
        self._wait = wait
        self._synchronous = synchronous
        self._clock = clock
        self._mode = "rw"
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        # Appending to and popping from a list is atomic.
        self._readers: list[sqlite3.Connection] = []
        self._reset()

    @property
    def url(self) -> str:
        return "sqlite:///" + quote(self.path)

    def now(self) -> int:
        return round(self._clock() * 1000)

    @contextmanager
    def write(self, durable: bool = True) -> Iterator[SqliteTransaction]:
        self._check_usable()
        if self.read_only:
            self._write_again()
        with self._exclusive() as connection, nullcontext() if durable else self._not_synced(connection):
            self._execute_when_free(connection, "BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    @contextmanager
    def read(self) -> Iterator[SqliteTransaction]:
        self._check_usable()
        mode = self._mode
        with self._errors():
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self.connect(reader=True)
            healthy = False
            try:
                connection.execute("BEGIN")
                yield SqliteTransaction(connection)
                connection.execute("COMMIT")
                healthy = True
            except StoreError:
                _roll_back(connection)
                healthy = True
                raise
            finally:
                if healthy and not self._closed and mode == self._mode and len(self._readers) < _IDLE_READERS:
                    self._readers.append(connection)
                else:
                    connection.close()

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The writing connection outside a transaction, for pragmas, VACUUM and backups."""
        self._check_usable()
        with self._exclusive() as connection:
            connection.execute(f"PRAGMA busy_timeout = {round(self._wait * 1000)}")
            try:
                yield connection
            finally:
                connection.execute("PRAGMA busy_timeout = 0")

    @contextmanager
    def _exclusive(self) -> Iterator[sqlite3.Connection]:
        """The writing connection, for one thread at a time."""
        if not self._lock.acquire(timeout=self._wait):
            raise StoreBusy(f"{self.path} is being written by another thread; gave up after {self._wait:g} s.")
        try:
            with self._errors():
                if self._writer is None:
                    self._writer = self.connect()
                yield self._writer
        finally:
            self._lock.release()

    def connect(self, reader: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._address(self._file, self._mode),
            uri=True,
            timeout=self._wait if reader else 0.0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute("PRAGMA secure_delete = FAST")
            connection.execute(f"PRAGMA cache_size = -{_READER_CACHE if reader else _WRITER_CACHE}")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")
            if reader:
                connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    @staticmethod
    def _address(path: str, mode: str) -> str:
        return f"file:{quote(path)}?mode={mode}"

    def open_for_writing(self) -> None:
        """Make sure that the file exists; what is in it is not touched yet."""
        self.wants_to_write = True
        create_private(self.path)
        if 0 < os.stat(self.path).st_size < _SMALLEST_DATABASE:
            # SQLite would take so short a file for an empty one and write over it.
            raise StoreCorrupt(f"{self.path} is not a database. It was left alone.")
        self._mode = "rw"

    def enter_wal(self) -> None:
        """Let readers and a writer work at the same time; the file remembers it."""
        with self.alone() as connection:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                # Several processes may create the file at once, and this switch does not wait for others by itself.
                self._execute_when_free(connection, "PRAGMA journal_mode = WAL")

    def open_for_reading(self) -> None:
        """Read without writing a byte. A folder that can't be written has no room for SQLite's side files."""
        self.read_only = True
        self._mode = "ro"
        try:
            with self.read() as tx:
                tx.row("SELECT count(*) FROM sqlite_schema")
        except StoreUnavailable:
            log = Path(self.path + "-wal")
            if log.exists() and log.stat().st_size:
                # A process died and the disk is full: reading needs a side file beside the log.
                if not self._copy_aside(log):
                    raise
            else:
                self._mode = "ro&immutable=1"
            with self.read() as tx:
                tx.row("SELECT count(*) FROM sqlite_schema")

    def _write_again(self) -> None:
        """A file that could not be written when it was opened may be by now: a full disk has been cleared."""
        if not self.wants_to_write:
            raise StoreUnavailable(f"{self.path} was opened read-only. Nothing was written.")
        address = self._address(self.path, "rw")
        try:
            with self._errors(), closing(sqlite3.connect(address, uri=True, timeout=0.0)) as probe:
                probe.execute("BEGIN IMMEDIATE")
        except StoreUnavailable as error:
            raise StoreUnavailable(f"{error} It is open read-only until it can be written.") from error
        self._file, self._mode, self.read_only = self.path, "rw", False
        while self._readers:
            self._readers.pop().close()

    def _copy_aside(self, log: Path) -> bool:
        """Take file and log to a private folder that has room; False where there is none."""
        for place in (None, "/dev/shm"):
            with suppress(OSError):
                self._copy = tempfile.TemporaryDirectory(prefix="leporello-", dir=place)
                self._file = os.path.join(self._copy.name, "copy.db")
                shutil.copyfile(self.path, self._file)
                shutil.copyfile(log, f"{self._file}-wal")
                self._mode = "rw"
                return True
            if self._copy is not None:
                self._copy.cleanup()
        self._copy, self._file = None, self.path
        return False

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.disconnect()
        if self._copy is not None:
            self._copy.cleanup()

    def disconnect(self) -> None:
        """Close all connections; new ones are made when they are needed."""
        if self._pid != os.getpid():
            self._leave_inherited()
            return
        while self._readers:
            self._readers.pop().close()
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    @contextmanager
    def _not_synced(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Commits don't wait for the disk; the next synced commit also writes them."""
        if self._synchronous != "FULL":
            yield
            return
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            connection.execute("PRAGMA synchronous = FULL")

    def _execute_when_free(self, connection: sqlite3.Connection, statement: str) -> None:
        """Execute a statement that takes the file's write lock.

        SQLite's own waiting sleeps longer and longer, so a process that writes often would starve the others. Asking
        again after short times of random length gives everybody the same chance.
        """
        deadline = time.monotonic() + self._wait
        while True:
            try:
                connection.execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(random.uniform(*_RETRY_SECONDS))
            else:
                return

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self.path} was closed. Open the store again.")
        if self._pid != os.getpid():
            self._leave_inherited()

    def _leave_inherited(self) -> None:
        """After a fork: the parent's connections must be neither used nor closed here."""
        if self._writer is not None:
            _inherited.append(self._writer)
        _inherited.extend(self._readers)
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._writer = None
        self._readers = []

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise translate(error, self.path, self._wait) from error
        except OverflowError as error:
            raise InputError(f"A number is larger than SQLite can store ({error}).", self.path) from error


def _roll_back(connection: sqlite3.Connection) -> None:
    # SQLite has already rolled back by itself after some errors (full disk); then there is nothing to do.
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def create_private(path: str) -> None:
    """An empty file only the user can read: transcripts are private. An existing file is left alone."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreUnavailable(
            f"{path} can't be created ({error.strerror}). Choose a folder that can be written."
        ) from (error)
