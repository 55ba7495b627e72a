"""When to compact: decisions by their own numbers, and what a compaction leaves behind for the next one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.events import CompactionReport, Outcome
from leporello.models import Limits
from leporello.policy.decision import (
    MOST_ATTEMPTS,
    Action,
    CompactionState,
    Occasion,
    Situation,
    decide,
    due_at,
    fits,
    refused_window,
    saves_enough,
)
from leporello.policy.state import after, answered, attempted, undone

LIMITS = replace(Limits.for_window(10_000), hard_tokens=9_000, threshold_tokens=5_000)
WAIT, PREPARE, COMPACT, BLOCKED = Action.WAIT, Action.PREPARE, Action.COMPACT, Action.BLOCKED
AUTOMATIC = [occasion for occasion in Occasion if occasion is not Occasion.MANUAL]

states = st.builds(CompactionState, st.integers(0, 6), st.integers(0, 12_000))
situations = st.builds(
    Situation,
    st.sampled_from(Occasion),
    st.just(LIMITS),
    st.integers(0, 20_000),
    messages=st.integers(0, 10),
    state=states,
    enabled=st.booleans(),
    engine_wants=st.sampled_from((None, None, True, False)),
)


@pytest.mark.parametrize("occasion", [Occasion.TURN, Occasion.PREFLIGHT])
@pytest.mark.parametrize(
    ("tokens", "attempts", "wait_for", "action", "deferrable", "reason"),
    [
        (4_999, 0, 0, WAIT, False, "4,999 tokens are below the threshold of 5,000"),
        (5_000, 0, 0, PREPARE, True, "5,000 tokens reach the threshold of 5,000"),
        (8_999, 2, 0, PREPARE, True, "8,999"),
        (9_000, 0, 0, COMPACT, False, "9,000"),
        (6_000, 0, 6_001, WAIT, False, "waits for 6,001"),
        (6_001, 0, 6_001, PREPARE, True, "threshold of 6,001"),
        (9_500, 3, 0, BLOCKED, False, "3 automatic attempts"),
    ],
)
def test_by_size(
    occasion: Occasion, tokens: int, attempts: int, wait_for: int, action: Action, deferrable: bool, reason: str
) -> None:
    decision = decide(Situation(occasion, LIMITS, tokens, state=CompactionState(attempts, wait_for)))
    assert (decision.action, decision.deferrable) == (action, deferrable)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("occasion", "messages", "tokens", "enabled", "action"),
    [
        (Occasion.HYGIENE, 4, 8_500, True, COMPACT),
        (Occasion.HYGIENE, 4, 8_499, True, WAIT),
        (Occasion.HYGIENE, 3, 9_999, True, WAIT),
        (Occasion.HYGIENE, 40, 9_999, False, BLOCKED),
        (Occasion.OVERFLOW, 1, 10, True, COMPACT),
        (Occasion.OVERFLOW, 40, 20_000, False, BLOCKED),
        (Occasion.HARD_LIMIT, 1, 10_000, True, WAIT),
        (Occasion.HARD_LIMIT, 1, 10_001, True, COMPACT),
        (Occasion.MANUAL, 0, 0, False, COMPACT),
    ],
)
def test_by_occasion(occasion: Occasion, messages: int, tokens: int, enabled: bool, action: Action) -> None:
    """Hygiene: at least four messages and 85% of the window. Nothing happens by itself when compression is off."""
    decision = decide(Situation(occasion, LIMITS, tokens, messages=messages, enabled=enabled))
    assert decision.action is action
    assert decision.reason


@given(situations)
def test_after_three_attempts_nothing_is_compacted_by_itself(situation: Situation) -> None:
    """Except what could not be sent at all otherwise."""
    exhausted = replace(situation, state=replace(situation.state, attempts=MOST_ATTEMPTS))
    if exhausted.occasion is Occasion.MANUAL:
        assert decide(exhausted).compacts
    elif decide(exhausted).compacts:
        assert exhausted.occasion is Occasion.HARD_LIMIT
        assert not fits(LIMITS, exhausted.tokens)


@given(situations)
def test_what_is_asked_for_is_never_refused(situation: Situation) -> None:
    assert decide(replace(situation, occasion=Occasion.MANUAL)).compacts


@given(situations, st.sampled_from(AUTOMATIC))
def test_switched_off_means_never(situation: Situation, occasion: Occasion) -> None:
    assert decide(replace(situation, occasion=occasion, enabled=False)).action is BLOCKED


@given(situations)
def test_an_engine_judges_only_within_the_rules(situation: Situation) -> None:
    """Its word counts where the decision is not final: between the wait and the hard limit, with attempts left."""
    usual = decide(replace(situation, engine_wants=None))
    for wants in (True, False):
        judged = decide(replace(situation, engine_wants=wants))
        if usual.final:
            assert judged.action is usual.action
        else:
            assert judged.compacts is wants
            assert not judged.deferrable, "a plugin's engine compacts where it is"


@given(situations, st.integers(0, 5_000))
def test_more_tokens_never_make_it_wait(situation: Situation, more: int) -> None:
    situation = replace(situation, engine_wants=None)
    if decide(situation).compacts:
        assert decide(replace(situation, tokens=situation.tokens + more)).compacts


def test_what_is_not_due_at_first_is_not_due_after_attempts() -> None:
    """So that whoever knows only the limits can tell for certain that nothing is due."""
    for tokens in range(0, 11_000, 500):
        if not decide(Situation(Occasion.PREFLIGHT, LIMITS, tokens)).compacts:
            for state in (CompactionState(2, 0), CompactionState(0, 7_000), CompactionState(3, 9_000)):
                assert not decide(Situation(Occasion.PREFLIGHT, LIMITS, tokens, state=state)).compacts


def report(outcome: Outcome, trigger: str = "threshold", before: int = 5_200, **details: object) -> CompactionReport:
    return CompactionReport(outcome, trigger=trigger, tokens_before=before, details=details)


@pytest.mark.parametrize(
    ("done", "wait_for", "asked", "expected"),
    [
        (report(Outcome.COMMITTED), 8_000, 0, 0),
        (report(Outcome.NO_GAIN), 0, 0, 6_450),
        (report(Outcome.NOTHING_TO_DO), 0, 5_600, 6_850),
        (report(Outcome.NO_GAIN), 7_000, 0, 7_000),
        (report(Outcome.NO_GAIN, before=8_900), 0, 0, 9_000),
        (report(Outcome.NO_GAIN, trigger="manual"), 0, 0, 0),
        (report(Outcome.FAILED), 6_000, 0, 6_000),
        (report(Outcome.BLOCKED), 0, 0, 0),
    ],
)
def test_what_a_compaction_leaves_behind(done: CompactionReport, wait_for: int, asked: int, expected: int) -> None:
    """In vain: a quarter of the threshold must be new. Otherwise, and by hand: nothing."""
    state = CompactionState(1, wait_for)
    left = after(state, done, LIMITS, asked)
    assert (left.attempts, left.wait_for) == (1, expected)


def test_attempts() -> None:
    state = attempted(attempted(CompactionState(wait_for=7), "threshold"), "overflow 1")
    assert state == CompactionState(2, 7)
    assert attempted(state, "manual") == state
    assert answered(state) == CompactionState(0, 7)
    assert undone(state, LIMITS) == CompactionState(2, 9_000)


def test_marks() -> None:
    waiting = [due_at(LIMITS, CompactionState(wait_for=tokens)) for tokens in (6_000, 4_000)]
    assert (due_at(LIMITS), *waiting) == (5_000, 6_000, 5_000)
    assert (refused_window(LIMITS, 9_999), refused_window(LIMITS, 10_000)) == (9_999, None)
    assert (saves_enough(1_000, 900), saves_enough(1_000, 901)) == (True, False)


def above(kept: int, fixed: int = 0, depth: int = 0) -> int:
    """Where the next one is due at the latest after one that left so much; more than `depth` is above its aim."""
    done = report(Outcome.COMMITTED, above_aim=kept > depth, foldable_after=kept)
    return due_at(LIMITS, after(CompactionState(), done, LIMITS), fixed, depth)


def test_a_threshold_that_can_not_be_kept_is_met_once() -> None:
    """A tenth below it there is room for a turn; above that it would be reached again at once."""
    assert (above(4_499), above(4_500), above(8_000)) == (5_000, 9_000, 9_000)
    assert (above(500, fixed=3_999), above(500, fixed=4_000)) == (5_000, 9_000)
    assert (above(500, fixed=3_500, depth=999), above(500, fixed=3_500, depth=1_000)) == (5_000, 9_000)
    assert due_at(LIMITS, CompactionState(), fixed=8_000, depth=1_000) == 5_000
