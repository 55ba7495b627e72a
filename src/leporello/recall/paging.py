"""Raw messages by id: ids as models write them, pages of a token budget, and what a span is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from leporello.messages import Message, PartKind, calls_of, encode_json, is_result, parts_of, result_id, role_of

Count = Callable[[str], int]
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message's text on a page."""

    message: int
    role: str
    start: int
    """Where it begins in the message's text."""
    text: str
    is_last: bool
    """Whether the message ends here."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; `from` and `continues` only where a message was cut."""
        shown: dict[str, Any] = {"id": f"m{self.message}", "role": self.role, "text": self.text}
        if self.start:
            shown["from"] = self.start
        if not self.is_last:
            shown["continues"] = True
        return shown


def full_text(message: Mapping[str, Any]) -> str:
    """Everything a message says: its text as it is, then each call with its arguments as they were written."""
    shown: list[str] = []
    if is_result(message) and result_id(message):
        shown.append(f"[result of {result_id(message)}]")
    for part in parts_of(message):
        if part.kind in (PartKind.TEXT, PartKind.THINKING) and part.text:
            shown.append(part.text)
        elif part.kind not in (PartKind.TEXT, PartKind.THINKING):
            shown.append(f"[{part.kind.value}, {len(_encoded(part.raw)):,} bytes]")
    for call in calls_of(message):
        shown.append(f"[call {call.id}: {call.name}]\n{call.arguments}")
    return "\n".join(shown)


def json_text(value: Any) -> str:
    """JSON that any client can send: half of a surrogate pair, which no encoding takes, is written as its escape."""
    text = encode_json(value).decode("utf-8", "surrogatepass").lstrip()
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _encoded(value: Any) -> bytes:
    try:
        return encode_json(value)
    except TypeError:
        return repr(value).encode("utf-8", "replace")


def pages(messages: Iterable[tuple[int, Message]], count: Count, max_tokens: int) -> Iterator[list[Piece]]:
    """Pages of at most `max_tokens` tokens as JSON, one after the other. Empty messages are shown as empty pieces."""
    page: list[Piece] = []
    used = 0
    for number, message in messages:
        text, start, done = full_text(message), 0, False
        while not done:
            whole = Piece(number, role_of(message), start, text[start : start + max_tokens * _LONGEST_TOKEN], False)
            piece, cost = _fitted(whole, len(text) - start, count, max_tokens - used)
            # A stub of a message helps nobody: when little room is left, the message begins on the next page.
            if page and (cost > max_tokens - used or not (piece.is_last or max_tokens - used > max_tokens // 4)):
                yield page
                page, used = [], 0
                continue
            page.append(piece)
            used += cost
            start += len(piece.text)
            done = piece.is_last
    if page:
        yield page


_LONGEST_TOKEN = 16
"""Characters; more than a page's worth of text need not be measured to fill a page."""


def _fitted(piece: Piece, rest: int, count: Count, room: int) -> tuple[Piece, int]:
    """The longest beginning of the piece that fits into the room, and its cost; a single character always fits."""
    text = piece.text
    size = len(text)
    while True:
        piece = replace(piece, text=text[:size], is_last=size == rest)
        cost = count(json_text(piece.as_dict())) + 1
        if cost <= room or size <= 1:
            return piece, cost
        size = _cut_before(text, min(size - 1, int(size * room / cost * 0.95)))


def _cut_before(text: str, size: int) -> int:
    """A place to cut near `size`: behind a line end when one is not far, never 0."""
    size = max(1, size)
    line_end = text.rfind("\n", size - size // 4, size)
    return line_end + 1 if line_end >= 0 else size
