"""Content parts of all dialects, and the notes that stand in for what a dialect can't carry."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from leporello.messages import parse_json

RAW_ARGUMENTS = "__raw_arguments__"
"""The one key of an arguments object that carries a text which is not a JSON object."""

_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<extra>(?:;[^;,]*)*),(?P<data>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DataUrl:
    """A `data:` URL taken apart; `data` is base64 text."""

    media_type: str
    data: str


def data_url(url: Any) -> DataUrl | None:
    """The parts of a base64 `data:` URL, or None for any other address."""
    found = _DATA_URL.fullmatch(url) if isinstance(url, str) and url.startswith("data:") else None
    if found is None or ";base64" not in found["extra"]:
        return None
    return DataUrl(found["type"] or "application/octet-stream", found["data"])


def decoded_text(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def json_text(value: Any) -> str:
    """A value as JSON text; what orjson refuses (half a surrogate pair, huge integers) is escaped or spelt out."""
    try:
        return orjson.dumps(value).decode("utf-8")
    except TypeError:
        return json.dumps(value, separators=(",", ":"), default=str)


def pieces(text: str, size: int = 16) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def text_part(text: str) -> dict[str, Any]:
    """A text part, the same in the chat and Anthropic dialects."""
    return {"type": "text", "text": text}


def note(what: str, raw: Any = None) -> dict[str, Any]:
    """A text part that says what stood here and could not be carried. Its size helps to tell two apart."""
    size = f", {len(json_text(raw)):,} characters" if raw is not None else ""
    return text_part(f"[{what} not shown: this model can't take it{size}]")


def as_json_text(raw: Any) -> dict[str, Any]:
    """A part of an unknown kind as text: nothing is lost, the model can read it."""
    return text_part(json_text(raw))


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
    value = _object(arguments)
    return value if value is not None else {RAW_ARGUMENTS: arguments}


def arguments_text(value: Any) -> str:
    """The text of an arguments object; undoes `arguments_object`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and set(value) == {RAW_ARGUMENTS} and isinstance(value[RAW_ARGUMENTS], str):
        return str(value[RAW_ARGUMENTS])
    return json_text({} if value is None else value)


def valid_arguments(arguments: str) -> str:
    """Arguments that every chat server can parse: JSON objects are left alone, the rest is wrapped."""
    if arguments.strip() in ("", "null"):
        return "{}"
    if _object(arguments) is not None:
        return arguments
    return json_text({RAW_ARGUMENTS: arguments})


def is_cut(arguments: str) -> bool:
    """Whether arguments end in the middle, as at the output limit: half a call is no call."""
    return arguments.strip() != "" and parse_json(arguments) is None


def _object(arguments: str) -> dict[str, Any] | None:
    """The JSON object in a text, exactly; None for anything else, infinities and NaN among it."""
    try:
        value = orjson.loads(arguments)
    except ValueError:
        return _exact(arguments)
    if not isinstance(value, dict):
        return None
    # orjson reads integers beyond 64 bits as floats and half a surrogate pair as a mark: the slower reader doesn't.
    if _has_float(value) or "\\ud" in arguments or "\\uD" in arguments:
        return _exact(arguments)
    return value


def _exact(arguments: str) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_float(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_float(item) for item in value)
    return isinstance(value, float)
