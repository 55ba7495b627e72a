"""Rent or buy costs at most twice what the best moments would have, for the same sizes kept.

What is new in a call is sent as it is: it can be folded in the next. The best moments are found by dynamic programming
over all calls of a session, which nobody can do while it goes on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import InputError
from leporello.importers import load_session
from leporello.messages import role_of
from leporello.models import Limits
from leporello.policy.decision import Action, CompactionState, Occasion, Situation, decide
from leporello.policy.prices import PriceTable, UnitPrices
from leporello.policy.state import sent
from leporello.tokens import TokenCounter

READ, WRITE = 0.1, 1.25
PRICES = PriceTable(UnitPrices(READ, WRITE))
FIXED, KEPT = 20_000, 14_000
LIMITS = replace(Limits.for_window(10_000_000), hard_tokens=10**9, threshold_tokens=10**9)
"""No window: only price decides."""


def by_the_rule(growth: Sequence[int]) -> tuple[float, int]:
    """The bill of a session whose foldable part grows by so many tokens before each call, and its compactions."""
    state, foldable, bill, made = CompactionState(), 0, 0.0, 0
    for grown in growth:
        tokens = FIXED + foldable + grown
        asked = Situation(
            Occasion.PREFLIGHT, LIMITS, tokens, state=state, fixed=FIXED, depth=KEPT, prices=PRICES, now=1.0
        )
        if decide(asked).action is not Action.WAIT:
            made += 1
            foldable = max(KEPT, grown)
            state = CompactionState(written=foldable, kept=foldable if foldable > KEPT else 0)
            bill += READ * FIXED + WRITE * foldable
        else:
            bill += READ * (FIXED + foldable) + WRITE * grown
            foldable += grown
        asked = replace(asked, tokens=FIXED + foldable, state=state)
        state = sent(asked)
    return bill, made


def at_best(growth: Sequence[int]) -> float:
    """The least bill, over all sets of calls before which to compact to the same size."""
    calls = len(growth)
    best = [0.0] + [float("inf")] * calls
    """Of the first so many calls, when the next one is compacted before."""
    answer = float("inf")
    for first in range(calls + 1):
        if best[first] == float("inf"):
            continue
        foldable, bill = 0, best[first]
        for call in range(first, calls):
            if call == first and first:
                foldable = max(KEPT, growth[call])
                bill += READ * FIXED + WRITE * foldable
            else:
                bill += READ * (FIXED + foldable) + WRITE * growth[call]
                foldable += growth[call]
            enough = foldable + (growth[call + 1] if call + 1 < calls else 0) >= KEPT / 0.9
            if enough and call + 1 < calls:
                best[call + 1] = min(best[call + 1], bill)
        answer = min(answer, bill)
    return answer


@given(st.lists(st.one_of(st.integers(0, 3_000), st.integers(0, 60_000)), max_size=60))
def test_at_most_twice_the_best(growth: list[int]) -> None:
    assert by_the_rule(growth)[0] <= 2 * at_best(growth)


def growth_of(path: Path) -> list[int]:
    """What came between two answers of the model; nothing for a file that is not one conversation."""
    count = TokenCounter.for_model(None).message
    growth, grown = [], 0
    try:
        messages = load_session(path).messages
    except InputError:
        return []
    for message in messages:
        grown += count(message)
        if role_of(message) == "assistant":
            growth.append(grown)
            grown = 0
    return growth


@pytest.mark.usefixtures("real_sessions")
def test_at_most_twice_the_best_in_every_recorded_session() -> None:
    files = [path for path in Path(os.environ["LEPORELLO_DATA"]).glob("*/*") if path.is_file()]
    compacted = 0
    for growth in filter(None, map(growth_of, files)):
        bill, made = by_the_rule(growth)
        compacted += made > 0
        assert bill <= 2 * at_best(growth)
    assert compacted, "no session was long enough"
