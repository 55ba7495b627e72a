"""PostgreSQL: one database for many workers. Needs the `postgres` extra. The server itself looks after its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leporello.errors import StoreCorrupt
from leporello.store import Store
from leporello.store.postgres.database import SCHEMA, PostgresDatabase
from leporello.store.postgres.index import INDEX, PostgresIndexTables
from leporello.store.records import Finding, Severity
from leporello.store.sql.checkup import Care
from leporello.store.sql.copying import copy_database
from leporello.store.sql.database import Progress, StoreOptions, Transaction, integer
from leporello.store.sql.schema import CORE, Migration, SqlDialect, apply, later_migrations, outdated, pending
from leporello.store.sql.search import SearchIndex
from leporello.store.sqlite import open_sqlite


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
    db = PostgresDatabase(url, options.wait_seconds, options.connections, options.read_only, options.clock)
    try:
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
