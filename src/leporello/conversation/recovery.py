"""What to do when a provider refuses a request: one state machine for everybody who sends requests. Pure.

Input over the window: learn a limit that is stated, compact, send again. Output cap: lower the cap of this call only.
Thinking blocks that the provider rejects: send the conversation without them. Each at most three times; nothing is ever
guessed and kept. The vendor's own search for tools that it refuses after all: ours takes its place. Everything else
stands as it is. The callers carry out the step and come back with the next refusal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from msgspec import Struct, field

from leporello.policy.decision import DISABLED
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import ErrorVerdict

MOST_RECOVERIES = 3
LEAST_OUTPUT = 64
TOOL_SEARCH_CAUSE = "tool_search"
THINKING_CAUSES = ("stale_thinking", "missing_thinking")


class Remedy(StrEnum):
    """What cures a refusal."""

    NONE = "none"
    """The refusal stands, as the provider worded it."""
    COMPACT = "compact"
    LOWER_CAP = "lower cap"
    DROP_THINKING = "drop thinking"
    OWN_TOOL_SEARCH = "own tool search"
    """Hide unused tools behind `find_tools`, and no longer behind what the vendor documents and refuses."""
    EXHAUSTED = "exhausted"
    """Compacting would be the cure, but it is not allowed or was done often enough."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was done so far for one request."""

    compactions: int = 0
    lowered: int = 0
    other: int = 0
    shared: bool = False
    """All remedies together may be tried three times, not each of them: a client waits for the answer."""

    def spent(self, tries: int) -> bool:
        """Whether a remedy that was tried so often is not tried again."""
        return (self.tries if self.shared else tries) >= MOST_RECOVERIES

    @property
    def tries(self) -> int:
        return self.compactions + self.lowered + self.other


class OutputCap(Struct, frozen=True):
    """What is known about the output cap of a refused request."""

    cap: int | None = None
    """What the request asks for; None: nothing."""
    reserve: int = 0
    """What an answer is reckoned with where the request asks for nothing."""
    room: int | None = None
    """What the window leaves for the answer, where the provider does not say."""
    least: int = LEAST_OUTPUT
    fixed: bool = False
    """The cap is the client's own: one above what the model can write at all is the client's to correct."""

    def lowered(self, verdict: ErrorVerdict) -> int | None:
        """A lower cap; None when none makes sense.

        What the provider allows may be an estimate that can't be right, because it would have let the cap pass or
        leaves nothing: then half of the cap is tried.
        """
        if self.fixed and verdict.stated_limit is None and verdict.allowed_output:
            return None
        allowed = verdict.allowed_output or self.room or 0
        usable = self.least <= allowed and (self.cap is None or allowed < self.cap)
        lowered = allowed if usable else (self.reserve if self.cap is None else self.cap) // 2
        return lowered if lowered >= self.least else None


class Facts(Struct, frozen=True):
    """What the caller knows about the refused request."""

    window: int
    enabled: bool
    """`compression.enabled`."""
    output: OutputCap = field(default_factory=OutputCap)
    can_drop_thinking: bool = False
    vendor_searches: bool = False
    """The request left the search for tools to the vendor."""


class Step(Struct, frozen=True):
    """What to do now, and the state after it."""

    remedy: Remedy
    after: Recovery
    reason: str = ""
    cap: int = 0
    """The cap to ask for instead."""
    stated_window: int | None = None
    """A window that the provider stated and that is smaller than the known one: to be remembered."""
    trigger: str = ""
    """What the report of the compaction names as its cause."""


def next_step(recovery: Recovery, verdict: ErrorVerdict, facts: Facts) -> Step:
    """What follows from a refusal."""
    if verdict.kind is ErrorKind.OUTPUT_CAP:
        return _lower_cap(recovery, verdict, facts)
    if verdict.cause in THINKING_CAUSES and facts.can_drop_thinking and not recovery.spent(recovery.other):
        return Step(Remedy.DROP_THINKING, replace(recovery, other=recovery.other + 1))
    if verdict.cause == TOOL_SEARCH_CAUSE and facts.vendor_searches:
        return Step(Remedy.OWN_TOOL_SEARCH, recovery)
    if not verdict.foldable:
        return Step(Remedy.NONE, recovery)
    if recovery.spent(recovery.compactions):
        return Step(Remedy.EXHAUSTED, recovery)
    if not facts.enabled:
        return Step(Remedy.EXHAUSTED, recovery, DISABLED)
    stated = verdict.stated_limit
    tries = recovery.tries if recovery.shared else recovery.compactions
    return Step(
        Remedy.COMPACT,
        replace(recovery, compactions=recovery.compactions + 1),
        stated_window=stated if stated is not None and stated < facts.window else None,
        trigger=f"overflow {tries + 1}",
    )


def _lower_cap(recovery: Recovery, verdict: ErrorVerdict, facts: Facts) -> Step:
    cap = None if recovery.spent(recovery.lowered) else facts.output.lowered(verdict)
    if cap is None:
        return Step(Remedy.NONE, recovery)
    return Step(Remedy.LOWER_CAP, replace(recovery, lowered=recovery.lowered + 1), cap=cap)
