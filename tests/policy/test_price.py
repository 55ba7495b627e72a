"""Price decides when to compact: rent or buy, cold caches, price steps; every number is this file's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.events import CompactionReport, Outcome
from leporello.models import Limits, model_facts
from leporello.policy.decision import (
    BY_WINDOW,
    Action,
    CompactionState,
    Occasion,
    Situation,
    brief,
    decide,
    depth_of,
    forecast,
)
from leporello.policy.prices import PriceTable, UnitPrices, price_table
from leporello.policy.state import after, kept_state, sent, with_kept

LIMITS = Limits.for_window(200_000)
CLAUDE = PriceTable(UnitPrices(read=0.1, write=1.25, output=5.0), warm_seconds=300, dollars=3.0)
UNCACHED = PriceTable(UnitPrices(read=1.0, write=1.0))


def situation(tokens: int, *, rent: float = 0.0, prices: PriceTable = CLAUDE, **more: object) -> Situation:
    state = CompactionState(rent=rent, sent_at=1_000.0)
    given = Situation(
        Occasion.PREFLIGHT, LIMITS, tokens, state=state, fixed=20_000, depth=20_000, prices=prices, now=1_010.0
    )
    return replace(given, **more)  # type: ignore[arg-type]


def test_it_compacts_when_carrying_has_cost_what_writing_costs() -> None:
    """20,000 tokens written at 1.25 instead of read at 0.1 cost 23,000."""
    assert decide(situation(60_000, rent=22_999)).action is Action.WAIT
    worth = decide(situation(60_000, rent=23_000))
    assert worth.action is Action.PREPARE
    assert "worth its price" in worth.reason
    assert "$0.069" in worth.reason
    assert worth.depth == 20_000


def test_every_request_pays_for_what_a_compaction_would_have_taken_out() -> None:
    """Of 60,000 tokens 20,000 are fixed and 20,000 would stay: 20,000 are read at 0.1 for nothing."""
    state = sent(situation(60_000))
    assert (state.rent, state.sent_at) == (2_000.0, 1_010.0)
    assert sent(situation(40_000)).rent == 0.0
    assert sent(situation(60_000, prices=None)).rent == 0.0


def test_a_tenth_must_be_gained_whatever_it_cost() -> None:
    assert decide(situation(42_222, rent=10**9)).action is Action.WAIT
    assert decide(situation(42_223, rent=10**9)).action is Action.PREPARE


def test_a_cold_cache_makes_it_free() -> None:
    """Five minutes after the last request; a quarter must be gained."""
    assert decide(situation(50_000, now=1_300.0)).action is Action.WAIT
    cold = decide(situation(50_000, now=1_301.0))
    assert cold.action is Action.COMPACT
    assert "cold" in cold.reason
    assert decide(situation(46_666, now=1_301.0)).action is Action.WAIT
    assert decide(situation(46_667, now=1_301.0)).action is Action.COMPACT
    assert decide(situation(50_000, now=1_301.0, occasion=Occasion.TURN)).action is Action.WAIT


def test_nothing_is_cold_before_the_first_request() -> None:
    assert decide(situation(50_000, state=CompactionState(), now=10.0**9)).action is Action.WAIT


def test_a_summary_model_has_its_price() -> None:
    """Reading 40,000 foldable tokens once and writing 2,000 at five times the price: 50,000 more."""
    assert forecast(situation(60_000, summary_model=True), CLAUDE).cost == pytest.approx(23_000 + 50_000)
    assert forecast(situation(60_000, summary_model=True, now=9_999.0), CLAUDE).cost == 0, "nobody waits for it"


def test_without_a_cache_every_call_pays_in_full() -> None:
    """Writing the view anew costs nothing extra there, and is taken to cost half, or it would be done all the time."""
    assert sent(situation(60_000, prices=UNCACHED)).rent == 20_000
    assert decide(situation(60_000, prices=UNCACHED, rent=9_999)).action is Action.WAIT
    assert decide(situation(60_000, prices=UNCACHED, rent=10_000)).action is Action.PREPARE
    state, tokens, compactions = CompactionState(), 40_000, 0
    for _ in range(40):
        tokens += 1_000
        if decide(situation(tokens, prices=UNCACHED, state=state)).compacts:
            compactions, tokens, state = compactions + 1, 40_000, CompactionState(written=20_000)
        state = sent(situation(tokens, prices=UNCACHED, state=state))
    assert compactions == 8, "one in five requests"


def test_above_a_price_step_the_whole_request_pays_more() -> None:
    stepped = replace(CLAUDE, steps=((50_000, UnitPrices(read=0.2, write=2.5, plain=2.0, output=7.5)),))
    assert forecast(situation(60_000, prices=stepped), stepped).reads == pytest.approx(0.2 * 60_000 - 0.1 * 40_000)


def test_without_prices_only_sizes_decide() -> None:
    assert decide(situation(99_999, prices=None, rent=10**9)).action is Action.WAIT
    assert decide(situation(100_000, prices=None)).action is Action.PREPARE


def test_the_threshold_stays_the_latest_moment() -> None:
    assert decide(situation(100_000)).action is Action.PREPARE
    assert decide(situation(180_000)).action is Action.COMPACT


def test_where_the_last_one_ended_above_its_aim_the_next_has_to_gain_on_that() -> None:
    stuck = CompactionState(kept=38_000, rent=10**9, sent_at=1_000.0)
    assert decide(situation(60_000, state=stuck)).action is Action.WAIT
    assert decide(situation(63_000, state=stuck)).action is Action.PREPARE


def test_a_threshold_full_of_instructions_waits_for_something_to_fold() -> None:
    """70,000 fixed and 20,000 to keep: at the threshold of 100,000 a compaction takes away a third of 30,000."""
    crowded = situation(100_000, fixed=70_000, prices=None)
    assert decide(crowded).action is Action.PREPARE
    assert decide(replace(crowded, fixed=78_000)).action is Action.WAIT
    assert decide(replace(crowded, fixed=78_000, tokens=101_000)).action is Action.PREPARE
    assert decide(replace(crowded, fixed=178_000, tokens=180_000)).action is Action.COMPACT


def test_what_was_saved_may_be_negative() -> None:
    report = CompactionReport(Outcome.COMMITTED, tokens_before=60_000, tokens_after=40_000, details={"written": 18_000})
    state = after(CompactionState(rent=5.0), report, LIMITS, cost=23_000)
    assert (state.rent, state.saved, state.dropped, state.written) == (0.0, -23_000, 20_000, 18_000)
    assert sent(situation(40_000, state=state)).saved == -21_000


@given(st.integers(0, 30), st.integers(0, 30))
def test_a_restart_changes_no_decision(before: int, generation: int) -> None:
    state = CompactionState(kept=5, written=7, rent=3.5, sent_at=9.0, dropped=11, saved=-2.0)
    restored = with_kept(CompactionState(), kept_state(state, before), generation)
    if before == generation:
        assert restored == state
    else:
        assert restored == CompactionState(sent_at=9.0, dropped=11, saved=-2.0)
    assert with_kept(state, "damaged", 1) == state


@pytest.mark.parametrize(
    ("policy", "window", "fixed", "expected"),
    [
        ("memory", 200_000, 0, 31_000),
        ("memory", 80_000, 29_000, 11_944),
        ("memory", 1_000_000, 0, 125_000),
        ("balanced", 1_000_000, 0, 13_900),
        (BY_WINDOW, 200_000, 0, 50_000),
        ("economy", 200_000, 20_000, 8_000),
        ("economy", 16_000, 0, 4_000),
    ],
)
def test_depth(policy: str, window: int, fixed: int, expected: int) -> None:
    """A quarter of the window is the most, less by what is fixed; `memory` keeps at least an eighth of a large one."""
    assert depth_of(Limits.for_window(window), fixed, policy) == expected


@pytest.mark.parametrize(
    ("model", "ttl", "read", "write", "warm"),
    [
        ("claude-sonnet-4-5", "5m", 0.1, 1.25, 300),
        ("claude-sonnet-4-5", "1h", 0.1, 2.0, 3_600),
        ("gpt-4o", "5m", 0.5, 1.0, 1_200),
        ("my-own-llama", "5m", 0.1, 1.0, None),
    ],
)
def test_prices_of_a_model(model: str, ttl: str, read: float, write: float, warm: float | None) -> None:
    table = price_table(model_facts(model), ttl)
    assert (table.base.read, table.base.write) == (pytest.approx(read), pytest.approx(write))
    assert table.warm_seconds == warm


@pytest.mark.parametrize(
    ("tokens", "rent", "told"),
    [
        (60_000, 11_500, ["next fold 50% paid"]),
        (60_000, 23_000, ["preparing a compaction"]),
        (40_000, 0, []),
        (199_000, 0, ["compacts next"]),
    ],
)
def test_a_status_line_says_it_in_a_few_words(tokens: int, rent: float, told: list[str]) -> None:
    given = situation(tokens, rent=rent)
    assert brief(given, decide(given)) == told
    for saved, words in ((40_000.0, "saved $0.12"), (-40_000.0, "net cost $0.12")):
        after_some = replace(given, state=replace(given.state, dropped=1, saved=saved))
        assert brief(after_some, decide(after_some)) == [*told, words]
