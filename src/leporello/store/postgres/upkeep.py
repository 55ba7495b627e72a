"""Looking after a PostgreSQL store. Damage of its files is the server's own concern (`amcheck`, checksums)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from leporello.errors import InputError
from leporello.store.base import Watch
from leporello.store.postgres.database import SCHEMA, PostgresDatabase
from leporello.store.records import Finding, Severity
from leporello.store.sql.copying import copy_database
from leporello.store.sql.database import Transaction
from leporello.store.sql.store import SqlStore


class PostgresUpkeep:
    """`Upkeep` of a database."""

    def __init__(self, db: PostgresDatabase, new_file: Callable[[str], SqlStore]) -> None:
        self._db = db
        self._new_file = new_file

    def integrity(self) -> Iterator[Finding]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND NOT i.indisvalid",
                SCHEMA,
            )
        for (name,) in rows:
            yield Finding("pages", Severity.DAMAGE, name, "the server marks this index as invalid")

    def index_findings(self, tx: Transaction) -> Iterator[Finding]:
        beyond = tx.row(
            "SELECT count(*) FROM documents d JOIN conversations c ON c.conversation = d.conversation "
            "WHERE d.number > c.indexed OR d.length < length(d.words)"
        ) or (0,)
        if beyond[0]:
            yield Finding("index", Severity.INDEX, "documents", f"{beyond[0]} documents do not fit the log")
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

    def backup(self, destination: str, watch: Watch | None = None) -> None:
        if Path(destination).exists():
            raise InputError("The file exists. A backup never overwrites; choose another name.", destination)
        with self._new_file(destination) as target:
            copy_database(self._db, target.database, watch)
