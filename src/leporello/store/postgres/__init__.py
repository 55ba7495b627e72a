"""PostgreSQL: one database for many workers. Needs the `postgres` extra. The server itself looks after its files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from leporello.errors import StoreCorrupt
from leporello.store import Store
from leporello.store.postgres.database import SCHEMA, PostgresDatabase
from leporello.store.sql.checkup import Care, Finding, Severity
from leporello.store.sql.copying import copy_database
from leporello.store.sql.database import Progress, Row, StoreOptions, Transaction, integer
from leporello.store.sql.encoding import pack, unpack
from leporello.store.sql.indexing import CANDIDATE, IndexedChunk, Place, SearchCandidate, SearchScope, holds_fragment
from leporello.store.sql.schema import CORE, Migration, SqlDialect, apply, later_migrations, outdated, pending, table
from leporello.store.sql.search import SearchIndex
from leporello.store.sqlite import open_sqlite
from leporello.text_features.words import Statistics

_DOCUMENTS = table(
    "documents",
    "number, chunk",
    "number int, chunk int, start int, created int, role text, tool text, length int, text text, words TSVECTOR",
)
INDEX = Migration(
    "0003-search",
    (
        "CREATE EXTENSION IF NOT EXISTS pg_trgm",
        _DOCUMENTS.create,
        "CREATE INDEX documents_by_word ON documents USING gin (words)",
        "CREATE INDEX documents_by_fragment ON documents USING gin (text gin_trgm_ops)",
        "CREATE TABLE index_state (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    ),
)

_MOST_COUNTED = 5000  # a word in more documents than this is simply common; how common no longer matters
_TOTALS_SECONDS = 30.0
_FEW = 50_000  # so many documents are counted; of more, the server's own estimate is good enough

_CANDIDATE = CANDIDATE.format(text="text")
_NEWEST_FIRST = "ORDER BY d.created DESC, d.conversation DESC, d.number DESC, d.chunk DESC"


class PostgresIndexTables:
    """`IndexTables` on GIN."""

    def __init__(self) -> None:
        self._totals: tuple[float, int, int] | None = None

    def add(self, tx: Transaction, key: int, documents: Sequence[IndexedChunk]) -> None:
        # The watermark is moved at the end; that this transaction will do so must be known to `lock_out_writers` before
        # it holds anything, or each would wait for the other.
        tx.run("LOCK TABLE conversations IN ROW SHARE MODE")
        tx.many(
            "INSERT INTO documents (conversation, number, chunk, start, created, role, tool, length, text, words) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, array_to_tsvector(?::text[])) ON CONFLICT DO NOTHING",
            [(*item.columns(key), pack(item.text), sorted(set(item.words))) for item in documents],
        )

    def remove(self, tx: Transaction, key: int) -> None:
        tx.run("DELETE FROM documents WHERE conversation = ?", key)

    def lock_out_writers(self, tx: Transaction) -> None:
        # Every other transaction that writes begins with a lock in this table; reading goes on.
        tx.run("LOCK TABLE conversations IN EXCLUSIVE MODE")

    def clear(self, tx: Transaction) -> None:
        tx.run("TRUNCATE documents")

    def statistics(self, tx: Transaction, words: Sequence[str]) -> Statistics:
        documents, total = self._collection(tx)
        containing = {}
        for word in words:
            count = integer(
                tx,
                "SELECT count(*) FROM (SELECT 1 FROM documents d WHERE d.words @@ ?::tsquery LIMIT ?) counted",
                *(_query([word]), _MOST_COUNTED),
            )
            if count:
                containing[word] = count
        return Statistics(documents, total / documents if documents else 0.0, containing)

    def holding(self, tx: Transaction, words: Sequence[str], scope: SearchScope, limit: int) -> list[tuple[Place, int]]:
        condition, params = scope.condition()
        rows = tx.rows(
            "SELECT d.conversation, d.number, d.chunk, d.length FROM documents d "  # noqa: S608 - constants
            f"WHERE d.words @@ ?::tsquery{condition} "
            f"{_NEWEST_FIRST} LIMIT ?",
            *(_query(words), *params, limit),
        )
        return [(row[:3], row[3]) for row in rows]

    def load(self, tx: Transaction, places: Sequence[Place]) -> list[SearchCandidate]:
        rows = tx.rows(
            f"{_CANDIDATE} (d.conversation, d.number, d.chunk) IN "  # noqa: S608 - constants
            "(SELECT * FROM unnest(?::bigint[], ?::bigint[], ?::bigint[]))",
            *([place[part] for place in places] for part in range(3)),
        )
        return [_candidate(row) for row in rows]

    def by_fragment(self, tx: Transaction, fragment: str, scope: SearchScope, limit: int) -> list[SearchCandidate]:
        condition, params = scope.condition()
        spellings = {fragment, fragment.lower(), fragment.upper(), fragment.capitalize()}
        patterns = [f"%{_literal(pack(spelling))}%" for spelling in sorted(spellings)]
        rows = tx.rows(
            f"{_CANDIDATE} d.text ILIKE ANY (?::text[]){condition} {_NEWEST_FIRST} LIMIT ?", *(patterns, *params, limit)
        )
        return [found for found in map(_candidate, rows) if holds_fragment(found.text, fragment)]

    def _collection(self, tx: Transaction) -> tuple[int, int]:
        """Documents and words in all; counted now and then, because ranking needs no more."""
        now = time.monotonic()
        if self._totals is None or now - self._totals[0] > _TOTALS_SECONDS:
            self._totals = (now, *_count(tx))
        return self._totals[1:]


def _count(tx: Transaction) -> tuple[int, int]:
    estimate = tx.row("SELECT reltuples FROM pg_class WHERE oid = to_regclass('documents')") or (0,)
    if estimate[0] < _FEW:
        row = tx.row("SELECT count(*), COALESCE(SUM(d.length), 0) FROM documents d") or (0, 0)
        return int(row[0]), int(row[1])
    sample = tx.row("SELECT COALESCE(avg(d.length), 0) FROM documents d TABLESAMPLE SYSTEM (1)") or (0,)
    return int(estimate[0]), int(estimate[0] * sample[0])


def _query(words: Sequence[str]) -> str:
    # Our words are letters, digits and underscores: quoting is enough.
    return " & ".join(f"'{word}'" for word in words)


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _candidate(row: Row) -> SearchCandidate:
    return SearchCandidate.from_row(row, unpack(row[-1]))


class PostgresCare(Care):
    _db: PostgresDatabase

    def __init__(self, db: PostgresDatabase, index: SearchIndex, options: StoreOptions) -> None:
        super().__init__(db, index)
        self._options = options

    def _integrity(self) -> Iterator[Finding]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND NOT i.indisvalid",
                SCHEMA,
            )
        for (name,) in rows:
            yield Finding("pages", Severity.DAMAGE, name, "the server marks this index as invalid")

    def _index_findings(self, tx: Transaction) -> Iterator[Finding]:
        beyond = integer(
            tx,
            "SELECT count(*) FROM documents d JOIN conversations c ON c.conversation = d.conversation "
            "WHERE d.number > c.indexed OR d.length < length(d.words)",
        )
        if beyond:
            yield Finding("index", Severity.INDEX, "documents", f"{beyond} documents do not fit the log")
        counted = tx.rows(
            "SELECT c.conversation, c.indexed, COALESCE((SELECT SUM(a.messages) FROM activity a "
            "WHERE a.conversation = c.conversation), 0) FROM conversations c"
        )
        for key, indexed, found in counted:
            if int(found) != indexed:
                text = f"indexed up to m{indexed}, but {found} messages were counted on the way"
                yield Finding("index", Severity.INDEX, f"conversation {key}", text)

    def sizes(self) -> Mapping[str, int]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT c.relname, pg_total_relation_size(c.oid) - "
                "COALESCE((SELECT SUM(pg_relation_size(i.indexrelid)) FROM pg_index i WHERE i.indrelid = c.oid), 0) "
                "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r' "
                "UNION ALL SELECT c.relname, pg_relation_size(c.oid) FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'i' ORDER BY 2 DESC",
                *(SCHEMA, SCHEMA),
            )
        return {name: int(size) for name, size in rows}

    def vacuum(self) -> None:
        with self._db.read() as tx:
            tables = tx.rows("SELECT tablename FROM pg_tables WHERE schemaname = ?", SCHEMA)
        with self._db.alone() as connection:
            for (table,) in tables:
                connection.execute(f'VACUUM (ANALYZE) "{SCHEMA}"."{table}"')

    def _backup(self, destination: str, watch: Progress | None) -> None:
        with open_sqlite(destination, self._options) as target:
            copy_database(self._db, target.database, watch)


# Bodies are compressed already; and a conversation's row changes with every append, so its pages keep room for that.
_STORAGE = Migration(
    "0002-storage",
    (
        "ALTER TABLE messages ALTER COLUMN body SET STORAGE EXTERNAL",
        "ALTER TABLE artifacts ALTER COLUMN body SET STORAGE EXTERNAL",
        "ALTER TABLE generations ALTER COLUMN entries SET STORAGE EXTERNAL",
        "ALTER TABLE folds ALTER COLUMN body SET STORAGE EXTERNAL",
        "ALTER TABLE ledgers ALTER COLUMN data SET STORAGE EXTERNAL",
        "ALTER TABLE conversations SET (fillfactor = 50)",
    ),
)
MIGRATIONS = (CORE, _STORAGE, INDEX, *later_migrations(4))
DIALECT = SqlDialect(key="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", blob="BYTEA", clustered="")

# Any number will do, as long as all workers take the same.
_MIGRATION_LOCK = 0x4C45504F


def open_postgres(url: str, options: StoreOptions) -> Store:
    """Open a database; create or migrate the schema unless it is only to be read."""
    db = PostgresDatabase(url, options)
    try:
        with db.patiently():
            _prepare(db)
    except BaseException:
        db.close()
        raise
    index = SearchIndex(db, PostgresIndexTables())
    return Store(db, index, PostgresCare(db, index, options))


def _prepare(db: PostgresDatabase) -> None:
    with db.read() as tx:
        missing = pending(MIGRATIONS, _applied(tx, db.url), db.url)
    if missing and db.read_only:
        raise outdated(db.url)
    for migration in missing:
        with db.write() as tx:
            tx.row("SELECT pg_advisory_xact_lock(?)", _MIGRATION_LOCK)
            # Another worker may have been faster.
            if migration in pending(MIGRATIONS, _applied(tx, db.url), db.url):
                tx.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                apply(tx, migration, DIALECT, db.now())


def _applied(tx: Transaction, url: str) -> set[str]:
    """The migrations a database has. Raises `StoreCorrupt` for a schema of another program."""
    tables = {name for (name,) in tx.rows("SELECT tablename FROM pg_tables WHERE schemaname = ?", SCHEMA)}
    if not tables:
        return set()
    if "migrations" not in tables:
        raise StoreCorrupt(f"The schema {SCHEMA!r} of {url} belongs to another program. It was left alone.")
    return {name for (name,) in tx.rows("SELECT name FROM migrations")}
