"""What happens during a turn: as values that are shown, streamed or printed, and as hooks of the plugins.

`as_dict` is for programs and logs: secrets in commands are masked, tool output itself is not in it. Hooks have the
names and the arguments that Hermes gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct, field

from leporello.conversation import Conversation
from leporello.engines.plugin_result import as_hosted
from leporello.events import CompactionEvent
from leporello.messages import Message, ToolCall, decode_json, encode_json, role_of, text_of
from leporello.redact import redact
from leporello.tools.base import ToolResult
from leporello.usage import CanonicalUsage


class TextDelta(Struct, frozen=True):
    """A piece of the answer as it streams."""

    kind: ClassVar[str] = "text"
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "text": redact(self.text)}


class ToolStarted(Struct, frozen=True):
    """A call is about to run."""

    kind: ClassVar[str] = "tool_started"
    id: str
    name: str
    summary: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "id": self.id, "name": self.name, "summary": redact(self.summary)}


class ToolOutput(Struct, frozen=True):
    """Output of a running tool, for a person to watch."""

    kind: ClassVar[str] = "tool_output"
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "characters": len(self.text)}


class ToolFinished(Struct, frozen=True):
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


class Compacting(Struct, frozen=True):
    """A compaction begins; `Compacted` follows."""

    kind: ClassVar[str] = "compacting"
    trigger: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "trigger": self.trigger}


class Compacted(Struct, frozen=True):
    """An attempt at a compaction, whatever came of it."""

    kind: ClassVar[str] = "compaction"
    event: CompactionEvent

    def as_dict(self) -> dict[str, Any]:
        return self.event.as_dict()


class Notice(Struct, frozen=True):
    """Something the user should know: a recovery, a lowered limit."""

    kind: ClassVar[str] = "notice"
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "text": redact(self.text)}


class CallFinished(Struct, frozen=True):
    """One call to the model is done and counted."""

    kind: ClassVar[str] = "call"
    model: str
    usage: CanonicalUsage
    cost: float | None

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind, "model": self.model, **self.usage.as_engine_dict(), "cost": self.cost}


class TurnEnded(Struct, frozen=True):
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


# -- told to plugins, which may answer

LONGEST_CONTEXT = 8_000  # characters that all plugins together may add to a request


class TurnHooks(Struct, frozen=True):
    """Tells the plugins of a conversation what its agent does, and takes what they may answer."""

    conversation: Conversation

    def before_turn(self) -> str:
        """`pre_llm_call`: what plugins want the model to see in this turn; it is not stored."""
        first = self.conversation.runtime.log.view.last < 2
        answers = self._fire("pre_llm_call", is_first_turn=first, sender_id="")
        return "\n\n".join(_contexts(answers))[:LONGEST_CONTEXT]

    def after_turn(self, answer: str) -> None:
        """`post_llm_call`: the answer that ended the turn."""
        self._fire("post_llm_call", assistant_response=answer)

    def before_tool(self, call: ToolCall) -> ToolResult | None:
        """`pre_tool_call`: what the model gets instead where a plugin blocks the call."""
        for answer in self._tell("pre_tool_call", **_about(call)):
            if isinstance(answer, dict) and answer.get("action") == "block":
                return ToolResult.error(str(answer.get("message") or "A plugin blocked this call."))
        return None

    def after_tool(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        """`post_tool_call`: the whole result, as the tool gave it."""
        status = "error" if result.is_error else "ok"
        self._tell(
            "post_tool_call", **_about(call), result=result.text, duration_ms=int(seconds * 1_000), status=status
        )

    @property
    def _history(self) -> list[Message]:
        """A copy: plugins may do anything with it."""
        shown: list[Message] = decode_json(encode_json([*map(as_hosted, self.conversation.messages)]))
        return shown

    def _fire(self, hook: str, **facts: Any) -> list[Any]:
        slot, log = self.conversation.runtime.plugins, self.conversation.runtime.log
        if not slot.hears(hook):
            return []
        history = self._history
        said = next((text_of(message) for message in reversed(history) if role_of(message) == "user"), "")
        model = self.conversation.runtime.sizes.model
        about = {"user_message": said, "conversation_history": history, "model": model, "platform": slot.platform}
        return slot.fire(hook, session_id=log.view.session, **about, **facts)

    def _tell(self, hook: str, **facts: Any) -> list[Any]:
        slot = self.conversation.runtime.plugins
        return slot.fire(hook, session_id=self.conversation.runtime.log.view.session, **facts)


def _about(call: ToolCall) -> dict[str, Any]:
    return {"tool_name": call.name, "args": call.parsed(), "tool_call_id": call.id}


def _contexts(answers: list[Any]) -> Iterator[str]:
    for answer in answers:
        text = answer.get("context") if isinstance(answer, dict) else answer
        if isinstance(text, str) and text.strip():
            yield text.strip()
