"""A client's JSON body taken apart without reading it anew: what is not changed goes on byte for byte.

body = Body.read(data, "messages")
body.items[3]                         # the text of the fourth message, exactly as the client wrote it
body.with_items([*body.items[:2], fold, *body.items[40:]])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
import orjson

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
