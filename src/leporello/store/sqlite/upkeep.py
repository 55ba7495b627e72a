"""Looking after a SQLite file: integrity, sizes, vacuum, online backup."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from leporello.errors import InputError, StoreCorrupt, StoreError
from leporello.store.base import Watch
from leporello.store.records import Finding, Severity
from leporello.store.sql.database import Transaction
from leporello.store.sqlite.database import SqliteDatabase, create_private
from leporello.store.sqlite.errors import translate
from leporello.store.sqlite.index import SqliteIndexTables, conversation_word

_MOST_FINDINGS = 20
_INDEX_TABLES = ("words", "fragments")


class SqliteUpkeep:
    """`Upkeep` of a file."""

    def __init__(self, db: SqliteDatabase, tables: SqliteIndexTables) -> None:
        self._db = db
        self._tables = tables

    def integrity(self) -> Iterator[Finding]:
        try:
            with self._db.read() as tx:
                rows = tx.rows(f"PRAGMA integrity_check({_MOST_FINDINGS})")
        except StoreCorrupt as error:
            yield Finding("pages", Severity.DAMAGE, self._db.path, str(error))
            return
        for (text,) in rows:
            if text != "ok":
                yield Finding("pages", Severity.DAMAGE, self._db.path, text)

    def index_findings(self, tx: Transaction) -> Iterator[Finding]:
        expected = tx.row("SELECT count(*), COALESCE(SUM(length), 0) FROM documents") or (0, 0)
        totals: dict[str, int] = dict(
            tx.rows("SELECT name, value FROM index_state WHERE name IN ('documents', 'words')")
        )
        found = (int(totals.get("documents", 0)), int(totals.get("words", 0)))
        if found != tuple(expected):
            text = f"{expected[0]} documents of {expected[1]} words, counted as {found[0]} of {found[1]}"
            yield Finding("index", Severity.INDEX, "documents", text)
        for key, documents in tx.rows("SELECT conversation, count(*) FROM documents GROUP BY conversation"):
            indexed = tx.row("SELECT count(*) FROM words WHERE words MATCH ?", f'"{conversation_word(key)}"') or (0,)
            if indexed[0] != documents:
                text = f"{documents} documents of conversation {key}, {indexed[0]} of them in the word index"
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

    def backup(self, destination: str, watch: Watch | None = None) -> None:
        if Path(destination).exists():
            raise InputError("The file exists. A backup never overwrites; choose another name.", destination)
        create_private(destination)
        try:
            with closing(self._db.connect(reader=True)) as source, closing(sqlite3.connect(destination)) as target:
                # Small steps: writers go on in between, and SQLite takes what they change into the copy.
                told = None if watch is None else lambda _, left, total: watch(total - left, total)
                source.backup(target, pages=2048, sleep=0.001, progress=told)
        except sqlite3.Error as error:
            Path(destination).unlink(missing_ok=True)
            raise translate(error, destination, 0.0) from error
