"""What every codec shares: the dialects, who receives a request, and what a decoded request or reply is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from leporello.messages import Message
from leporello.models.names import fold, vendor_of

Wire = dict[str, Any]
"""A request, reply or event as JSON objects, before it becomes bytes."""


class Dialect(StrEnum):
    """A wire format."""

    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class Target:
    """Who receives a request. Opaque state goes back only to the provider and model family that wrote it."""

    provider: str = ""
    model: str = ""
    cache_marks: bool = False
    """Chat only: the endpoint understands `cache_control` on content parts (OpenRouter for Claude models)."""
    native: bool = False
    """Chat and Responses: the vendor's own endpoint, with its newer field names (`max_completion_tokens`)."""

    @property
    def family(self) -> str:
        """The maker of the model where the name tells it, else the name's first word."""
        return vendor_of(self.model) or fold(self.model).partition("-")[0]


@dataclass(frozen=True, slots=True)
class WireReply:
    """An answer as decoded from the wire. `usage` is the provider's own object, or None when it sent none."""

    message: Message
    finish_reason: str = "stop"
    usage: Mapping[str, Any] | None = None
    model: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A client's request as messages. `origins[i]` is the index of the wire message (or input item) that message i
    came from, -1 for one that stood outside the list (`system`, `instructions`): untouched wire messages can be sent
    on as the client wrote them."""

    messages: list[Message]
    origins: list[int]
    tools: list[Wire] = field(default_factory=list)
    model: str = ""
    max_tokens: int | None = None
    stream: bool = False
    rest: Wire = field(default_factory=dict)
    """Every other field, as it came."""


FINISH_REASONS = (
    "stop",
    "length",
    "tool_calls",
    "content_filter",
    "pause",
    "context_window_exceeded",
)
"""`pause`: send the reply back to let the model go on. `context_window_exceeded`: the answer filled the window."""


class StreamIncomplete(ValueError):
    """A stream ended before its end: a cut connection, or half a tool call."""


def without(message: Mapping[str, Any], *keys: str) -> Message:
    """The message without some keys; the same object when it has none of them."""
    if not any(key in message for key in keys):
        return message if isinstance(message, dict) else dict(message)
    return {key: value for key, value in message.items() if key not in keys}
