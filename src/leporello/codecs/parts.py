"""Content parts of all dialects, and the notes that stand in for what a dialect can't carry."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leporello.messages import encode_json, parse_json

RAW_ARGUMENTS = "__raw_arguments__"
"""The one key of an arguments object that carries a text which is not a JSON object."""

_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<extra>(?:;[^;,]*)*),(?P<data>.*)", re.DOTALL)
_NOT_FINITE = re.compile(r"NaN|Infinity|\d[eE]\+?\d{3}")


@dataclass(frozen=True, slots=True)
class DataUrl:
    """A `data:` URL taken apart; `data` is base64 text."""

    media_type: str
    data: str

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.data}"


def data_url(url: Any) -> DataUrl | None:
    """The parts of a base64 `data:` URL, or None for any other address."""
    found = _DATA_URL.fullmatch(url) if isinstance(url, str) and url.startswith("data:") else None
    if found is None or ";base64" not in found["extra"]:
        return None
    return DataUrl(found["type"] or "application/octet-stream", found["data"])


def decoded_text(data: str) -> str | None:
    """The text in base64 data, or None when it is not text."""
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def text_part(text: str) -> dict[str, Any]:
    """A text part, the same in the chat and Anthropic dialects."""
    return {"type": "text", "text": text}


def note(what: str, raw: Any = None) -> dict[str, Any]:
    """A text part that says what stood here and could not be carried. Its size helps to tell two apart."""
    size = f", {len(encode_json(raw)):,} bytes" if raw is not None else ""
    return text_part(f"[{what} not shown: this model can't take it{size}]")


def as_json_text(raw: Any) -> dict[str, Any]:
    """A part of an unknown kind as text: nothing is lost, the model can read it."""
    return text_part(encode_json(raw).decode("utf-8", "replace"))


def file_note(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The note for a file; names it when it has a name."""
    inner = raw.get("file")
    named = inner if isinstance(inner, Mapping) else raw
    name = named.get("filename") or named.get("title") or named.get("file_id")
    return note(f"file {name}" if name else "file", raw)


def arguments_object(arguments: str) -> dict[str, Any]:
    """A call's arguments as the object Anthropic wants; anything else is carried as text under one key."""
    if arguments.strip() in ("", "null"):
        return {}
    value = parse_json(arguments)
    if isinstance(value, dict) and not _NOT_FINITE.search(arguments):
        return value
    return {RAW_ARGUMENTS: arguments}


def arguments_text(value: Any) -> str:
    """The text of an arguments object; undoes `arguments_object`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and set(value) == {RAW_ARGUMENTS} and isinstance(value[RAW_ARGUMENTS], str):
        return str(value[RAW_ARGUMENTS])
    return encode_json({} if value is None else value).decode("utf-8", "replace")


def valid_arguments(arguments: str) -> str:
    """Arguments that every chat server can parse: JSON objects are left alone, the rest is wrapped."""
    if arguments.strip() in ("", "null"):
        return "{}"
    value = parse_json(arguments)
    if isinstance(value, dict) and not _NOT_FINITE.search(arguments):
        return arguments
    return encode_json({RAW_ARGUMENTS: arguments}).decode("utf-8", "replace")
