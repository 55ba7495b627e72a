"""The OpenAI-format message as a value: text, parts, calls, bytes and hash.

A message is a plain dict, because that is what every engine plugin and provider speaks. It is treated as immutable:
nothing in Leporello changes a message in place. Parts of unknown kinds are carried along untouched.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import orjson
from msgspec import Struct

from leporello.deprecation import renamed_names

Message: TypeAlias = dict[str, Any]
Messages: TypeAlias = Sequence[Message]

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
HASH_TAG = "b2:"


class PartKind(StrEnum):
    """What a content part holds, as far as counting and folding care."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    FILE = "file"
    THINKING = "thinking"
    OTHER = "other"


_TYPES = {
    PartKind.TEXT: ("text", "input_text", "output_text", "refusal"),
    PartKind.IMAGE: ("image_url", "image", "input_image"),
    PartKind.AUDIO: ("input_audio", "audio"),
    PartKind.FILE: ("file", "input_file", "document"),
    PartKind.THINKING: ("thinking", "redacted_thinking", "reasoning"),
}
_KINDS = {name: kind for kind, names in _TYPES.items() for name in names}


class Part(NamedTuple):
    """One content part: its kind, its readable text (may be empty) and the raw value."""

    kind: PartKind
    text: str
    raw: Any


class ToolCall(Struct, frozen=True):
    """One tool call of an assistant message. `arguments` is the raw JSON text the model wrote."""

    id: str
    name: str
    arguments: str
    index: int

    def parsed(self) -> dict[str, Any]:
        """The arguments as a dict; empty when they are not a JSON object."""
        value = parse_json(self.arguments)
        return value if isinstance(value, dict) else {}


def parse_json(text: str) -> Any:
    """The JSON value of a text, or None when it is not JSON or is nested beyond reason."""
    try:
        return orjson.loads(text)
    except (ValueError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def role_of(message: Mapping[str, Any]) -> str:
    """The role, or an empty string when there is none."""
    role = message.get("role")
    return role if isinstance(role, str) else ""


def is_instruction(message: Mapping[str, Any]) -> bool:
    """System and developer messages: instruction sources that are never folded."""
    return message.get("role") in ("system", "developer")


def parts_of(message: Mapping[str, Any]) -> tuple[Part, ...]:
    """The content as parts, whatever shape it has."""
    content = message.get("content")
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Part(PartKind.TEXT, content, content),)
    if isinstance(content, list):
        return tuple(_part(raw) for raw in content)
    return (Part(PartKind.OTHER, "", content),)


def _part(raw: Any) -> Part:
    if isinstance(raw, str):
        return Part(PartKind.TEXT, raw, raw)
    if not isinstance(raw, dict):
        return Part(PartKind.OTHER, "", raw)
    kind = _KINDS.get(str(raw.get("type", "")), PartKind.OTHER)
    if kind in (PartKind.TEXT, PartKind.THINKING):
        for key in ("text", "refusal", "thinking", "content"):
            value = raw.get(key)
            if isinstance(value, str):
                return Part(kind, value, raw)
    return Part(kind, "", raw)


def text_of(message: Mapping[str, Any]) -> str:
    """The readable text of the content: text parts joined by newlines, nothing else."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1:
        # Most contents that are lists hold one part.
        part = _part(content[0])
        return part.text if part.kind is PartKind.TEXT else ""
    return "\n".join(part.text for part in parts_of(message) if part.kind is PartKind.TEXT and part.text)


_THOUGHTS = ("reasoning_content", "reasoning")


def without_thoughts(message: Message) -> Message:
    """The message without what its writer thought on the way; the very same object when there is nothing of it."""
    content = message.get("content")
    said = content
    if isinstance(content, list):
        said = [part.raw for part in map(_part, content) if part.kind is not PartKind.THINKING]
        said = content if len(said) == len(content) else said
    if said is content and message.keys().isdisjoint(_THOUGHTS):
        return message
    return {key: said if key == "content" else value for key, value in message.items() if key not in _THOUGHTS}


def calls_of(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of an assistant message, the old `function_call` form included."""
    raw = message.get("tool_calls")
    if isinstance(raw, list):
        return tuple(_call(item, index) for index, item in enumerate(raw) if isinstance(item, dict))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        return (_call({"id": "", "function": legacy}, 0),)
    return ()


def _call(item: Mapping[str, Any], index: int) -> ToolCall:
    body = item.get("function") or item.get("custom") or {}
    if not isinstance(body, dict):
        body = {}
    arguments = body.get("arguments", body.get("input", ""))
    if not isinstance(arguments, str):
        arguments = encode_json(arguments).decode("utf-8", "replace").strip()
    return ToolCall(str(item.get("id") or ""), str(body.get("name") or ""), arguments, index)


def result_id(message: Mapping[str, Any]) -> str:
    """The call id a tool message answers; the old `function` role answers by name."""
    return str(message.get("tool_call_id") or message.get("name") or "")


def is_result(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("tool", "function")


def encode_json(value: Any) -> bytes:
    """JSON bytes that read back as the same value: key order, unicode, lone surrogates, huge numbers, NaN.

    orjson is tried first; the standard library takes what orjson refuses or would change. A leading blank marks what
    the standard library must read, too: orjson would turn integers beyond 64 bits into floats.
    """
    try:
        data = orjson.dumps(value)
    except TypeError:
        return _encode_slowly(value)
    # orjson writes NaN and infinities as null without a word; what reads back as it was has none.
    odd = b"null" in data and orjson.loads(data) != value and _has_odd_float(value)
    return _encode_slowly(value) if odd else data


def _encode_slowly(value: Any) -> bytes:
    try:
        # Not as \\u escapes: two lone surrogates in a row would read back as one character.
        return b" " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except RecursionError as error:
        raise TypeError("nested too deeply to be stored as JSON") from error


def _has_odd_float(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
    return False


def decode_json(data: bytes) -> Any:
    """The value that `encode_json` wrote."""
    if data[:1] != b" ":
        try:
            return orjson.loads(data)
        except ValueError:
            pass
    return json.loads(data.decode("utf-8", "surrogatepass"))


def message_hash(message: Mapping[str, Any]) -> str:
    """The tagged content hash under which a message is stored once and its counts are remembered."""
    return hash_bytes(encode_json(message))


def hash_bytes(data: bytes) -> str:
    """Tagged hash of bytes; the tag names the algorithm, so that a later one can live beside it."""
    return HASH_TAG + hashlib.blake2b(data, digest_size=16).hexdigest()


def key_of(data: bytes) -> int:
    """What stands for bytes within this process, at half the cost of `hash_bytes`; never stored."""
    return hash(data)


if not TYPE_CHECKING:  # type checkers should refuse the old name
    __getattr__ = renamed_names(__name__)
