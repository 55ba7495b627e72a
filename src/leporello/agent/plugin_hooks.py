"""The hooks around a turn, under the names and with the arguments that Hermes gives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leporello.conversation import Conversation
from leporello.engines.plugin_result import as_hosted
from leporello.messages import Message, ToolCall, decode_json, encode_json, role_of, text_of
from leporello.tools.base import ToolResult

LONGEST_CONTEXT = 8_000
"""Characters that all plugins together may add to a request."""


@dataclass(frozen=True, slots=True)
class TurnHooks:
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
