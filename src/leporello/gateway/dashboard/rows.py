"""Messages as rows of a page: who, when, how large, and the beginning of what they say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from leporello.gateway.dashboard.words import FIRST_CHARACTERS, Piece, one_line, piece
from leporello.messages import (
    Message,
    PartKind,
    calls_of,
    encode_json,
    is_result,
    parse_json,
    parts_of,
    result_id,
    role_of,
)
from leporello.store.records import StoredMessage
from leporello.tokens import TokenCounter

LEAST_SHOWN = 200
_NAMED = 60


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a message: its text, a tool call, thinking, or something that is no text."""

    index: int
    kind: str
    title: str
    shown: Piece
    size: int


@dataclass(frozen=True, slots=True)
class Row:
    """One message."""

    number: int
    role: str
    who: str
    """The tool of a result, else empty."""
    at: float
    tokens: int
    blocks: tuple[Block, ...]
    pinned: bool = False


def message_rows(stored: Iterable[StoredMessage], counter: TokenCounter, pinned: Collection[int] = ()) -> list[Row]:
    """Rows of neighbouring messages; results are named after the calls among them."""
    listed = list(stored)
    names = {call.id: call.name for item in listed for call in calls_of(item.message) if call.id}
    return [_row(item, names, counter, item.number in pinned) for item in listed]


def _row(item: StoredMessage, names: Mapping[str, str], counter: TokenCounter, pinned: bool) -> Row:
    message = item.message
    role = "tool" if is_result(message) else role_of(message)
    who = ""
    if role == "tool":
        who = one_line(names.get(result_id(message)) or str(message.get("name") or ""), _NAMED)
    left = FIRST_CHARACTERS
    blocks = []
    for index, (kind, title, text) in enumerate(texts_of(message)):
        shown = piece(text, 0, max(LEAST_SHOWN, left))
        left -= len(shown.text)
        blocks.append(Block(index, kind, title, shown, len(text)))
    known = role if role in ("user", "assistant", "tool", "system", "developer") else "other"
    return Row(item.number, known, who, item.created_at, counter.message(message), tuple(blocks), pinned)


def texts_of(message: Message) -> list[tuple[str, str, str]]:
    """Everything a message holds as kind, title and text; no part of it is left out."""
    found: list[tuple[str, str, str]] = []
    thoughts = message.get("reasoning_content")
    if isinstance(thoughts, str) and thoughts:
        found.append(("thinking", "thinking", thoughts))
    for part in parts_of(message):
        if part.kind is PartKind.TEXT:
            # Many tools answer with an object whose texts have escaped line ends: nobody could read that.
            found.append(("text", "", _fields(part.text) if is_result(message) else part.text))
        elif part.kind is PartKind.THINKING:
            found.append(("thinking", "thinking", part.text or _json(part.raw)))
        else:
            found.append(("data", part.kind.value, _json(part.raw)))
    for call in calls_of(message):
        found.append(("call", one_line(call.name, _NAMED) or "call", _fields(call.arguments)))
    return found


def _fields(text: str) -> str:
    """The fields of a JSON object one to a line, texts as they are; anything else stands as it was written."""
    value = parse_json(text) if text.lstrip().startswith("{") else None
    if not isinstance(value, dict) or not value:
        return text
    return "\n".join(f"{name}: {inner if isinstance(inner, str) else _json(inner)}" for name, inner in value.items())


def _json(value: object) -> str:
    return encode_json(value).decode("utf-8", "replace").strip()
