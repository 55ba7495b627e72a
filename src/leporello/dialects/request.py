"""A client's request: as the messages it says, and as the text it was written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson

from leporello.dialects.base import Wire
from leporello.dialects.tools import as_chat_tool
from leporello.messages import Message

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])


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

    @classmethod
    def read(
        cls,
        wire: Mapping[str, Any],
        messages: list[Message],
        origins: list[int],
        output_caps: Sequence[str],
        conversation: Sequence[str],
    ) -> DecodedRequest:
        """The request with the fields that all dialects name alike; `conversation` names those that were decoded."""
        known = ("tools", "model", "stream", *output_caps, *conversation)
        return cls(
            messages,
            origins,
            [as_chat_tool(tool) for tool in wire.get("tools") or () if isinstance(tool, Mapping)],
            str(wire.get("model") or ""),
            next((wire[name] for name in output_caps if wire.get(name)), wire.get(output_caps[-1])),
            bool(wire.get("stream")),
            {key: value for key, value in wire.items() if key not in known},
        )


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


@dataclass(frozen=True, slots=True)
class OverlayItem:
    """One item of a rewritten list: the client's own (by its place), or one that was written for it."""

    place: int | None
    text: bytes
    role: str = ""
    fold: bool = False
