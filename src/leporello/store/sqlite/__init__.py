"""SQLite: one file, WAL, one writing connection per process; opening, checking, backing up. The default store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from leporello.errors import InputError, StoreCorrupt, StoreError, StoreUnavailable
from leporello.store import Store
from leporello.store.records import Finding, Severity
from leporello.store.sql.checkup import Care
from leporello.store.sql.database import Progress, StoreOptions, Transaction, integer
from leporello.store.sql.schema import CORE, SqlDialect, apply, later_migrations, outdated, pending
from leporello.store.sql.search import SearchIndex
from leporello.store.sqlite.database import SqliteDatabase, create_private, translate
from leporello.store.sqlite.index import INDEX, SqliteIndexTables, conversation_word, totals

_MOST_FINDINGS = 20
_INDEX_TABLES = ("words", "fragments")


class SqliteCare(Care):
    _db: SqliteDatabase

    def __init__(self, db: SqliteDatabase, index: SearchIndex, tables: SqliteIndexTables) -> None:
        super().__init__(db, index)
        self._tables = tables

    def _integrity(self) -> Iterator[Finding]:
        try:
            with self._db.read() as tx:
                rows = tx.rows(f"PRAGMA integrity_check({_MOST_FINDINGS})")
        except StoreCorrupt as error:
            yield Finding("pages", Severity.DAMAGE, self._db.path, str(error))
            return
        for (text,) in rows:
            if text != "ok":
                yield Finding("pages", Severity.DAMAGE, self._db.path, text)

    def _index_findings(self, tx: Transaction) -> Iterator[Finding]:
        expected = tx.row("SELECT count(*), COALESCE(SUM(length), 0) FROM documents") or (0, 0)
        found = totals(tx)
        if found != expected:
            text = f"{expected[0]} documents of {expected[1]} words, counted as {found[0]} of {found[1]}"
            yield Finding("index", Severity.INDEX, "documents", text)
        for key, documents in tx.rows("SELECT conversation, count(*) FROM documents GROUP BY conversation"):
            indexed = integer(tx, "SELECT count(*) FROM words WHERE words MATCH ?", f'"{conversation_word(key)}"')
            if indexed != documents:
                text = f"{documents} documents of conversation {key}, {indexed} of them in the word index"
                yield Finding("index", Severity.INDEX, "words", text)
        yield from self._structure()

    def _structure(self) -> Iterator[Finding]:
        """FTS5's own check, which is a write in form: it is rolled back and changes nothing."""
        if self._db.read_only:
            return
        for table in _INDEX_TABLES:
            try:
                with self._db.alone() as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    try:
                        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")  # noqa: S608
                    finally:
                        connection.execute("ROLLBACK")
            except StoreCorrupt as error:
                yield Finding("index", Severity.INDEX, table, str(error))

    def sizes(self) -> Mapping[str, int]:
        sizes: dict[str, int] = {}
        try:
            with self._db.read() as tx:
                sizes.update(tx.rows("SELECT name, SUM(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC"))
        except StoreCorrupt:
            raise
        except StoreError:
            # Not every SQLite has this table; then the whole must do.
            pass
        sizes["file"] = Path(self._db.path).stat().st_size
        return sizes

    def vacuum(self) -> None:
        with self._db.write() as tx:
            self._tables.sweep(tx)
        with self._db.alone() as connection:
            for table in _INDEX_TABLES:
                connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - constants
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _backup(self, destination: str, watch: Progress | None) -> None:
        create_private(destination)
        try:
            with closing(self._db.connect(reader=True)) as source, closing(sqlite3.connect(destination)) as target:
                # Small steps: writers go on in between, and SQLite takes what they change into the copy.
                report = None if watch is None else lambda _, left, total: watch(total - left, total)
                source.backup(target, pages=2048, sleep=0.001, progress=report)
        except sqlite3.Error as error:
            Path(destination).unlink(missing_ok=True)
            raise translate(error, destination, 0.0) from error


OLDEST_SQLITE = (3, 35)
SYNCHRONOUS = ("FULL", "NORMAL", "EXTRA", "OFF")
APPLICATION_ID = 0x4C45504F
"""Marks our files: `LEPO`."""

MIGRATIONS = (CORE, INDEX, *later_migrations(3))
DIALECT = SqlDialect(key="INTEGER PRIMARY KEY AUTOINCREMENT", blob="BLOB", clustered=" WITHOUT ROWID")


def open_sqlite(path: str, options: StoreOptions) -> Store:
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
    index = SearchIndex(db, tables)
    return Store(db, index, SqliteCare(db, index, tables))


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
        if pending(MIGRATIONS, _applied(tx, db.path), db.path):
            raise outdated(db.path)


def _migrate(db: SqliteDatabase) -> None:
    with db.read() as tx:
        # Nothing is written before it is clear whose file this is.
        missing = pending(MIGRATIONS, _applied(tx, db.path), db.path)
    db.enter_wal()
    for migration in missing:
        with db.write() as tx:
            # Another process may have been faster.
            if migration in pending(MIGRATIONS, _applied(tx, db.path), db.path):
                apply(tx, migration, DIALECT, db.now())
                tx.run(f"PRAGMA application_id = {APPLICATION_ID}")


def _applied(tx: Transaction, path: str) -> set[str]:
    """The migrations a file has. Raises `StoreCorrupt` for a file of another program."""
    if integer(tx, "SELECT count(*) FROM sqlite_schema") == 0:
        return set()
    if integer(tx, "PRAGMA application_id") != APPLICATION_ID:
        raise StoreCorrupt(f"{path} is a database of another program, not a Leporello store. It was left alone.")
    return {name for (name,) in tx.rows("SELECT name FROM migrations")}
