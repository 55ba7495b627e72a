"""Values that every dialect shares: who receives a request, decoded replies, events of a stream, opaque state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import orjson
from msgspec import Struct

from leporello.messages import Message, calls_of, encode_json, hash_bytes, parts_of, role_of
from leporello.models.facts import fold, vendor_of

Wire = dict[str, Any]  # a request, reply or event as JSON objects, before it becomes bytes


class Target(Struct, frozen=True):
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


class WireReply(Struct, frozen=True):
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
    **dict.fromkeys((400, 405, 409, 413, 415, 431), "invalid_request_error"),
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
}
"""What the vendors call an error of a status."""


class StreamIncomplete(ValueError):
    """A stream ended before its end: a cut connection, or half a tool call."""


class Assembler(Protocol):
    events: int

    def feed(self, event: Mapping[str, Any], /) -> str:
        """Take one event; the text it adds to the answer."""

    def reply(self) -> Wire:
        """The whole answer; raises `StreamIncomplete` when the stream was cut."""


def at(value: Any, *path: str | int) -> Any:
    """What stands at a path of keys and places in JSON of any shape; None where the path ends early."""
    for key in path:
        if isinstance(key, str):
            value = value.get(key) if isinstance(value, Mapping) else None
        else:
            value = value[key] if isinstance(value, list) and key < len(value) else None
    return value


def objects(value: Any) -> list[Wire]:
    """The objects in a list; none when it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def without(message: Mapping[str, Any], *keys: str) -> Message:
    """The message without some keys; the same object when it has none of them."""
    if not any(key in message for key in keys):
        return message if isinstance(message, dict) else dict(message)
    return {key: value for key, value in message.items() if key not in keys}


STATE = "provider_state"  # the key of an assistant message under which opaque state lives


def new_state(message: Mapping[str, Any], dialect: str, target: Target, fields: Mapping[str, Any]) -> dict[str, Any]:
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
    return {state_key(message) for message in messages if STATE in message}


def drop_state(messages: Iterable[Message], keys: Collection[str]) -> list[Message]:
    """The messages without the states of these names: a signed block goes back verbatim or is gone whole."""
    return [
        without(message, STATE) if STATE in message and state_key(message) in keys else message for message in messages
    ]


MOST_PENDING = 16 * 1024 * 1024
"""An event beyond this is no event of a model API; what came is dropped, and reading goes on after it."""


class Event(Struct, frozen=True):
    """One event: its name (may be empty) and its data."""

    name: str
    data: bytes

    def json(self) -> Wire:
        """The data as an object; empty when it is none."""
        try:
            value = orjson.loads(self.data)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def encode(self) -> bytes:
        name = f"event: {self.name}\n".encode() if self.name else b""
        return name + b"data: " + self.data.replace(b"\n", b"\ndata: ") + b"\n\n"


def encode_event(body: Wire, name: str = "") -> bytes:
    return Event(name, orjson.dumps(body)).encode()


class EventReader:
    """Takes bytes and gives whole events. Line ends may be LF, CRLF or CR."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._lines: list[bytes] = []
        self._after_return = False
        self._comments: list[bytes] = []

    @property
    def comments(self) -> bytes:
        """The comments among the bytes that were fed last, each as a block of its own: they keep a line alive."""
        return b"".join(line + b"\n\n" for line in self._comments)

    def feed(self, data: bytes) -> Iterator[Event]:
        self._comments.clear()
        if self._after_return and data:
            data = data[1:] if data.startswith(b"\n") else data
            self._after_return = False
        if b"\r" in data:
            self._after_return = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            self._keep(data)
            return
        first, *others = data.split(b"\n")
        yield from self._line(bytes(self._pending) + first)
        self._pending.clear()
        for line in others[:-1]:
            yield from self._line(line)
        self._keep(others[-1])

    def _keep(self, data: bytes) -> None:
        if len(self._pending) + len(data) > MOST_PENDING:
            self._pending.clear()
            self._lines.clear()
            return
        self._pending += data

    def _line(self, line: bytes) -> Iterator[Event]:
        if line:
            (self._comments if line.startswith(b":") else self._lines).append(line)
            return
        name, data = "", []
        for kept in self._lines:
            field, _, value = kept.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value.decode("utf-8", "replace")
        self._lines.clear()
        if data:
            yield Event(name, b"\n".join(data))
