"""What happens during a turn, as values: shown by a terminal, streamed by a server, printed as JSON lines.

`as_dict` is for programs and logs: secrets in commands are masked, tool output itself is not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from leporello.events import CompactionEvent
from leporello.redact import redact
from leporello.usage import CanonicalUsage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer as it streams."""

    kind: ClassVar[str] = "text"
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "text": redact(self.text)}


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call is about to run."""

    kind: ClassVar[str] = "tool_started"
    id: str
    name: str
    summary: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "id": self.id, "name": self.name, "summary": redact(self.summary)}


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """Output of a running tool, for a person to watch."""

    kind: ClassVar[str] = "tool_output"
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "characters": len(self.text)}


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call has its result."""

    kind: ClassVar[str] = "tool_finished"
    id: str
    name: str
    ok: bool
    characters: int
    saved: str = ""
    """Path of the whole output when only a preview went into the conversation."""
    seconds: float = 0.0
    """How long it took, the time a person needed to approve it included."""
    outcome: str = ""
    """How it ended, in one line; empty when there is nothing to say."""
    message: str = ""
    """Id of the stored result (`m12`), by which it can be reopened."""
    output: str = ""
    """What the tool gave, for a person to look at; not part of `as_dict`."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "event": self.kind,
            "id": self.id,
            "name": self.name,
            "ok": self.ok,
            "characters": self.characters,
            "saved": self.saved or None,
            "seconds": round(self.seconds, 3),
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Compacting:
    """A compaction begins; `Compacted` follows."""

    kind: ClassVar[str] = "compacting"
    trigger: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "trigger": self.trigger}


@dataclass(frozen=True, slots=True)
class Compacted:
    """An attempt at a compaction, whatever came of it."""

    kind: ClassVar[str] = "compaction"
    event: CompactionEvent

    def as_dict(self) -> dict[str, Any]:
        return self.event.as_dict()


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know: a recovery, a lowered limit."""

    kind: ClassVar[str] = "notice"
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "text": redact(self.text)}


@dataclass(frozen=True, slots=True)
class CallFinished:
    """One call to the model is done and counted."""

    kind: ClassVar[str] = "call"
    model: str
    usage: CanonicalUsage
    cost: float | None

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "model": self.model, **self.usage.as_engine_dict(), "cost": self.cost}


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over."""

    kind: ClassVar[str] = "turn"
    text: str
    reason: str
    """`stop`, `empty`, `interrupted`, `length`, `steps`, `repeats`, `content_filter`, `context_window_exceeded`."""
    calls: int = 0
    usage: CanonicalUsage = field(default_factory=CanonicalUsage)

    def as_dict(self) -> dict[str, Any]:
        return {
            "event": self.kind,
            "text": redact(self.text),
            "reason": self.reason,
            "calls": self.calls,
            "prompt_tokens": self.usage.prompt_tokens,
            "output_tokens": self.usage.output_tokens,
        }


ENDINGS = {
    "length": "The answer reached its maximum length. Write `go on` for the rest.",
    "steps": "The turn was stopped after too many steps. Write `go on` to continue.",
    "repeats": "The turn was stopped: the same calls were made again and again. Say what to do differently.",
    "empty": "The model gave no answer. Ask again, or in other words.",
    "context_window_exceeded": "The answer filled the model's window. Write `go on` for the rest.",
    "content_filter": "The provider's filter ended the answer.",
}
"""What a person is told about a turn that ended for another reason than an answer."""

AgentEvent: TypeAlias = (
    TextDelta | ToolStarted | ToolOutput | ToolFinished | Compacting | Compacted | Notice | CallFinished | TurnEnded
)
Watcher: TypeAlias = Callable[[AgentEvent], None]
