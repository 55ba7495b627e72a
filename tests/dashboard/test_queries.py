"""What pages ask of a store: through indexes, as much as they show, and never a write."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from leporello.config import Home, load_settings
from leporello.events import Span
from leporello.gateway.auth import User
from leporello.gateway.dashboard.charts import report
from leporello.gateway.dashboard.reader import DashboardReader
from leporello.store import Store, StoreOptions, open_store
from leporello.store.postgres.database import PostgresTransaction
from leporello.store.records import ConversationFilter, Metadata, ModelCall, SearchQuery
from leporello.store.sqlite.database import SqliteTransaction
from leporello.usage import CanonicalUsage
from tests.dashboard import scenes
from tests.gateway.house import opened
from tests.store.server import Server
from tests.store.test_sqlite_costs import steps

ALL = User("session")
ADA = User("session", "ada", "ada")
QUICK = StoreOptions(synchronous="OFF")
"""Nothing here must survive a power cut."""
Asked = list[tuple[str, tuple[Any, ...]]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def crowded(store: Store, count: int) -> None:
    """Many small conversations, one of them longer and folded; of two owners, over half a year."""
    now = time.time()
    for number in range(count):
        about = Metadata(platform=f"p{number % 3}", model=f"m{number % 5}", owner="ada" if number % 50 == 0 else "bob")
        id = store.conversations.create(f"c{number}", about, created_at=now - (count - number) * 15_000_000 / count).id
        if number % 20 == 0:
            store.log.append(id, [scenes.user(f"what about part {number}?")], at=[now - (count - number) * 60])
            store.usage.add(id, ModelCall(CanonicalUsage(10, 10, 10, 10, 0), "m", cost=0.1))
    scenes.long(store, "long", 600)
    store.index.catch_up()


def everything(store: Store, home: Path) -> list[Callable[[], object]]:
    """The reading work of every page."""
    reader = DashboardReader(store, load_settings({}, environ={}, home=Home(home)))
    second = reader.page(ALL, ConversationFilter(), None)[1]
    return [
        lambda: reader.page(ALL, ConversationFilter(), None),
        lambda: reader.page(ALL, ConversationFilter(), second),
        lambda: reader.page(ADA, ConversationFilter(platform="p1", model="m2"), None),
        lambda: reader.search(SearchQuery("what about part 40", catch_up=False)),
        lambda: reader.search(SearchQuery("part", owner="ada", platform="p0", catch_up=False)),
        lambda: reader.conversation(ALL, "long"),
        lambda: reader.conversation(ALL, "long").overview(),
        lambda: reader.conversation(ALL, "long").window(),
        lambda: reader.conversation(ALL, "long").usage(),
        lambda: reader.conversation(ALL, "long").fold("f2"),
        lambda: reader.conversation(ALL, "long").messages(Span(4, 540), 300),
        lambda: reader.conversation(ALL, "long").comparison(2),
        lambda: report(store, ADA, 30, time.time()),
        lambda: report(store, ALL, 7, time.time()),
        lambda: store.conversations.pulse("long"),
    ]


@contextmanager
def listening(kind: type, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """Notes every query."""
    asked: Asked = []
    for name in ("row", "rows"):
        plain = getattr(kind, name)

        def noted(self: Any, sql: str, *params: Any, plain: Any = plain) -> Any:
            asked.append((sql, params))
            return plain(self, sql, *params)

        monkeypatch.setattr(kind, name, noted)
    yield asked
    monkeypatch.undo()


def test_sqlite_scans_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10,000 conversations no page's query walks through a whole table."""
    with open_store(f"sqlite:///{tmp_path}/store.db", QUICK) as store:
        crowded(store, 10_000)
        with listening(SqliteTransaction, monkeypatch) as asked:
            for work in everything(store, tmp_path):
                work()
        assert len(asked) > 40
        with store.database.read() as tx:
            for sql, params in asked:
                for plan in tx.rows(f"EXPLAIN QUERY PLAN {sql}", *params):
                    told = plan[3]
                    # The index's own tables: two rows, and the full-text index, which is looked up by its words.
                    if "SCAN" in told and not re.search(r"index_state|VIRTUAL TABLE|CONSTANT ROW", told):
                        raise AssertionError(f"{told}\n{sql}")


def test_postgres_scans_no_table(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on PostgreSQL, by its own plans."""
    url = server.emptied_database()
    with open_store(url) as store:
        crowded(store, 1_000)
        with listening(PostgresTransaction, monkeypatch) as asked:
            for work in everything(store, tmp_path):
                work()
        with store.database.read() as tx:
            # The planner rightly reads small tables as a whole; told not to, it must find another way for each query.
            tx.run("SET LOCAL enable_seqscan = off")
            for sql, params in asked:
                if "pg_class" in sql or "SUM(d.length)" in sql:
                    continue  # Statistics of the search index, counted twice a minute at most.
                plan = "\n".join(row[0] for row in tx.rows(f"EXPLAIN {sql}", *params))
                assert "Seq Scan" not in plan, f"{plan}\n{sql}"


def test_a_page_of_the_list_costs_the_same_in_a_large_store(tmp_path: Path) -> None:
    """Counted in steps of the database: ten times as many conversations do not make the first page dearer."""
    costs = []
    for count in (400, 4_000):
        with open_store(f"sqlite:///{tmp_path}/{count}.db", QUICK) as store:
            for number in range(count):
                store.conversations.create(f"c{number}", Metadata(title=f"t{number}"))
            reader = DashboardReader(store, load_settings({}, environ={}, home=Home(tmp_path)))
            reader.page(ALL, ConversationFilter(), None)
            costs.append(steps(store, lambda reader=reader: reader.page(ALL, ConversationFilter(), None)))  # type: ignore[misc]
    # Looking whether there are more than a stretch of 2,000 walks over as many entries of an index at most.
    assert costs[1] < costs[0] + 2_000 * 12
    assert costs[0] > 100


def test_looking_writes_nothing(tmp_path: Path) -> None:
    """All pages of a running gateway are read, and no other connection sees a change; nor is any lease taken."""
    with opened(tmp_path) as house:
        scenes.folded(house.store, house.gateway.settings.home)
        house.store.index.catch_up()
        other = sqlite3.connect(f"{tmp_path}/gateway.db")
        before = other.execute("PRAGMA data_version").fetchone()
        for path in PAGES:
            assert httpx2.get(house.url + path, timeout=60).status_code == 200, path
        assert other.execute("PRAGMA data_version").fetchone() == before
        other.close()


def test_a_store_that_can_only_be_read(tmp_path: Path) -> None:
    """Every page of it is shown; buttons say that it can't be written."""
    with open_store(f"sqlite:///{tmp_path}/gateway.db") as store:
        scenes.folded(store, Home(tmp_path))
    with open_store(f"sqlite:///{tmp_path}/gateway.db", StoreOptions(read_only=True)) as store:
        reader = DashboardReader(store, load_settings({}, environ={}, home=Home(tmp_path)))
        conversation = reader.conversation(ALL, "build-42")
        reader.page(ALL, ConversationFilter(), None)
        conversation.overview()
        conversation.window()
        reader.search(SearchQuery("test", catch_up=False))
        report(store, ALL, 30, time.time())


PAGES = (
    "/",
    "/?platform=chat",
    "/search?q=test",
    "/insights",
    "/settings",
    "/c/build-42",
    "/c/build-42/window",
    "/c/build-42/usage",
    "/c/build-42/fold/f1",
    "/c/build-42/messages?first=1&last=100",
    "/c/build-42/m/20",
    "/c/build-42/m/20/text?block=0",
    "/c/build-42/compactions/1",
    "/c/build-42/live?once",
    "/c/build-42/export",
    "/live?once",
)
