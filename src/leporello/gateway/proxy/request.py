"""A client's request seen twice: as the messages it says, and as the text it was written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from leporello.caching import without_marks
from leporello.dialects import Dialect, Target, anthropic, chat, responses
from leporello.gateway.api_errors import refuse
from leporello.messages import Message, is_instruction, text_of

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Body:
    """Fields of a JSON object as text, and the items of the one that holds the conversation."""

    fields: Mapping[str, bytes]
    key: str
    items: tuple[bytes, ...]

    @classmethod
    def read(cls, data: bytes, key: str) -> Body | None:
        """None when the data is no object or the field no list."""
        try:
            fields = {name: bytes(value) for name, value in _fields.decode(data).items()}
            items = tuple(bytes(item) for item in _list.decode(fields[key]))
        except (msgspec.DecodeError, KeyError, RecursionError):
            return None
        return cls(fields, key, items)

    def with_items(self, items: Iterable[bytes], **changed: bytes) -> bytes:
        """The body with another list, and with other fields replaced or added."""
        fields = {**self.fields, **changed, self.key: b"[" + b",".join(items) + b"]"}
        return b"{" + b",".join(orjson.dumps(name) + b":" + value for name, value in fields.items()) + b"}"


CODECS: dict[Dialect, Any] = {
    Dialect.ANTHROPIC: anthropic,
    Dialect.OPENAI_CHAT: chat,
    Dialect.OPENAI_RESPONSES: responses,
}
LIST = {Dialect.ANTHROPIC: "messages", Dialect.OPENAI_CHAT: "messages", Dialect.OPENAI_RESPONSES: "input"}
OUTPUT_FIELDS = {
    Dialect.ANTHROPIC: ("max_tokens",),
    Dialect.OPENAI_CHAT: ("max_completion_tokens", "max_tokens"),
    Dialect.OPENAI_RESPONSES: ("max_output_tokens",),
}


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as it came, and what it means. `messages` leave out the leading instructions and all marks."""

    dialect: Dialect
    data: bytes
    fields: Mapping[str, Any]
    messages: tuple[Message, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    """For each message the items it stands in: first and one behind the last."""
    system: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    stateful: bool = False
    """The provider keeps (part of) the conversation: only what is new is here."""

    @property
    def model(self) -> str:
        """The model's name; empty when the client gave none."""
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""

    @property
    def stream(self) -> bool:
        """Whether the client wants events."""
        return self.fields.get("stream") is True

    @property
    def max_output(self) -> int | None:
        """The longest answer the client wants."""
        found = (self.fields.get(name) for name in OUTPUT_FIELDS[self.dialect])
        return next((value for value in found if isinstance(value, int) and not isinstance(value, bool)), None)

    def body(self) -> Body | None:
        """The request's text, taken apart."""
        return Body.read(self.data, LIST[self.dialect])

    def target(self) -> Target:
        """The receiver as the codecs know it: what the client sent back belongs to whom it sends it to."""
        return Target("upstream", self.model, cache_marks=True)


def read_request(dialect: Dialect, data: bytes) -> WireRequest:
    """Understand a request. What is no JSON object is refused; what is odd inside is the provider's to judge."""
    try:
        fields = orjson.loads(data)
    except ValueError:
        raise refuse(400, "invalid_json", "We could not parse the JSON body of your request.") from None
    if not isinstance(fields, dict):
        raise refuse(400, "invalid_json", "The body of the request must be a JSON object.")
    items = fields.get(LIST[dialect])
    if not isinstance(items, list) or not all(_is_message(dialect, item) for item in items):
        return WireRequest(dialect, data, fields, stateful=_is_stateful(dialect, fields))
    return _understood(dialect, data, fields, len(items))


def _understood(dialect: Dialect, data: bytes, fields: dict[str, Any], count: int) -> WireRequest:
    decoded = CODECS[dialect].decode_request(fields, "upstream")
    origins: Sequence[int] = decoded.origins
    said: list[Message] = without_marks(decoded.messages)
    start = next((k for k, message in enumerate(said) if not is_instruction(message)), len(said))
    spans: list[tuple[int, int]] = []
    following = later = count
    for k in range(len(said) - 1, start - 1, -1):
        # Several messages may come from one item; the next item begins where a greater origin does.
        if origins[k] != following:
            later, following = following, origins[k]
        spans.append((origins[k], later))
    spans.reverse()
    return WireRequest(
        dialect,
        data,
        fields,
        tuple(said[start:]),
        tuple(spans),
        "\n\n".join(text_of(message) for message in said[:start]),
        tuple(decoded.tools),
        _is_stateful(dialect, fields),
    )


def _is_message(dialect: Dialect, item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    if dialect is Dialect.OPENAI_RESPONSES:
        return isinstance(item.get("type", "message"), str)
    return isinstance(item.get("role"), str)


def _is_stateful(dialect: Dialect, fields: Mapping[str, Any]) -> bool:
    if dialect is not Dialect.OPENAI_RESPONSES:
        return False
    if any(fields.get(name) for name in ("previous_response_id", "conversation", "prompt")):
        return True
    items = fields.get("input")
    listed = items if isinstance(items, list) else ()
    return any(isinstance(item, dict) and item.get("type") == "item_reference" for item in listed)
