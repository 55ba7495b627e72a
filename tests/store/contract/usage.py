"""Counters: added atomically, summed by session, chain, day, model, platform, purpose and tool."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from leporello.errors import InputError
from leporello.events import CompactionReport, Outcome
from leporello.store import Store, StoreOptions
from leporello.store.records import DayUse, InsightsQuery, Metadata, ModelCall, Reservation, ToolUse
from leporello.usage import CanonicalUsage
from tests.store.contract.base import ContractBase, fold_all_but, tool_turn, user

USAGE = CanonicalUsage(10, 20, 30, 40, 5)
DAY = 86_400.0


class UsageContract(ContractBase):
    """`store.usage`."""

    def test_calls_add_up_per_session_and_over_the_chain(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("1"), user("2")])
        store.usage.add("c", ModelCall(USAGE, "model-a", cost=0.1))
        store.usage.add("c", ModelCall(USAGE, "model-a", cost=0.2))
        child = store.views.commit("c", fold_all_but(store.views.view("c"), 1)).session
        store.usage.add("c", ModelCall(USAGE, "model-b", "summary"))
        first, second, chain = (
            store.usage.session_totals("c"),
            store.usage.session_totals(child),
            store.usage.totals("c"),
        )
        assert (first.calls, first.usage, first.unpriced_calls) == (2, USAGE + USAGE, 0)
        assert first.cost == pytest.approx(0.3, abs=1e-12)
        assert (second.calls, second.cost, second.unpriced_calls) == (1, 0.0, 1)
        assert (chain.calls, chain.usage) == (3, USAGE + USAGE + USAGE)
        assert store.usage.totals(child) == chain
        assert chain.cache_hit_rate == 30 / 80

    def test_a_call_counts_on_the_day_it_was_made(self, store: Store) -> None:
        """Calls that are told later, as those of a recording, are not of today."""
        store.conversations.create("c")
        store.usage.add("c", ModelCall(USAGE, "m", at=1_600_000_000.0))
        store.usage.add("c", ModelCall(USAGE, "m"))
        days = store.usage.insights().by_day
        assert len(days) == 2
        assert days["2020-09-13"].calls == 1

    def test_parallel_calls_lose_nothing(self, store: Store) -> None:
        store.conversations.create("c")

        def work() -> None:
            for _ in range(25):
                store.usage.add("c", ModelCall(CanonicalUsage(1, 1, 1, 1, 1), "m", cost=0.000_000_1))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        totals = store.usage.totals("c")
        assert (totals.calls, totals.usage) == (100, CanonicalUsage(100, 100, 100, 100, 100))
        assert totals.cost == 0.000_01

    def test_reservations_are_held_by_owner_until_they_end(self, url: str) -> None:
        moment = [1_700_000_000.0]
        beside = ("tokens", "nanos")
        with self.open(url, StoreOptions(clock=lambda: moment[0])) as store:
            store.conversations.create("c", Metadata(owner="key"))
            store.usage.add("c", ModelCall(USAGE, "m", cost=0.5))
            store.state.add(None, "tokens", 7)
            held = [
                Reservation("key", "a", 100, 0.25),
                Reservation("key", "b", 11, 0.0),
                Reservation("other", "a", 3, 1),
            ]
            seen: list[DayUse] = []
            for each in held:
                store.usage.reserve(each, moment[0], beside, 10.0, seen.append)
            assert seen == [DayUse(107, 0.5, 0, 0.0), DayUse(107, 0.5, 100, 0.25), DayUse(7, 0.0, 0, 0.0)]
            with pytest.raises(ZeroDivisionError):
                store.usage.reserve(
                    Reservation("key", "c", 1, 0.0), moment[0], beside, 10.0, lambda use: use.tokens // 0
                )
            moment[0] += 8
            store.usage.renew_reservations(held[:1], 10.0)
            moment[0] += 8
            assert store.usage.of_day("key", moment[0], beside) == DayUse(107, 0.5, 100, 0.25)
            store.usage.reserve(Reservation("key", "d", 1, 0.0), moment[0], beside, 10.0, seen.append)
            with store.database.read() as tx:
                assert tx.rows("SELECT id FROM reservations WHERE owner = 'key' ORDER BY id") == [("",), ("a",), ("d",)]
            store.usage.renew_reservations(held[1:2], 10.0)
            with store.database.read() as tx:
                rows = tx.rows("SELECT id FROM reservations WHERE owner = 'key' ORDER BY id")
            assert rows == [("",), ("a",), ("b",), ("d",)], "what had lapsed is held again"
            for each in held:
                store.usage.release(each)
            assert store.usage.of_day("key", moment[0] + DAY, beside) == DayUse(7, 0.0, 1, 0.0)

    def test_one_owner_reserves_one_after_the_other(self, url: str) -> None:
        """Each sees what all before it reserved, in whatever process that was."""
        seen: list[int] = []

        def work(name: str) -> None:
            with self.open(url) as store:
                for number in range(10):
                    wanted = Reservation("key", f"{name}{number}", 1, 0.0)
                    store.usage.reserve(wanted, 0.0, ("t", "n"), 60.0, lambda use: seen.append(use.reserved_tokens))

        self.open(url).close()  # it is there: who makes it needs it alone for a moment
        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == list(range(30))

    def test_insights_by_day_model_platform_purpose_and_tool(self, url: str) -> None:
        moment = [1_700_000_000.0]
        with self.open(url, StoreOptions(clock=lambda: moment[0])) as store:
            store.conversations.create("a", Metadata(platform="cli"))
            store.conversations.create("b", Metadata(platform="web"))
            store.log.append("a", [user("go"), *tool_turn("bash", "x" * 100), *tool_turn("bash", "y", "call_2")])
            store.usage.add("a", ModelCall(USAGE, "m1", cost=1.0))
            moment[0] += DAY
            store.log.append("b", [user("go"), *tool_turn("read_file", "z" * 10)])
            store.usage.add("b", ModelCall(USAGE, "m2", "summary", cost=2.0))
            store.views.record_attempt("b", CompactionReport(Outcome.NO_GAIN))
            report: dict[str, Any] = {"tokens_before": 100, "tokens_after": 40, "cost": 0.5, "seconds": 2.0}
            store.views.commit("b", fold_all_but(store.views.view("b"), 1, **report))
            store.views.undo("b")
            found = store.usage.insights()
            assert (found.conversations, found.sessions, found.messages) == (2, 3, 8)
            assert found.totals.calls == 2
            assert {day: totals.cost for day, totals in found.by_day.items()} == {"2023-11-14": 1.0, "2023-11-15": 2.0}
            assert {model: totals.cost for model, totals in found.by_model.items()} == {"m1": 1.0, "m2": 2.0}
            assert {name: totals.calls for name, totals in found.by_platform.items()} == {"cli": 1, "web": 1}
            assert set(found.by_purpose) == {"chat", "summary"}
            assert found.by_tool == {"bash": ToolUse(2, 2, 101), "read_file": ToolUse(1, 1, 10)}
            assert found.compactions.attempts == {"committed": 1, "no_gain": 1}
            assert (found.compactions.undone, found.compactions.tokens_before) == (1, 100)
            assert (found.compactions.tokens_after, found.compactions.cost, found.compactions.seconds) == (40, 0.5, 2.0)
            web = store.usage.insights(InsightsQuery(platform="web"))
            assert (web.totals.cost, web.messages, list(web.by_tool)) == (2.0, 3, ["read_file"])
            one = store.usage.insights(InsightsQuery(conversation="a"))
            assert (one.totals.cost, list(one.by_model)) == (1.0, ["m1"])
            early = store.usage.insights(InsightsQuery(until=1_700_000_000.0))
            assert (list(early.by_day), early.compactions.attempts) == (["2023-11-14"], {})
            assert (early.conversations, early.sessions, early.messages) == (1, 2, 5)
            late = store.usage.insights(InsightsQuery(since=1_700_000_000.0 + 1))
            assert late.sessions == 1

    def test_an_empty_store_has_empty_insights(self, store: Store) -> None:
        found = store.usage.insights()
        assert (found.totals.calls, found.conversations, found.by_day, found.by_tool) == (0, 0, {}, {})
        assert found.totals.cache_hit_rate == 0.0

    @pytest.mark.parametrize(
        "call",
        [
            ModelCall(CanonicalUsage(input_tokens=2**70)),
            ModelCall(CanonicalUsage(reasoning_tokens=2**63)),
            ModelCall(USAGE, cost=float("nan")),
            ModelCall(USAGE, cost=float("inf")),
            ModelCall(USAGE, cost=1e300),
        ],
    )
    def test_impossible_counts_are_refused(self, store: Store, call: ModelCall) -> None:
        store.conversations.create("c")
        store.usage.add("c", ModelCall(USAGE))
        with pytest.raises(InputError):
            store.usage.add("c", call)
        assert store.usage.totals("c").calls == 1

    def test_names_of_any_length_can_be_counted(self, store: Store) -> None:
        store.conversations.create("c")
        for model in ("m" * 50_000, "m" * 50_000 + "x", "\0\ud800", ""):
            store.usage.add("c", ModelCall(USAGE, model, model))
        assert store.usage.totals("c").calls == 4
        assert len(store.usage.insights().by_model) == 4
