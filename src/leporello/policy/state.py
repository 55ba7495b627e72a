"""What requests and compactions leave behind for the next decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leporello.events import CompactionReport, Outcome
from leporello.models import Limits
from leporello.policy.decision import CompactionState, Situation, forecast

GROWTH = 0.25
"""Of the threshold: how much must be new after an automatic attempt that brought nothing."""
COLD = 1.0
"""As the time of the last request: its cache is gone, or another model's."""
MANUAL = "manual"
"""The trigger of compactions that somebody asked for."""


def attempted(state: CompactionState, trigger: str) -> CompactionState:
    """A compaction begins. Those that somebody asked for never count."""
    return state if trigger == MANUAL else replace(state, attempts=state.attempts + 1)


def answered(state: CompactionState) -> CompactionState:
    """The model answered: attempts count from zero again."""
    return replace(state, attempts=0)


def sent(situation: Situation) -> CompactionState:
    """A request of the situation's size goes out: it pays for what a compaction would have taken out of it."""
    state, prices = situation.state, situation.prices
    if prices is None:
        return state
    read = prices.at(situation.tokens).read
    return replace(
        state,
        rent=state.rent + forecast(situation, prices).reads,
        saved=state.saved + read * state.dropped,
        sent_at=situation.now,
    )


def cache_broken(situation: Situation) -> CompactionState:
    """The next request can't begin with the bytes of the last one: it is written anew, and that is what it costs."""
    state, prices = situation.state, situation.prices
    if prices is None or state.sent_at <= COLD:
        return state
    now = prices.at(situation.tokens)
    return replace(state, sent_at=COLD, saved=state.saved - max(0.0, now.write - now.read) * situation.tokens)


def undone(state: CompactionState, limits: Limits) -> CompactionState:
    """The user took a compaction back: no automatic one before the hard limit, and no saving by it."""
    return replace(state, wait_for=limits.hard_tokens, dropped=0)


def after(
    state: CompactionState, report: CompactionReport, limits: Limits, tokens: int = 0, cost: float = 0.0
) -> CompactionState:
    """A compaction ended. `tokens`: what the decision was made by, when that was more than the report counts."""
    if report.committed:
        details = report.details
        kept = int(details.get("foldable_after") or 0)
        return replace(
            state,
            wait_for=0,
            kept=kept if details.get("above_aim") else 0,
            written=int(details.get("written") or kept),
            rent=0.0,
            dropped=state.dropped + max(0, report.tokens_before - report.tokens_after),
            saved=state.saved - cost,
        )
    if report.outcome in (Outcome.NO_GAIN, Outcome.NOTHING_TO_DO) and report.trigger != MANUAL:
        # The same again could not help; with more to fold it may.
        grown = max(report.tokens_before, tokens) + int(limits.threshold_tokens * GROWTH)
        return replace(state, rent=0.0, wait_for=max(state.wait_for, min(grown, limits.hard_tokens)))
    return state


def kept_state(state: CompactionState, generation: int) -> dict[str, Any]:
    """What the next process must know; the attempts and waits are kept beside it."""
    return {name: getattr(state, name) for name in _KEPT} | {"generation": generation}


def with_kept(state: CompactionState, kept: Any, generation: int) -> CompactionState:
    """The state with what was kept. What was measured since another compaction no longer holds."""
    if not isinstance(kept, Mapping):
        return state
    names = _KEPT if kept.get("generation") == generation else _LASTING
    return replace(state, **{name: kept[name] for name in names if isinstance(kept.get(name), int | float)})


_LASTING = ("sent_at", "dropped", "saved")
_KEPT = ("kept", "written", "rent", *_LASTING)
