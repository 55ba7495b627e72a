"""SQLite: one file, WAL, one writing connection per process; opening, checking, backing up. The default store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from leporello.errors import InputError, StoreCorrupt, StoreUnavailable
from leporello.store.options import StoreOptions
from leporello.store.sql.inbox import inbox_migration
from leporello.store.sql.schema import (
    CORE,
    LISTING,
    MIGRATIONS_TABLE,
    UNMASKED_LEDGERS,
    Dialect,
    Migration,
    apply,
    pending,
)
from leporello.store.sql.store import Backend, SqlStore
from leporello.store.sqlite.database import SqliteDatabase, SqliteTransaction
from leporello.store.sqlite.index import INDEX, SqliteIndexTables
from leporello.store.sqlite.upkeep import SqliteUpkeep

OLDEST_SQLITE = (3, 35)
SYNCHRONOUS = ("FULL", "NORMAL", "EXTRA", "OFF")
APPLICATION_ID = 0x4C45504F
"""Marks our files: `LEPO`."""

MIGRATIONS: tuple[Migration, ...] = (
    CORE,
    INDEX,
    Migration("0003-listing", LISTING),
    inbox_migration("0004-inbox"),
    Migration("0005-masked-ledgers", (UNMASKED_LEDGERS,)),
)
DIALECT = Dialect(key="INTEGER PRIMARY KEY AUTOINCREMENT", blob="BLOB", clustered=" WITHOUT ROWID")


def open_sqlite(path: str, options: StoreOptions) -> SqlStore:
    """Open a file; create or migrate it unless it can only be read."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnavailable(f"SQLite {wanted} is needed; this Python has {sqlite3.sqlite_version}.")
    if options.synchronous not in SYNCHRONOUS:
        raise InputError(f"`synchronous` is one of {', '.join(SYNCHRONOUS)}, not {options.synchronous!r}.")
    db = SqliteDatabase(path, options.wait_seconds, options.synchronous, options.clock)
    try:
        _prepare(db, options.read_only)
    except BaseException:
        db.close()
        raise
    tables = SqliteIndexTables()
    return SqlStore(Backend(db, tables, tables, SqliteUpkeep(db, tables)))


def _prepare(db: SqliteDatabase, read_only: bool) -> None:
    if not read_only:
        try:
            db.open_for_writing()
            _migrate(db)
        except StoreUnavailable:
            # A file on a read-only disk can still be read, if it is there and up to date.
            if not Path(db.path).is_file() or Path(db.path).stat().st_size == 0:
                raise
            db.disconnect()
        else:
            return
    if not Path(db.path).is_file():
        raise StoreUnavailable(f"{db.path} does not exist, so it can't be opened for reading.")
    db.open_for_reading()
    with db.read() as tx:
        applied = _applied(tx, db.path)
        if applied is None or pending(MIGRATIONS, applied, db.path):
            raise StoreUnavailable(f"{db.path} must be brought up to date first. Open it once where it can be written.")


def _migrate(db: SqliteDatabase) -> None:
    with db.read() as tx:
        # Nothing is written before it is clear whose file this is.
        applied = _applied(tx, db.path)
        missing = MIGRATIONS if applied is None else tuple(pending(MIGRATIONS, applied, db.path))
    db.enter_wal()
    for migration in missing:
        with db.write() as tx:
            # Another process may have been faster.
            done = _applied(tx, db.path) or set()
            if migration in pending(MIGRATIONS, done, db.path):
                tx.run(MIGRATIONS_TABLE)
                apply(tx, migration, DIALECT, db.now())
                tx.run(f"PRAGMA application_id = {APPLICATION_ID}")


def _applied(tx: SqliteTransaction, path: str) -> set[str] | None:
    """The migrations a file has; None for an empty file, `StoreCorrupt` for somebody else's."""
    row = tx.row("PRAGMA application_id")
    tables = tx.row("SELECT count(*) FROM sqlite_schema")
    if tables is not None and tables[0] == 0:
        return None
    if row is None or row[0] != APPLICATION_ID:
        raise StoreCorrupt(f"{path} is a database of another program, not a Leporello store. It was left alone.")
    return {name for (name,) in tx.rows("SELECT name FROM migrations")}
