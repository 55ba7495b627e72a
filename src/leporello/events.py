"""Frozen values that layers exchange about a compaction: outcome, span, report, and the event of one attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, astuple, dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct

from leporello.messages import Message
from leporello.usage import CanonicalUsage


class Outcome(StrEnum):
    """How a compaction attempt ended. Every text shown to a user is derived from this."""

    COMMITTED = "committed"
    NOTHING_TO_DO = "nothing_to_do"
    NO_GAIN = "no_gain"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Span:
    """Messages m<first>..m<last> of a conversation's log, both included. Ids count from 1."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"m{self.first}" if self.first == self.last else f"m{self.first}-m{self.last}"

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last


def runs(numbers: Iterable[int]) -> list[Span]:
    """Sorted numbers as spans without gaps."""
    spans: list[Span] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1].last + 1 == number:
            spans[-1] = Span(spans[-1].first, number)
        else:
            spans.append(Span(number, number))
    return spans


class ViewEntry(Struct, frozen=True):
    """One line of a view: a stored message by its id, or a message that this compaction wrote (a fold, a pointer).

    Exactly one of `ref` (id number of a stored message) and `inline` is set; `fold` names the fold an inline message
    carries. A reference whose text is shown shortened in this view has both: `ref` for where it comes from, `inline`
    for what is shown.
    """

    ref: int | None = None
    inline: Message | None = None
    fold: str | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """What checking a summary against its source changed."""

    lines_checked: int = 0
    lines_dropped: int = 0
    rules_added: int = 0
    identifiers_added: int = 0
    dropped: tuple[str, ...] = ()
    lines_quoted: int = 0
    """Lines that were replaced by the words of the messages they are nearest to."""

    def __add__(self, other: Verification) -> Verification:
        return Verification(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """One attempt, whatever came of it: the source of every message to the user and of the stored record."""

    outcome: Outcome
    reason: str = ""
    engine: str = ""
    summariser: str = ""
    """`model:<name>` or `model-free`."""
    trigger: str = "manual"
    focus: str = ""
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    covered: Span | None = None
    fold: str = ""
    pruned: int = 0
    usage: CanonicalUsage = field(default_factory=CanonicalUsage)
    cost: float | None = None
    seconds: float = 0.0
    verification: Verification = field(default_factory=Verification)
    warnings: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def committed(self) -> bool:
        """Whether the view changed."""
        return self.outcome is Outcome.COMMITTED


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """One attempt at a compaction of one conversation."""

    conversation: str
    generation: int
    report: CompactionReport
    compactions: int = 0
    """How often the conversation has been compacted, this time included; 0 where nobody counted."""

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready form for logs and `--json`; holds sizes and reasons, never message text."""
        report = asdict(self.report)
        report["outcome"] = self.report.outcome.value
        report["covered"] = str(self.report.covered) if self.report.covered else None
        report["verification"] = {k: v for k, v in report["verification"].items() if k != "dropped"}
        about = {"conversation": self.conversation, "generation": self.generation, "compactions": self.compactions}
        return {"event": "compaction", **about, **report}


Listener: TypeAlias = Callable[[CompactionEvent], None]
