"""The schema: keys that can be spread over machines, migrations that never change once released."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import psycopg
import pytest

from leporello.store import open_store, postgres, sqlite
from leporello.store.sql.schema import COLUMNS, MIGRATIONS_TABLE, Migration
from tests.store.contract.base import user
from tests.store.server import Server

# A released migration stays as it is: stores out there have run it. A change is a new migration at the end.
RELEASED = {
    "sqlite": {
        "0001-conversations": "0a50d511e02a3ea7",
        "0002-search": "6d64da0ee578bac3",
        "0003-listing": "e44d89e433fddd95",
        "0004-inbox": "11cc07b561318350",
    },
    "postgres": {
        "0001-conversations": "0a50d511e02a3ea7",
        "0002-storage": "8e18b62312449b81",
        "0003-search": "9541d6df78932f30",
        "0004-listing": "e44d89e433fddd95",
        "0005-inbox": "11cc07b561318350",
    },
}

# Not conversation data: the directory finds the conversation of an id, the rest belongs to the store or its index.
KEYED_OTHERWISE = {"directory", "migrations", "index_state", "documents", "reservations"}


def fingerprint(migration: Migration) -> str:
    return hashlib.blake2b("\n".join(migration.statements).encode(), digest_size=8).hexdigest()


@pytest.mark.parametrize(("name", "module"), [("sqlite", sqlite), ("postgres", postgres)])
def test_released_migrations_never_change(name: str, module: object) -> None:
    current = {migration.name: fingerprint(migration) for migration in module.MIGRATIONS}  # type: ignore[attr-defined]
    for migration, expected in RELEASED[name].items():
        assert current[migration] == expected
    assert list(current) == sorted(current)


def test_every_key_begins_with_the_conversation_in_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    connection = sqlite3.connect(path)
    tables = [
        name
        for name, sql in connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
        if name not in KEYED_OTHERWISE and not name.startswith(("sqlite_", "words", "fragments", "vocabulary"))
    ]
    assert {*COLUMNS, "conversations"} == set(tables)
    for table in tables:
        key = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5] == 1]
        assert key == ["conversation"], table
        for index in connection.execute(f"PRAGMA index_list({table})"):
            if index[2]:
                first = connection.execute(f"PRAGMA index_info({index[1]})").fetchone()
                assert first[2] == "conversation", index[1]
    connection.close()


def test_every_key_begins_with_the_conversation_in_postgres(server: Server, postgres_url: str) -> None:
    with open_store(postgres_url), psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "SELECT t.relname, a.attname FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid "
            "JOIN pg_namespace n ON n.oid = t.relnamespace "
            "JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0] "
            "WHERE n.nspname = 'leporello' AND (i.indisunique OR i.indisprimary)"
        ).fetchall()
    checked = {table for table, _ in rows}
    assert set(COLUMNS) | {"conversations", "documents"} <= checked
    for table, column in rows:
        if table not in KEYED_OTHERWISE - {"documents"}:
            assert column == "conversation", table


def test_a_copy_takes_every_column_of_every_table(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    connection = sqlite3.connect(path)
    for table in COLUMNS:
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} - {"conversation"}
        assert columns == set(COLUMNS[table]), table
    connection.close()


@pytest.mark.parametrize("count", range(len(sqlite.MIGRATIONS)))
def test_a_sqlite_store_of_any_earlier_schema_is_brought_up_to_date(tmp_path: Path, count: int) -> None:
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    if count:
        connection.execute(MIGRATIONS_TABLE)
        connection.execute(f"PRAGMA application_id = {sqlite.APPLICATION_ID}")
    for migration in sqlite.MIGRATIONS[:count]:
        for statement in migration.statements:
            connection.execute(sqlite.DIALECT.fill(statement))
        connection.execute("INSERT INTO migrations VALUES (?, 0)", (migration.name,))
    connection.commit()
    connection.close()
    with open_store(str(path)) as store:
        store.conversations.create("c")
        store.log.append("c", [user("hello")])
        assert store.care.checkup().clean


@pytest.mark.parametrize("count", range(len(postgres.MIGRATIONS)))
def test_a_postgres_store_of_any_earlier_schema_is_brought_up_to_date(server: Server, count: int) -> None:
    url = server.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA leporello")
        connection.execute("SET search_path = leporello, public")
        if count:
            connection.execute(MIGRATIONS_TABLE)
        for migration in postgres.MIGRATIONS[:count]:
            for statement in migration.statements:
                connection.execute(postgres.DIALECT.fill(statement))  # type: ignore[arg-type]
            connection.execute("INSERT INTO migrations VALUES (%s, 0)", (migration.name,))
    with open_store(url) as store:
        store.conversations.create("c")
        store.log.append("c", [user("hello")])
        assert store.care.checkup().clean


def test_a_failing_migration_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        store.conversations.create("c")
    broken = Migration("0003-broken", ("CREATE TABLE extra (x INTEGER)", "CREATE TABLE extra (x INTEGER)"))
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "MIGRATIONS", (*sqlite.MIGRATIONS, broken))
        with pytest.raises(Exception, match="already exists"):
            open_store(str(path))
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'").fetchone() == (0,)
    connection.close()
    with open_store(str(path)) as store:
        assert store.conversations.exists("c")
