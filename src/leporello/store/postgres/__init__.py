"""PostgreSQL: one database for many workers. Needs the `postgres` extra. Damage of its files is the server's own concern."""

from __future__ import annotations

from leporello.errors import StoreCorrupt, StoreUnavailable
from leporello.store.options import StoreOptions
from leporello.store.postgres.database import SCHEMA, PostgresDatabase
from leporello.store.postgres.index import INDEX, PostgresIndexTables
from leporello.store.postgres.upkeep import PostgresUpkeep
from leporello.store.sql.database import Transaction
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
from leporello.store.sqlite import open_sqlite

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
MIGRATIONS: tuple[Migration, ...] = (
    CORE,
    _STORAGE,
    INDEX,
    Migration("0004-listing", LISTING),
    inbox_migration("0005-inbox"),
    Migration("0006-masked-ledgers", (UNMASKED_LEDGERS,)),
)
DIALECT = Dialect(key="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", blob="BYTEA", clustered="")

# Any number will do, as long as all workers take the same.
_MIGRATION_LOCK = 0x4C45504F


def open_postgres(url: str, options: StoreOptions) -> SqlStore:
    """Open a database; create or migrate the schema unless it is only to be read."""
    db = PostgresDatabase(url, options.wait_seconds, options.connections, options.read_only, options.clock)
    try:
        _prepare(db)
    except BaseException:
        db.close()
        raise
    tables = PostgresIndexTables()
    upkeep = PostgresUpkeep(db, lambda path: open_sqlite(path, options))
    return SqlStore(Backend(db, tables, tables, upkeep))


def _prepare(db: PostgresDatabase) -> None:
    with db.read() as tx:
        applied = _applied(tx, db.url)
        missing = MIGRATIONS if applied is None else tuple(pending(MIGRATIONS, applied, db.url))
    if not missing:
        return
    if db.read_only:
        raise StoreUnavailable(f"{db.url} must be brought up to date first. Open it once where it can be written.")
    for migration in missing:
        with db.write() as tx:
            tx.row("SELECT pg_advisory_xact_lock(?)", _MIGRATION_LOCK)
            # Another worker may have been faster.
            done = _applied(tx, db.url) or set()
            if migration in pending(MIGRATIONS, done, db.url):
                tx.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                tx.run(MIGRATIONS_TABLE)
                apply(tx, migration, DIALECT, db.now())


def _applied(tx: Transaction, url: str) -> set[str] | None:
    """The migrations a database has; None when it has no store yet, `StoreCorrupt` for somebody else's schema."""
    tables = {name for (name,) in tx.rows("SELECT tablename FROM pg_tables WHERE schemaname = ?", SCHEMA)}
    if not tables:
        return None
    if "migrations" not in tables:
        raise StoreCorrupt(f"The schema {SCHEMA!r} of {url} belongs to another program. It was left alone.")
    return {name for (name,) in tx.rows("SELECT name FROM migrations")}
