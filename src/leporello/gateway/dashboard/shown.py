"""What the pages show, as values: made by the reader, drawn by the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leporello.agent.commands_context import WindowUse
from leporello.events import Span
from leporello.gateway.dashboard.rows import Row
from leporello.gateway.dashboard.strip import Placed, Segment, SegmentKind
from leporello.models import Limits
from leporello.store.records import (
    Attempt,
    ConversationRecord,
    FoldMark,
    Generation,
    Hit,
    Pin,
    StoredFold,
    UsageTotals,
)
from leporello.tokens import TokenCounter
from leporello.tokens.meter import PromptMeter


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of the list of conversations."""

    record: ConversationRecord
    title: str
    named: bool
    """Whether somebody gave it its title; else it is what was said first."""
    compactions: int
    """Without those taken back."""


@dataclass(frozen=True, slots=True)
class Found:
    """One hit of a search."""

    hit: Hit
    title: str


@dataclass(frozen=True, slots=True)
class Measure:
    """What the last process that talked in a conversation left behind about its window."""

    limits: Limits
    counter: TokenCounter
    meter: PromptMeter
    system: int = 0
    tools: int = 0
    fixed_raw: float = 0.0
    """Tokens of both before calibration, with their framing."""
    waits_at: int | None = None
    """The generation whose view is left alone for longer, because folding it again would not help."""
    waits_for: int = 0
    """Until how many tokens it is left alone."""

    def due(self, generation: int, undone: bool) -> int:
        """At how many tokens the next folding happens by itself; an undone view is left alone for longer, too."""
        waits = self.limits.hard_tokens if undone else self.waits_for if self.waits_at == generation else 0
        return max(self.limits.threshold_tokens, waits)


@dataclass(frozen=True, slots=True)
class Overview:
    """One conversation as its page shows it."""

    record: ConversationRecord
    title: str
    named: bool
    last: int
    step: Generation
    compactions: frozenset[int]
    """Generations of the compactions that were not taken back."""
    use: WindowUse
    """Where the window goes: the number of tokens in use, and at which the next folding happens by itself."""
    seen: tuple[Placed, ...]
    """What the model sees, to the scale of its window."""
    log: tuple[Placed, ...]
    log_tokens: int
    log_about: bool
    """Whether the size of the log is an estimate."""
    totals: UsageTotals
    attempts: tuple[Attempt, ...]
    pins: tuple[Pin, ...]
    stamp: str
    """Changes whenever the page would."""

    @property
    def undone(self) -> int:
        """How many compactions were taken back: each is a step of the view, and so is taking it back."""
        return (self.step.generation - len(self.compactions)) // 2

    @property
    def segments(self) -> list[Segment]:
        """What the model sees, piece by piece."""
        without = (SegmentKind.FREE, SegmentKind.FIXED)
        return [place.segment for place in self.seen if place.segment.kind not in without]

    @property
    def threshold(self) -> float:
        """Where folding begins, in percent of the upper strip."""
        whole = max(sum(place.segment.tokens for place in self.seen), 1)
        return round(100 * self.use.threshold / whole, 2)


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """A line of a summary, and the messages it comes from."""

    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Opened:
    """A fold that is opened: what it says and what it was made from."""

    fold: StoredFold
    tokens: int
    covered: int
    sections: Mapping[str, Sequence[SummaryLine]]
    sources: tuple[tuple[FoldMark | Span, int], ...]
    """Each with its tokens in the log."""
    about: bool = False
    """Whether these are estimates."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some rows of a longer span of messages, of the log or of what the model sees."""

    rows: tuple[Row, ...]
    span: Span
    before: int
    """Where the rows before these begin; 0 when there are none."""
    after: int
    """Where the rows after these begin; 0 when there are none."""
    generation: int | None = None
    """Of the view whose rows they are; None for rows of the log."""
    tokens: int = 0
    """Of the whole request, where the rows are all of a view."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A compaction: the view before it and after it, to the same scale."""

    attempt: Attempt
    before: tuple[Placed, ...] = ()
    after: tuple[Placed, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    undone: bool = False

    @property
    def sections(self) -> dict[str, int]:
        """Lines of the summary by section, where its engine tells them."""
        told = self.attempt.report.details.get("sections")
        listed = told.items() if isinstance(told, dict) else ()
        return {str(name): lines for name, lines in listed if isinstance(lines, int)}


def summary_sections(handoff: object) -> dict[str, list[SummaryLine]]:
    """The sections of a stored summary. Engines of others may have stored anything; what has no text is left out."""
    found: dict[str, list[SummaryLine]] = {}
    for name, lines in handoff.items() if isinstance(handoff, dict) else ():
        for line in lines if isinstance(lines, list) else ():
            text = line.get("text") if isinstance(line, dict) else None
            if isinstance(text, str):
                sources = line.get("sources")
                numbers = [n for n in sources if isinstance(n, int)] if isinstance(sources, list) else []
                found.setdefault(str(name), []).append(SummaryLine(text, tuple(numbers)))
    return found
