"""Promise 11, atomic: killed, out of space or locked at any statement, the store is as before or as after.

What `kill -9` leaves behind is what lies on the disk at that moment: the files are copied before each statement, and
each copy is opened. `tests/store` kills real processes at random moments, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leporello.errors import StoreBusy, StoreUnavailable
from leporello.events import CompactionReport, Outcome, Span, ViewEntry
from leporello.messages import Message
from leporello.store import Store, StoreOptions, open_store
from leporello.store.records import CompactionRecord, LedgerSnapshot, ModelCall, StoredFold
from leporello.usage import CanonicalUsage

IMPATIENT = StoreOptions(wait_seconds=0.05)
LONG = random.Random(11).randbytes(24_000).hex()
"""Nothing that could be packed into a page or two."""
CALL = ModelCall(CanonicalUsage(100, 10), "m", cost=0.5)
Step = Callable[[Store], Any]


def said(text: str) -> Message:
    return {"role": "user", "content": text}


def compaction(store: Store) -> CompactionRecord:
    view = store.views.view("a")
    return CompactionRecord(
        base_generation=view.generation,
        base_last=view.last,
        entries=[ViewEntry(inline={"role": "assistant", "content": LONG}, fold="f9"), ViewEntry(ref=view.last)],
        report=CompactionReport(Outcome.COMMITTED, fold="f9", covered=Span(1, view.last - 1)),
        folds=[StoredFold("f9", Span(1, view.last - 1), LONG)],
        ledger=LedgerSnapshot(view.last, 1, b"ledger"),
    )


STEPS: dict[str, Step] = {
    "append": lambda store: store.log.append("a", [said(LONG[number * 8_000 :][:8_000]) for number in range(6)]),
    "record": lambda store: store.log.record("a", said(LONG), CALL, {"measured": 7}),
    "compact": lambda store: store.views.commit("a", compaction(store)),
    "undo": lambda store: store.views.undo("a"),
    "delete": lambda store: store.conversations.delete("a"),
}


def filled(path: Path) -> Path:
    with open_store(str(path)) as store:
        store.conversations.create("a")
        store.log.append("a", [said(f"message {number}") for number in range(12)])
        made = compaction(store)
        store.views.commit("a", CompactionRecord(0, 12, made.entries[-1:], CompactionReport(Outcome.COMMITTED)))
    return path


def everything(store: Store) -> tuple[Any, ...]:
    """All that a conversation is."""
    if not store.conversations.exists("a"):
        return ()
    return (
        [stored.message for stored in store.log.iterate("a")],
        store.views.view("a").lines,
        store.views.folds("a"),
        [(step.generation, step.kind, step.entries) for step in store.views.generations("a")],
        [(attempt.number, attempt.generation) for attempt in store.views.attempts("a")],
        [session.end_reason for session in store.sessions.all("a")],
        store.usage.totals("a"),
        store.state.items("a"),
        store.ledgers.latest("a", 1, 10**6),
    )


def copied(path: Path, folder: Path) -> Path:
    folder.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copy(file, folder / file.name)
    return folder / path.name


@pytest.mark.fault(
    "a compaction is written in two transactions",
    "store/sql/views.py",
    old="            _insert_folds(tx, locked.key, generation, folds)",
    new='            tx.run("COMMIT"); tx.run("BEGIN IMMEDIATE"); _insert_folds(tx, locked.key, generation, folds)',
)
@pytest.mark.parametrize("step", ["compact", "append", "record", "undo", "delete"])
def test_killed_before_any_statement_it_is_as_before_or_as_after(tmp_path: Path, step: str) -> None:
    path = filled(tmp_path / "store.db")
    copies: list[Path] = []
    with open_store(str(path)) as store:
        before = everything(store)
        with store.database.alone() as connection:  # type: ignore[attr-defined]
            connection.set_trace_callback(lambda _: copies.append(copied(path, tmp_path / f"copy-{len(copies)}")))
        STEPS[step](store)
        with store.database.alone() as connection:  # type: ignore[attr-defined]
            connection.set_trace_callback(None)
        after = everything(store)
    assert before != after
    states = []
    for copy in copies:
        with open_store(str(copy)) as store:
            assert store.care.checkup().findings == ()
            found = everything(store)
        assert found in (before, after)
        states.append(found == after)
    assert len(states) >= 4
    assert states == sorted(states), "what was done came undone"
    assert not states[0]


@pytest.mark.fault(
    "a full disk goes unnoticed",
    "store/sqlite/database.py",
    old="                _roll_back(connection)\n                raise\n\n    @contextmanager\n    def read(self)",
    new="                _roll_back(connection)\n\n    @contextmanager\n    def read(self)",
)
@pytest.mark.parametrize("step", ["compact", "append", "record"])
def test_a_full_disk_leaves_it_as_before_whenever_it_is_full(tmp_path: Path, step: str) -> None:
    """With room for no page more, one more, and so on, until there is enough."""
    path = filled(tmp_path / "store.db")
    refused = 0
    with open_store(str(path)) as store:
        before = everything(store)
        while refused < 60:
            with store.database.alone() as connection:  # type: ignore[attr-defined]
                pages = connection.execute("PRAGMA page_count").fetchone()[0]
                connection.execute(f"PRAGMA max_page_count = {pages + refused}")
            try:
                STEPS[step](store)
                break
            except StoreUnavailable:
                refused += 1
            except sqlite3.Error as error:
                pytest.fail(f"an error of the database came through: {error}")
            assert everything(store) == before
        assert refused >= 2
        assert everything(store) != before


@pytest.mark.parametrize("step", list(STEPS))
def test_a_locked_database_leaves_it_as_before(tmp_path: Path, step: str) -> None:
    path = filled(tmp_path / "store.db")
    other = sqlite3.connect(path, isolation_level=None)
    with open_store(str(path), IMPATIENT) as store:
        before = everything(store)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            STEPS[step](store)
        assert everything(store) == before
        other.execute("ROLLBACK")
        STEPS[step](store)
        assert everything(store) != before
    other.close()
