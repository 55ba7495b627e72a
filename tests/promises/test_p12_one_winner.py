"""Promise 12, one winner: of many compactors one commits, a late owner can't, and appends never wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from leporello.config import Home, load_settings
from leporello.conversation import Conversation, compactor
from leporello.conversation.compact import CompactionJob
from leporello.errors import LeaseLost, StoreConflict
from leporello.events import CompactionReport, Outcome, Span, ViewEntry
from leporello.messages import Message, text_of
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import CompactionRecord, StoredFold
from leporello.summaries.base import Summary, SummaryTask
from leporello.testing.sessions import SessionSpec, generate

SESSION = generate(SessionSpec(seed=121, messages=60, tokens=12_000, images=0)).messages
LATE: Message = {"role": "user", "content": "One more thing: keep the tests green."}


@dataclass
class Meanwhile:
    """A summariser during whose work something happens; then the summary is made without a model."""

    happens: Callable[[], None]
    asked: int = field(default=0)

    def summarise(self, task: SummaryTask) -> Summary:
        self.asked += 1
        if self.asked == 1:
            self.happens()
        return Summary(None)


@dataclass
class Clock:
    """The time that all users of a store share."""

    seconds: float = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def small(store: Store) -> CompactionRecord:
    view = store.views.view("a")
    return CompactionRecord(
        base_generation=view.generation,
        base_last=view.last,
        entries=[ViewEntry(inline={"role": "assistant", "content": "summary"}, fold="f1"), ViewEntry(ref=view.last)],
        report=CompactionReport(Outcome.COMMITTED, fold="f1", covered=Span(1, view.last - 1)),
        folds=[StoredFold("f1", Span(1, view.last - 1), "summary")],
    )


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compaction by hand waits for whoever is compacting; here that one would never be done before it."""
    monkeypatch.setattr(compactor, "MOST_WAITS", 2)
    monkeypatch.setattr(compactor, "WAIT_SECONDS", 0.05)


@pytest.mark.fault(
    "a lease that somebody holds is given away",
    "store/sql/inbox.py",
    old="WHERE {self._table}.expires <= ? OR",
    new="WHERE ? > 0 OR",
)
def test_while_one_compacts_the_others_are_told_so_and_appends_go_through(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    others: list[CompactionReport] = []
    settings = load_settings({"compression.deadline": 0}, {}, Home(tmp_path))

    def meanwhile() -> None:
        for _ in range(5):
            with Conversation.open("a", window=4_000, store=url, settings=settings) as other:
                others.append(other.compact())
                other.append(LATE)

    with Conversation.open("a", window=4_000, store=url, summariser=Meanwhile(meanwhile)) as conversation:
        conversation.append(*SESSION)
        assert conversation.compact().committed
        assert [report.outcome for report in others] == [Outcome.BLOCKED] * 5
        assert all("Another process" in report.reason for report in others)
        assert conversation.runtime.log.store.views.view("a").generation == 1
        assert text_of(conversation.messages[-1]).count("keep the tests green") == 5


@pytest.mark.fault(
    "the view that was found too large is not compared",
    "conversation/compactor.py",
    old="            decided=decided,",
    new="            decided=None,",
)
@pytest.mark.parametrize("deferred", [True, False])
def test_what_somebody_compacted_in_the_meantime_is_not_compacted_again(tmp_path: Path, deferred: bool) -> None:
    """Both found the same view too large; the second one begins when the first is done, before it has looked again."""
    url = f"sqlite:///{tmp_path}/store.db"

    def meanwhile(_: str) -> None:
        with Conversation.open("a", window=4_000, store=url) as other:
            assert other.compact().committed

    with Conversation.open("a", window=4_000, store=url) as conversation:
        conversation.append(*SESSION)
        runtime = conversation.runtime
        runtime.hooks.before.append(meanwhile)
        if deferred:
            report = runtime.compactor.do(CompactionJob("a", 0, window=4_000))
            assert report is not None
            assert report.outcome is Outcome.BLOCKED
        else:
            assert runtime.compactor.shrink("overflow").committed, "what the other made is as good"
        assert runtime.log.view.generation == runtime.log.store.views.view("a").generation == 1
        assert [attempt.report.outcome for attempt in runtime.log.store.views.attempts("a")] == [Outcome.COMMITTED]


@pytest.mark.fault(
    "the base of a compaction is not compared",
    "store/sql/views.py",
    old="if locked.generation != compaction.base_generation:",
    new="if False:",
)
def test_of_many_that_were_made_from_one_view_one_commits(tmp_path: Path) -> None:
    """All at the same moment, without a lease."""
    outcomes: list[str] = []
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        store.conversations.create("a")
        store.log.append("a", SESSION[:12])
        made, start = small(store), threading.Barrier(6)

        def commit(number: int) -> None:
            start.wait()
            mine = StoredFold(f"f{number}", made.folds[0].covered, "summary")
            try:
                store.views.commit("a", CompactionRecord(0, 12, made.entries[1:], made.report, folds=[mine]))
                outcomes.append("committed")
            except StoreConflict:
                outcomes.append("refused")

        threads = [threading.Thread(target=commit, args=(number,)) for number in range(1, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["committed"] + ["refused"] * 5
        assert store.views.view("a").generation == 1
        assert len(store.views.folds("a")) == 1


@pytest.mark.fault(
    "a late owner may commit",
    "store/sql/views.py",
    old="if row is None or row[0] != lease.token:",
    new="if False:",
)
def test_an_owner_who_slept_too_long_writes_nothing(tmp_path: Path) -> None:
    """Its lease ran out and another took it over; that one has not committed yet."""
    clock = Clock()
    with open_store(f"sqlite:///{tmp_path}/store.db", StoreOptions(clock=clock)) as store:
        store.conversations.create("a")
        store.log.append("a", SESSION[:12])
        late = store.leases.acquire("a", "late", seconds=10)
        assert late is not None
        assert store.leases.acquire("a", "other", seconds=10) is None
        clock.seconds += 11
        other = store.leases.acquire("a", "other", seconds=10)
        assert other is not None
        with pytest.raises(LeaseLost):
            store.views.commit("a", small(store), late)
        assert store.views.view("a").generation == 0
        assert store.views.commit("a", small(store), other).generation == 1


def test_a_dead_owner_holds_nobody_up(tmp_path: Path) -> None:
    """Ten seconds after its last sign the lease is free, and what it had made can't be committed any more."""
    clock = Clock()
    with open_store(f"sqlite:///{tmp_path}/store.db", StoreOptions(clock=clock)) as store:
        settings = load_settings({"compression.deadline": 0}, {}, Home(tmp_path))
        conversation = Conversation.open("a", window=4_000, store=store, settings=settings)
        conversation.append(*SESSION)
        dead = store.leases.acquire("a", "dead", seconds=10)
        prepared = small(store)
        assert conversation.compact().outcome is Outcome.BLOCKED
        clock.seconds += 10
        assert conversation.compact().committed
        with pytest.raises((LeaseLost, StoreConflict)):
            store.views.commit("a", prepared, dead)
