"""Views: folded, extended by appending, undone; committed once per generation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import InputError, LeaseLost, NotFound, StoreConflict
from leporello.events import CompactionReport, Outcome, Span, Verification, ViewEntry
from leporello.store import Store
from leporello.store.records import CompactionRecord, LedgerSnapshot, StoredFold
from leporello.usage import CanonicalUsage
from tests.store.contract.base import (
    ContractBase,
    assistant,
    contents,
    example_settings,
    fold_all_but,
    user,
)

DONE = CompactionReport(Outcome.COMMITTED)


def filled(store: Store, count: int, id: str = "c") -> None:
    """A conversation with messages 1 to `count`."""
    store.conversations.create(id)
    store.log.append(id, [user(str(n)) for n in range(1, count + 1)])


class ViewsContract(ContractBase):
    """`store.views`."""

    def test_before_any_compaction_the_view_is_the_log(self, store: Store) -> None:
        store.conversations.create("c")
        assert store.views.view("c").lines == ()
        store.log.append("c", [user("1"), assistant("2")])
        view = store.views.view("c")
        assert view.messages == [user("1"), assistant("2")]
        assert [line.number for line in view.lines] == [1, 2]
        assert (view.generation, view.last, view.folds, view.waits_for_hard_limit) == (0, 2, 0, False)

    def test_a_commit_shows_entries_then_whatever_is_appended(self, store: Store) -> None:
        filled(store, 10)
        view = store.views.view("c")
        entries = [
            ViewEntry(ref=1),
            ViewEntry(inline=assistant("fold"), fold="f1"),
            ViewEntry(ref=8, inline=user("eight, shortened")),
            ViewEntry(ref=9),
            ViewEntry(ref=10),
        ]
        compaction = CompactionRecord(view.generation, view.last, entries, DONE, [StoredFold("f1", Span(2, 7), "fold")])
        committed = store.views.commit("c", compaction)
        assert contents(committed) == ["1", "fold", "eight, shortened", "9", "10"]
        assert [line.number for line in committed.lines] == [1, None, 8, 9, 10]
        assert [line.fold for line in committed.lines] == [None, "f1", None, None, None]
        assert [line.shortened for line in committed.lines] == [False, False, True, False, False]
        assert (committed.generation, committed.folds) == (1, 1)
        store.log.append("c", [user("11")])
        assert contents(store.views.view("c")) == ["1", "fold", "eight, shortened", "9", "10", "11"]
        assert store.log.message("c", 8).message == user("8")

    def test_messages_that_arrive_during_a_compaction_stand_behind_it(self, store: Store) -> None:
        filled(store, 5)
        view = store.views.view("c")
        store.log.append("c", [user("arrived"), user("too")])
        assert contents(store.views.commit("c", fold_all_but(view, 1))) == ["summary", "5", "arrived", "too"]

    def test_the_same_view_is_read_after_a_restart(self, url: str) -> None:
        with self.open(url) as store:
            filled(store, 30)
            store.views.commit("c", fold_all_but(store.views.view("c"), 4))
            store.log.append("c", [user("after")])
            before = store.views.view("c")
        with self.open(url) as store:
            assert store.views.view("c") == before

    def test_only_one_of_two_compactions_of_a_view_commits(self, store: Store) -> None:
        filled(store, 5)
        view = store.views.view("c")
        winner = store.views.commit("c", fold_all_but(view, 1, "winner"))
        with pytest.raises(StoreConflict):
            store.views.commit("c", fold_all_but(view, 1, "loser"))
        assert store.views.view("c") == winner
        assert len(store.sessions.all("c")) == 2
        assert [attempt.generation for attempt in store.views.attempts("c")] == [1]

    def test_a_compaction_prepared_before_an_undo_does_not_commit(self, store: Store) -> None:
        filled(store, 5)
        view = store.views.commit("c", fold_all_but(store.views.view("c"), 1))
        store.views.undo("c")
        with pytest.raises(StoreConflict):
            store.views.commit("c", fold_all_but(view, 1))

    def test_a_lost_lease_does_not_commit(self, store: Store) -> None:
        filled(store, 5)
        view = store.views.view("c")
        late = store.leases.acquire("c", "late", seconds=0.0)
        assert late is not None
        new = store.leases.acquire("c", "new", seconds=60.0)
        assert new is not None
        assert new.token > late.token
        with pytest.raises(LeaseLost):
            store.views.commit("c", fold_all_but(view, 1), late)
        assert store.views.view("c") == view
        assert store.views.commit("c", fold_all_but(view, 1), new).generation == 1

    def test_undo_restores_the_earlier_view_plus_what_came_after(self, store: Store) -> None:
        filled(store, 6)
        store.views.commit("c", fold_all_but(store.views.view("c"), 2, "first"))
        store.log.append("c", [user("7")])
        store.views.commit("c", fold_all_but(store.views.view("c"), 1, "second"))
        store.log.append("c", [user("8")])
        undone = store.views.undo("c")
        assert contents(undone) == ["first", "5", "6", "7", "8"]
        assert undone.waits_for_hard_limit
        assert undone.compactions == 1, "what was taken back is not counted"
        assert contents(store.views.undo("c")) == [str(n) for n in range(1, 9)]
        with pytest.raises(NotFound):
            store.views.undo("c")
        again = store.views.commit("c", fold_all_but(store.views.view("c"), 1, "third"))
        assert contents(again) == ["third", "8"]
        assert not again.waits_for_hard_limit
        assert again.generation == 5
        assert contents(store.views.undo("c")) == [str(n) for n in range(1, 9)]

    def test_undo_adds_a_step_and_keeps_history(self, store: Store) -> None:
        filled(store, 4)
        store.views.commit("c", fold_all_but(store.views.view("c"), 1))
        store.views.undo("c")
        steps = store.views.generations("c")
        assert [(step.generation, step.kind, step.state) for step in steps] == [
            (0, "start", 0),
            (1, "compaction", 1),
            (2, "undo", 0),
        ]
        assert store.views.generation("c", 1) == steps[1]
        assert store.views.fold("c", "f1").text == "summary"
        with pytest.raises(NotFound):
            store.views.generation("c", 3)

    @pytest.mark.parametrize(
        ("entries", "base_last"),
        [
            ([ViewEntry()], 3),
            ([ViewEntry(ref=0)], 3),
            ([ViewEntry(ref=4)], 3),
            ([ViewEntry(ref=2**70)], 3),
            ([ViewEntry(ref=1)], 99),
            ([ViewEntry(ref=1)], 2**70),
            ([ViewEntry(ref=1)], -1),
            ([ViewEntry(ref=1, fold="f1")], 3),
            ([ViewEntry(inline={"role": "user", "content": {1}})], 3),
        ],
    )
    def test_entries_that_cannot_be_shown_are_refused(
        self, store: Store, entries: list[ViewEntry], base_last: int
    ) -> None:
        filled(store, 3)
        before = store.views.view("c")
        with pytest.raises(InputError):
            store.views.commit("c", CompactionRecord(0, base_last, entries, DONE))
        assert store.views.view("c") == before

    def test_a_taken_fold_id_is_refused_and_nothing_is_written(self, store: Store) -> None:
        filled(store, 5)
        store.views.commit("c", fold_all_but(store.views.view("c"), 1))
        view = store.views.view("c")
        repeated = CompactionRecord(
            view.generation, view.last, [ViewEntry(ref=5)], DONE, [StoredFold("f1", Span(1, 2))]
        )
        with pytest.raises(InputError):
            store.views.commit("c", repeated)
        assert store.views.view("c") == view

    def test_a_committed_report_is_kept_whole(self, store: Store) -> None:
        filled(store, 9)
        report = CompactionReport(
            outcome=Outcome.COMMITTED,
            reason="über the threshold",
            engine="compressor",
            summariser="model:small",
            trigger="threshold",
            focus="ports\0",
            messages_before=9,
            messages_after=3,
            tokens_before=1000,
            tokens_after=200,
            covered=Span(1, 7),
            fold="f1",
            pruned=2,
            usage=CanonicalUsage(1, 2, 3, 4, 5),
            cost=0.0123,
            seconds=1.5,
            verification=Verification(5, 1, 2, 3, ("a dropped line",)),
            warnings=("careful",),
            details={"k": [1, {"a": None}]},
        )
        compaction = CompactionRecord(
            0, 9, [ViewEntry(inline=assistant("s"), fold="f1")], report, [StoredFold("f1", Span(1, 7), "s")]
        )
        store.views.commit("c", compaction)
        (attempt,) = store.views.attempts("c")
        assert attempt.report == report
        assert (attempt.number, attempt.generation, attempt.session) == (1, 1, "c")

    def test_attempts_that_did_not_commit_are_kept_too(self, store: Store) -> None:
        filled(store, 3)
        outcomes = [Outcome.FAILED, Outcome.NO_GAIN, Outcome.BLOCKED, Outcome.NOTHING_TO_DO]
        for outcome in outcomes:
            store.views.record_attempt("c", CompactionReport(outcome, reason=f"because {outcome}"))
        found = store.views.attempts("c", limit=3)
        assert [attempt.report.outcome for attempt in found] == outcomes[:0:-1]
        assert [attempt.number for attempt in found] == [4, 3, 2]
        assert all(attempt.generation is None for attempt in found)
        with pytest.raises(InputError):
            store.views.record_attempt("c", DONE)
        with pytest.raises(InputError):
            store.views.commit("c", CompactionRecord(0, 3, [ViewEntry(ref=1)], CompactionReport(Outcome.FAILED)))

    def test_odd_values_in_a_report_never_lose_it(self, store: Store) -> None:
        filled(store, 1)
        store.views.record_attempt("c", CompactionReport(Outcome.FAILED, details={"error": ValueError("x")}))
        assert store.views.attempts("c")[0].report.details == {"error": "x"}

    def test_folds_keep_text_handoff_and_children(self, store: Store) -> None:
        filled(store, 9)
        handoff = {"active_task": "None.", "goal": ["z", "a"], "odd": "\ud800\0"}
        folds = [StoredFold("f1", Span(1, 3), "leaf"), StoredFold("f2", Span(1, 6), "node", handoff, ("f1",))]
        store.views.commit("c", CompactionRecord(0, 9, [ViewEntry(inline=user("n"), fold="f2")], DONE, folds))
        assert store.views.fold("c", "f2") == StoredFold("f2", Span(1, 6), "node", handoff, ("f1",), generation=1)
        assert [fold.id for fold in store.views.folds("c")] == ["f1", "f2"]
        assert store.views.view("c").folds == 2
        for unknown in ("f3", "", "'; DROP TABLE folds; --", "f" * 10_000):
            with pytest.raises(NotFound):
                store.views.fold("c", unknown)

    def test_ledger_and_prompt_come_with_the_commit(self, store: Store) -> None:
        filled(store, 4)
        store.conversations.update("c", system_prompt="before")
        view = store.views.view("c")
        compaction = CompactionRecord(
            view.generation,
            view.last,
            [ViewEntry(ref=4)],
            DONE,
            ledger=LedgerSnapshot(4, 1, b"L"),
            system_prompt="after",
        )
        store.views.commit("c", compaction)
        assert store.ledgers.latest("c", 1) == LedgerSnapshot(4, 1, b"L")
        prompts = [session.metadata.system_prompt for session in store.sessions.all("c")]
        assert prompts == ["before", "after"]

    @example_settings
    @given(steps=st.lists(st.sampled_from(["append", "compact", "undo", "race"]), max_size=14), data=st.data())
    def test_the_view_follows_its_model_through_any_history(self, store: Store, steps: list[str], data: Any) -> None:
        """A view is always: the entries of the state in force, then every later message, in order, once."""
        id = store.conversations.create().id
        log: list[str] = []
        states: list[tuple[list[str], int]] = [([], 0)]
        for step in steps:
            shown, base = states[-1]
            expected = shown + log[base:]
            view = store.views.view(id)
            assert contents(view) == expected
            if step == "append":
                fresh = [f"{len(log) + n + 1}" for n in range(data.draw(st.integers(1, 4)))]
                store.log.append(id, [user(text) for text in fresh])
                log += fresh
            elif step in ("compact", "race") and log:
                tail = data.draw(st.integers(0, 3))
                compaction = fold_all_but(view, tail, f"fold {view.generation}")
                kept = [log[entry.ref - 1] for entry in compaction.entries if entry.ref is not None]
                before = len(log)
                if step == "race":
                    store.log.append(id, [user(f"{len(log) + 1}")])
                    log.append(f"{len(log) + 1}")
                store.views.commit(id, compaction)
                states.append(([f"fold {view.generation}", *kept], before))
            elif step == "undo" and len(states) > 1:
                states.pop()
                store.views.undo(id)
        shown, base = states[-1]
        assert contents(store.views.view(id)) == shown + log[base:]
        assert [item.message["content"] for item in store.log.iterate(id)] == log
