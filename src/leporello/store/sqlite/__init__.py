"""SQLite, the default store: one file, WAL, one writing connection per process; index, opening, checks, backup."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from leporello.errors import InputError, StoreBusy, StoreCorrupt, StoreError, StoreUnavailable
from leporello.store import Store
from leporello.store.sql.checkup import Care, Finding, Severity
from leporello.store.sql.database import Progress, Row, StoreOptions, Transaction, integer, rows_in
from leporello.store.sql.encoding import decode_text, encode_text, pack_body, unpack_body
from leporello.store.sql.indexing import (
    CANDIDATE,
    INDEX_VERSION,
    IndexedChunk,
    Place,
    SearchCandidate,
    SearchScope,
    holds_fragment,
    index_version,
)
from leporello.store.sql.schema import CORE, Migration, SqlDialect, apply, later_migrations, outdated, pending
from leporello.store.sql.search import SearchIndex
from leporello.store.sqlite.database import SqliteDatabase, create_private, translate
from leporello.text_features.words import FTS5_TOKENIZE, Statistics, index_words

_WORDS = (
    f"CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize=\"{FTS5_TOKENIZE}\", detail=none, columnsize=0)"
)
_FRAGMENTS = (
    "CREATE VIRTUAL TABLE fragments USING fts5(text, content='', tokenize='trigram', detail=none, columnsize=0)"
)
_VOCABULARY = "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, 'row')"

INDEX = Migration(
    "0002-search",
    (
        """
CREATE TABLE documents (
    document INTEGER PRIMARY KEY,
    conversation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    chunk BIGINT NOT NULL,
    start BIGINT NOT NULL,
    created BIGINT NOT NULL,
    role TEXT NOT NULL,
    tool TEXT NOT NULL,
    length BIGINT NOT NULL,
    body {blob} NOT NULL
)""",
        "CREATE TABLE index_state (name TEXT NOT NULL PRIMARY KEY, value) WITHOUT ROWID",
        _WORDS,
        _FRAGMENTS,
        _VOCABULARY,
    ),
)

_MOST_TRIGRAMS = 12
_NEWEST = 2**62
_PAGE = 200
_REMOVED_EXACTLY = 2_000
"""Documents that are taken out of the index one by one, in about a second; the sweep reads all that stay."""
_DOCUMENTS_OF = (
    "SELECT d.document, d.conversation, d.body FROM documents d "
    "WHERE d.document IN (SELECT rowid FROM words WHERE words MATCH ?)"
)
Entry: TypeAlias = tuple[int, int, str, Sequence[str]]
"""A document in the index: number, conversation, text and words."""
_FRAGMENT_PAGE = "SELECT rowid FROM fragments WHERE fragments MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
_COMMON = 200
_MOST_REMEMBERED = 10_000

_CANDIDATE = CANDIDATE.format(text="body")


class SqliteIndexTables:
    """`IndexTables` on FTS5."""

    def __init__(self) -> None:
        self._common: dict[str, int] = {}
        self._counted_at = 0

    def add(self, tx: Transaction, key: int, documents: Sequence[IndexedChunk]) -> None:
        if not documents:
            return
        # A number is never given twice: the index may still have entries of a deleted document.
        newest = integer(tx, "SELECT value FROM index_state WHERE name = 'newest'")
        numbered = list(enumerate(documents, newest + 1))
        tx.many(
            "INSERT INTO documents (document, conversation, number, chunk, start, created, role, tool, length, "
            "body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((number, *item.columns(key), pack_body(encode_text(item.text))) for number, item in numbered),
        )
        _insert(tx, [(number, key, item.text, item.words) for number, item in numbered])
        count = len(documents)
        _change_totals(tx, newest=count, documents=count, words=sum(len(document.words) for document in documents))

    def remove(self, tx: Transaction, key: int) -> None:
        # Deleting a row of a contentless table needs all its old values, which takes long. Of a very long conversation,
        # or one indexed by other rules, entries are left without a document: never found, they go with the next sweep.
        match = f'"{conversation_word(key)}"'
        gone = tx.row(
            "SELECT count(*), COALESCE(SUM(d.length), 0) FROM words JOIN documents d ON d.document = words.rowid "
            "WHERE words MATCH ?",
            match,
        ) or (0, 0)
        exactly = gone[0] <= _REMOVED_EXACTLY and index_version(tx) == INDEX_VERSION
        rows = tx.rows(_DOCUMENTS_OF, match) if exactly else []
        tx.run("DELETE FROM documents WHERE document IN (SELECT rowid FROM words WHERE words MATCH ?)", match)
        _remove(tx, _entries(rows))
        _change_totals(tx, documents=-gone[0], words=-gone[1], leftovers=0 if exactly else gone[0])

    def sweep(self, tx: Transaction) -> None:
        """Make the index anew from its documents if it holds entries of deleted ones."""
        if not integer(tx, "SELECT value FROM index_state WHERE name = 'leftovers'"):
            return
        self._clear_entries(tx)
        after = 0
        while rows := tx.rows(
            "SELECT document, conversation, body FROM documents WHERE document > ? ORDER BY document LIMIT ?",
            after,
            _PAGE,
        ):
            _insert(tx, _entries(rows))
            after = rows[-1][0]
        tx.run("DELETE FROM index_state WHERE name = 'leftovers'")

    def lock_out_writers(self, tx: Transaction) -> None:
        """A writing transaction is the only one of the file."""

    def clear(self, tx: Transaction) -> None:
        self._clear_entries(tx)
        tx.run("DELETE FROM documents")

    @staticmethod
    def _clear_entries(tx: Transaction) -> None:
        tx.run("INSERT INTO words (words) VALUES ('delete-all')")
        tx.run("INSERT INTO fragments (fragments) VALUES ('delete-all')")

    def statistics(self, tx: Transaction, words: Sequence[str]) -> Statistics:
        documents, total = totals(tx)
        length = total / documents if documents else 0.0
        return Statistics(documents, length, self._containing(tx, words, documents))

    def _containing(self, tx: Transaction, words: Sequence[str], documents: int) -> dict[str, int]:
        """How many documents hold each word. Counting a common word takes long, and it stays as common for a while."""
        if abs(documents - self._counted_at) * 100 > documents:
            self._common, self._counted_at = {}, documents
        common = self._common
        containing = {word: common[word] for word in words if word in common}
        unknown = [word for word in words if word not in containing]
        for word, count in rows_in(tx, "SELECT term, doc FROM vocabulary WHERE term IN", unknown):
            containing[word] = count
            if count >= _COMMON and len(common) < _MOST_REMEMBERED:
                common[word] = count
        return containing

    def holding(self, tx: Transaction, words: Sequence[str], scope: SearchScope, limit: int) -> list[tuple[Place, int]]:
        match = " AND ".join(f'"{word}"' for word in words)
        if scope.key is not None:
            match = f'"{conversation_word(scope.key)}" AND {match}'
        condition, params = scope.condition(with_conversation=False)
        rows = tx.rows(
            "SELECT d.document, d.length FROM words JOIN documents d ON d.document = words.rowid "  # noqa: S608
            f"WHERE words MATCH ?{condition} ORDER BY words.rowid DESC LIMIT ?",
            *(match, *params, limit),
        )
        return [((document,), length) for document, length in rows]

    def load(self, tx: Transaction, places: Sequence[Place]) -> list[SearchCandidate]:
        rows = rows_in(tx, f"{_CANDIDATE} d.document IN", [place[0] for place in places])
        return [_candidate(row) for row in rows]

    def by_fragment(self, tx: Transaction, fragment: str, scope: SearchScope, limit: int) -> list[SearchCandidate]:
        condition, params = scope.condition()
        match = " AND ".join(f'"{trigram}"' for trigram in _trigrams(_plain(fragment)))
        found: list[SearchCandidate] = []
        before = _NEWEST
        while len(found) < limit:
            page = tx.rows(_FRAGMENT_PAGE, match, before, _PAGE)
            if not page:
                break
            before = page[-1][0]
            marks = ", ".join("?" * len(page))
            rows = tx.rows(
                f"{_CANDIDATE} d.document IN ({marks}){condition} ORDER BY d.document DESC",
                *(*(document for (document,) in page), *params),
            )
            found.extend(item for item in map(_candidate, rows) if holds_fragment(item.text, fragment))
        return found[:limit]


def conversation_word(key: int) -> str:
    """The word that names a conversation."""
    # FTS5's ascii tokeniser takes any letter beyond ASCII as part of a word; none of our words has one.
    return f"§{key}"


def _trigrams(text: str) -> list[str]:
    # A few, spread over the text, are as selective as all of them.
    step = max(1, (len(text) - 2) // _MOST_TRIGRAMS)
    found = dict.fromkeys(text[start : start + 3] for start in range(0, len(text) - 2, step))
    return [trigram.replace('"', '""') for trigram in found]


def _plain(text: str) -> str:
    """A text SQLite can bind: no half surrogate pairs, no NUL (FTS5 would stop there)."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _candidate(row: Row) -> SearchCandidate:
    return SearchCandidate.from_row(row, decode_text(unpack_body(row[-1], f"the index entry of m{row[1]}")))


def totals(tx: Transaction) -> tuple[int, int]:
    """How many documents and words the index has, as counted when they were added."""
    counted: dict[str, int] = dict(tx.rows("SELECT name, value FROM index_state WHERE name IN ('documents', 'words')"))
    return int(counted.get("documents", 0)), int(counted.get("words", 0))


def _entries(rows: Sequence[Row]) -> list[Entry]:
    """The entries of documents in the index, from their stored texts."""
    texts = ((number, key, decode_text(unpack_body(body, f"document {number}"))) for number, key, body in rows)
    return [(number, key, text, index_words(text)) for number, key, text in texts]


def _remove(tx: Transaction, entries: Sequence[Entry]) -> None:
    """Take documents out of the index; their entries must be what they were when they came in."""
    tx.many(
        "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
        ((number, " ".join((conversation_word(key), *words))) for number, key, _, words in entries),
    )
    tx.many(
        "INSERT INTO fragments (fragments, rowid, text) VALUES ('delete', ?, ?)",
        ((number, _plain(text)) for number, _, text, _ in entries),
    )


def _insert(tx: Transaction, entries: Sequence[Entry]) -> None:
    """Index documents."""
    tx.many(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        ((number, " ".join((conversation_word(key), *words))) for number, key, _, words in entries),
    )
    tx.many(
        "INSERT INTO fragments (rowid, text) VALUES (?, ?)", ((number, _plain(text)) for number, _, text, _ in entries)
    )


def _change_totals(tx: Transaction, **amounts: int) -> None:
    for name, amount in amounts.items():
        tx.run(
            "INSERT INTO index_state (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
            name,
            amount,
        )


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
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreBusy(
                f"{self._db.path}-wal still holds old text: another process is reading. Vacuum again later."
            )

    def _backup(self, destination: str, watch: Progress | None) -> None:
        create_private(destination)
        try:
            with closing(self._db.connect(reader=True)) as source, closing(sqlite3.connect(destination)) as target:
                # Small steps: writers go on in between, and SQLite takes what they change into the copy.
                report = None if watch is None else lambda _, left, total: watch(total - left, total)
                source.backup(target, pages=2048, sleep=0.001, progress=report)
        except sqlite3.Error as error:
            raise translate(error, destination, 0.0) from error


OLDEST_SQLITE = (3, 35)
SYNCHRONOUS = ("FULL", "NORMAL", "EXTRA", "OFF")
APPLICATION_ID = 0x4C45504F  # marks our files: `LEPO`

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
