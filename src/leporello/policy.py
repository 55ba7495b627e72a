"""When to compact: the one place that decides it. Pure.

`decide` takes what is known about a conversation as one value and answers with a `Decision`. `attempted` and `after`
carry the `CompactionState` from one compaction to the next. Nobody else compares tokens with a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from leporello.events import CompactionReport, Outcome
from leporello.models import Limits

MOST_ATTEMPTS = 3
"""Automatic attempts without an answer of the model in between; then it waits, so that it can't loop."""
GROWTH = 0.25
"""Of the threshold: how much must be new after an automatic attempt that brought nothing."""
LEAST_SAVING = 0.10
"""A compaction that saves less of the foldable tokens is not worth breaking the prompt cache for."""
HYGIENE_SHARE = 0.85
"""Of the window: a conversation this full is compacted before a message that was sent to it is taken in."""
HYGIENE_LEAST_MESSAGES = 4
MANUAL = "manual"
"""The trigger of compactions that somebody asked for."""
DISABLED = "compression.enabled is false"


class Occasion(StrEnum):
    """Who asks, and when."""

    TURN = "turn"
    """An answer came and the turn is over."""
    PREFLIGHT = "preflight"
    """A request is about to be sent."""
    HARD_LIMIT = "hard limit"
    """A request is about to be sent, and the compaction that was due did not make it fit, or there was none."""
    HYGIENE = "hygiene"
    """A message waits to be taken in."""
    OVERFLOW = "overflow"
    """The provider refused the request as too long, or an answer filled the window."""
    MANUAL = "manual"


class Action(StrEnum):
    """What to do now. Blocked: it would be due, or nobody looked, but it is not allowed."""

    WAIT = "wait"
    COMPACT = "compact"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class CompactionState:
    """What earlier compactions left behind for the next decision."""

    attempts: int = 0
    """Automatic ones since the model's last answer."""
    wait_for: int = 0
    """Tokens below which no automatic attempt is made, whatever the threshold says."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a decision is made from."""

    occasion: Occasion
    limits: Limits
    tokens: int
    """Of the whole request: instructions, tools and messages."""
    messages: int = 0
    state: CompactionState = field(default_factory=CompactionState)
    enabled: bool = True
    """`compression.enabled`."""
    engine_wants: bool | None = None
    """What an engine with a judgement of its own says; None for those that go by the threshold."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and why in words."""

    action: Action
    reason: str
    deferrable: bool = False
    """Whether the next request fits without it, so that it can be done beside the conversation."""
    final: bool = True
    """Whether an engine with a judgement of its own is not asked."""

    @property
    def compacts(self) -> bool:
        """Whether to compact now."""
        return self.action is Action.COMPACT


def decide(situation: Situation) -> Decision:
    """Whether to compact now."""
    tokens, limits, state = situation.tokens, situation.limits, situation.state
    if situation.occasion is Occasion.MANUAL:
        return Decision(Action.COMPACT, "It was asked for.")
    if not situation.enabled:
        return Decision(Action.BLOCKED, DISABLED)
    if situation.occasion is Occasion.HARD_LIMIT:
        # Whatever was tried before: nothing is refused that a compaction would cure.
        if fits(limits, tokens):
            return Decision(Action.WAIT, f"{tokens:,} tokens fit into the window of {limits.window:,}")
        return Decision(Action.COMPACT, f"{tokens:,} tokens exceed the window of {limits.window:,}")
    if state.attempts >= MOST_ATTEMPTS:
        return Decision(Action.BLOCKED, f"{MOST_ATTEMPTS} automatic attempts were made without an answer in between")
    if situation.occasion is Occasion.OVERFLOW:
        return Decision(Action.COMPACT, f"The provider refused {tokens:,} tokens as too long")
    if situation.occasion is Occasion.HYGIENE:
        return _hygiene(situation)
    return _by_size(situation)


def _hygiene(situation: Situation) -> Decision:
    tokens, window = situation.tokens, situation.limits.window
    if situation.messages < HYGIENE_LEAST_MESSAGES:
        return Decision(Action.WAIT, f"{situation.messages} messages are fewer than {HYGIENE_LEAST_MESSAGES}")
    if tokens < HYGIENE_SHARE * window:
        return Decision(Action.WAIT, f"{tokens:,} tokens are less than {HYGIENE_SHARE:.0%} of {window:,}")
    return Decision(Action.COMPACT, f"{tokens:,} tokens are {HYGIENE_SHARE:.0%} of {window:,} or more")


def _by_size(situation: Situation) -> Decision:
    tokens, limits, wait_for = situation.tokens, situation.limits, situation.state.wait_for
    if tokens < wait_for:
        return Decision(Action.WAIT, f"{tokens:,} tokens; after the last attempt it waits for {wait_for:,}")
    pressing = tokens >= limits.hard_tokens
    if situation.engine_wants is not None and not pressing:
        action = Action.COMPACT if situation.engine_wants else Action.WAIT
        # Never put off: it may keep things in its own instance, so it compacts where it is.
        return Decision(action, f"The engine's own judgement at {tokens:,} tokens")
    mark = due_at(limits, wait_for)
    if tokens >= mark > 0:
        reason = f"{tokens:,} tokens reach the mark of {mark:,}"
        return Decision(Action.COMPACT, reason, deferrable=not pressing, final=pressing)
    return Decision(Action.WAIT, f"{tokens:,} tokens are below the mark of {mark:,}", final=False)


def due_at(limits: Limits, wait_for: int = 0) -> int:
    """At how many tokens the next compaction happens by itself."""
    return max(limits.threshold_tokens, wait_for)


def fits(limits: Limits, tokens: int) -> bool:
    """Whether a request can be sent at all."""
    return tokens <= limits.window


def refused_window(limits: Limits, tokens: int) -> int | None:
    """The window to compact for when a request of so many tokens was refused; None when the known one explains it.

    The real window is smaller than the known one then, and nobody said how small: the refused request is taken to
    have filled it. That is a guess, so it serves once; only what a provider states is kept.
    """
    return tokens if tokens < limits.window else None


def saves_enough(before: int, after: int) -> bool:
    """Whether a compaction from so many foldable tokens to so many is worth it."""
    return after <= before * (1 - LEAST_SAVING)


def attempted(state: CompactionState, trigger: str) -> CompactionState:
    """A compaction begins. Those that somebody asked for never count."""
    return state if trigger == MANUAL else replace(state, attempts=state.attempts + 1)


def answered(state: CompactionState) -> CompactionState:
    """The model answered: attempts count from zero again."""
    return replace(state, attempts=0)


def undone(state: CompactionState, limits: Limits) -> CompactionState:
    """The user took a compaction back: no automatic one before the hard limit."""
    return replace(state, wait_for=limits.hard_tokens)


def after(state: CompactionState, report: CompactionReport, limits: Limits, tokens: int = 0) -> CompactionState:
    """A compaction ended. `tokens`: what the decision was made by, when that was more than the report counts."""
    if report.committed:
        # Above the aim the next automatic attempt waits for the hard limit: another one at once could not help.
        return replace(state, wait_for=limits.hard_tokens if report.details.get("above_aim") else 0)
    if report.outcome in (Outcome.NO_GAIN, Outcome.NOTHING_TO_DO) and report.trigger != MANUAL:
        # The same again could not help; with more to fold it may.
        grown = max(report.tokens_before, tokens) + int(limits.threshold_tokens * GROWTH)
        return replace(state, wait_for=max(state.wait_for, min(grown, limits.hard_tokens)))
    return state
