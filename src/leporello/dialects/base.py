"""What every dialect shares: its name, who receives a request, decoded requests and replies.

Opaque provider state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from leporello.messages import Message, calls_of, encode_json, hash_bytes, parts_of, role_of
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


class StreamIncomplete(ValueError):
    """A stream ended before its end: a cut connection, or half a tool call."""


def without(message: Mapping[str, Any], *keys: str) -> Message:
    """The message without some keys; the same object when it has none of them."""
    if not any(key in message for key in keys):
        return message if isinstance(message, dict) else dict(message)
    return {key: value for key, value in message.items() if key not in keys}


STATE = "provider_state"
"""The key of an assistant message under which opaque state lives."""


def new_state(message: Message, dialect: Dialect, target: Target, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The state to store in a message that was just decoded."""
    return {
        "dialect": dialect.value,
        "provider": target.provider,
        "family": target.family,
        "shape": _shape(message),
        **fields,
    }


def state_for(message: Mapping[str, Any], dialect: Dialect, target: Target) -> Mapping[str, Any] | None:
    """The message's state when this receiver wrote it and the message is still as it was; else None."""
    state = message.get(STATE)
    if not isinstance(state, Mapping) or role_of(message) != "assistant":
        return None
    wanted = (dialect.value, target.provider, target.family)
    if (state.get("dialect"), state.get("provider"), state.get("family")) != wanted:
        return None
    return state if state.get("shape") == _shape(message) else None


def _shape(message: Mapping[str, Any]) -> list[int]:
    texts = [len(part.text) for part in parts_of(message)]
    return texts + [len(call.arguments) for call in calls_of(message)]


def state_key(message: Mapping[str, Any]) -> str:
    """A name for a message's state, by which a refused one can be remembered."""
    return hash_bytes(encode_json(message.get(STATE)))


def state_keys(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names of all states in a list."""
    return {state_key(message) for message in messages if STATE in message}


def drop_state(messages: Iterable[Message], keys: Collection[str]) -> list[Message]:
    """The messages without the states of these names: a signed block goes back verbatim or is gone whole."""
    return [
        {key: value for key, value in message.items() if key != STATE}
        if STATE in message and state_key(message) in keys
        else message
        for message in messages
    ]
