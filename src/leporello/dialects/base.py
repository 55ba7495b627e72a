"""Values that every dialect shares: who receives a request, decoded replies, opaque provider state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from leporello.messages import Message, calls_of, encode_json, hash_bytes, parts_of, role_of
from leporello.models.names import fold, vendor_of

Wire = dict[str, Any]
"""A request, reply or event as JSON objects, before it becomes bytes."""


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
    """An answer as decoded from the wire. `usage` is the provider's own object, or None when it sent none.

    Finish reasons are those of Chat Completions, and two more. `pause`: send the reply back to let the model go on.
    `context_window_exceeded`: the answer filled the window.
    """

    message: Message
    finish_reason: str = "stop"
    usage: Mapping[str, Any] | None = None
    model: str = ""
    id: str = ""

    @classmethod
    def read(cls, wire: Mapping[str, Any], message: Message, finish: str, usage: Any, target: Target) -> WireReply:
        """The reply with the fields that all dialects name alike."""
        return cls(
            message,
            finish,
            usage if isinstance(usage, Mapping) else None,
            str(wire.get("model") or target.model),
            str(wire.get("id") or ""),
        )


ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    431: "invalid_request_error",
    429: "rate_limit_error",
}
"""What the vendors call an error of a status."""


class StreamIncomplete(ValueError):
    """A stream ended before its end: a cut connection, or half a tool call."""


class Assembler(Protocol):
    """Puts a stream together."""

    events: int

    def feed(self, event: Mapping[str, Any], /) -> str:
        """Take one event; the text it adds to the answer."""

    def reply(self) -> Wire:
        """The whole answer; raises `StreamIncomplete` when the stream was cut."""


def without(message: Mapping[str, Any], *keys: str) -> Message:
    """The message without some keys; the same object when it has none of them."""
    if not any(key in message for key in keys):
        return message if isinstance(message, dict) else dict(message)
    return {key: value for key, value in message.items() if key not in keys}


STATE = "provider_state"
"""The key of an assistant message under which opaque state lives."""


def new_state(message: Mapping[str, Any], dialect: str, target: Target, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The state to store in a message that was just decoded."""
    return {
        "dialect": dialect,
        "provider": target.provider,
        "family": target.family,
        # Says whether the message is still as it was.
        "shape": [
            *(len(part.text) for part in parts_of(message)),
            *(len(call.arguments) for call in calls_of(message)),
        ],
        **fields,
    }


def state_for(message: Mapping[str, Any], dialect: str, target: Target) -> Mapping[str, Any] | None:
    """The message's state when this receiver wrote it and the message is still as it was; else None."""
    state = message.get(STATE)
    if not isinstance(state, Mapping) or role_of(message) != "assistant":
        return None
    wanted = new_state(message, dialect, target, {})
    return state if all(state.get(key) == value for key, value in wanted.items()) else None


def state_key(message: Mapping[str, Any]) -> str:
    """A name for a message's state, by which a refused one can be remembered."""
    return hash_bytes(encode_json(message.get(STATE)))


def state_keys(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names of all states in a list."""
    return {state_key(message) for message in messages if STATE in message}


def drop_state(messages: Iterable[Message], keys: Collection[str]) -> list[Message]:
    """The messages without the states of these names: a signed block goes back verbatim or is gone whole."""
    return [
        without(message, STATE) if STATE in message and state_key(message) in keys else message for message in messages
    ]
