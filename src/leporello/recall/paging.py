"""Raw messages by id: ids as models write them, pages of a token budget, and what a span is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leporello.errors import InputError
from leporello.events import Span
from leporello.lazy_regex import lazy_regex
from leporello.messages import (
    Message,
    PartKind,
    calls_of,
    encode_json,
    is_result,
    parts_of,
    result_id,
    role_of,
    text_of,
)
from leporello.recall.base import ArchivedFold
from leporello.recall.chunks import chunks_of, lines_of
from leporello.redact.messages import Given, given_after, masked

_MESSAGES = lazy_regex(r"\[?\s*+m?(\d{1,12})\s*+(?:(?:-|–|\.\.|to)\s*+m?(\d{1,12}))?\s*+\]?", re.IGNORECASE)
_FOLD = lazy_regex(r"\[?\s*(f\w{1,64})\s*\]?", re.IGNORECASE)


def find(id: object, newest: int, folds: Sequence[ArchivedFold]) -> tuple[Span, ArchivedFold | None]:
    """The span an id stands for, and the fold when it is one; `InputError` says what is wrong and what exists."""
    text = str(id).strip() if isinstance(id, str | int) and not isinstance(id, bool) else ""
    messages = _MESSAGES.fullmatch(text)
    if messages:
        return _span(messages, text, newest), None
    named = _FOLD.fullmatch(text)
    if named is None:
        raise InputError(f"{id!r} is no id: give a message (m12), a span (m10-m20) or a fold (f3)")
    for fold in folds:
        if fold.id.lower() == named[1].lower():
            return fold.covered, fold
    known = ", ".join(fold.id for fold in folds[-10:])
    raise InputError(
        f"there is no fold {named[1]}" + (f"; the newest are {known}" if known else "; nothing is folded yet")
    )


def _span(found: re.Match[str], text: str, newest: int) -> Span:
    first = int(found[1])
    last = int(found[2]) if found[2] else first
    if first > last:
        raise InputError(f"{text} runs backwards: write m{last}-m{first}")
    if newest == 0:
        raise InputError("the conversation has no messages yet")
    if first < 1 or first > newest:
        raise InputError(f"there is no message m{first}; messages are m1 to m{newest}")
    return Span(first, min(last, newest))


Count = Callable[[str], int]
_LONE = lazy_regex("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PagePiece:
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


def pages(messages: Iterable[tuple[int, Message]], count: Count, max_tokens: int) -> Iterator[list[PagePiece]]:
    """Pages of at most `max_tokens` tokens as JSON, one after the other. Empty messages are shown as empty pieces."""
    page: list[PagePiece] = []
    used = 0
    for number, message in messages:
        text, start, done = full_text(message), 0, False
        while not done:
            whole = PagePiece(number, role_of(message), start, text[start : start + max_tokens * _LONGEST_TOKEN], False)
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


def _fitted(piece: PagePiece, rest: int, count: Count, room: int) -> tuple[PagePiece, int]:
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


MOST_LISTED = 12
LONGEST_QUOTE = 160
_FILE_KEY = lazy_regex(r"^(?:\w*path|file|files|filename|notebook\w*): (\S+)$", re.IGNORECASE)
_FILE = lazy_regex(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}(?![\w/])")
_FAILURE = lazy_regex(r"\b(?:\w*Error|\w*Exception|FAILED|FAIL|fatal|panic|error)\b[:\s]")


class _Digest:
    def __init__(self) -> None:
        self.tokens = 0
        self.roles: Counter[str] = Counter()
        self.tools: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.asks: list[tuple[int, str]] = []
        self.failures: list[tuple[int, str]] = []
        self._given = Given.NOTHING

    def take(self, number: int, message: Message, count: Count) -> None:
        self.tokens += count(full_text(message))
        message, self._given = masked(message, self._given), given_after(message, self._given)
        self.roles[role_of(message)] += 1
        if role_of(message) == "user":
            self._first_line(self.asks, number, lines_of(text_of(message)))
        elif is_result(message):
            self._first_line(
                self.failures, number, (line for line in lines_of(text_of(message)) if _FAILURE.search(line))
            )
        for call in calls_of(message):
            self.tools[call.name] += 1
        for passage in chunks_of(message):
            if passage.is_call:
                self.files.update(_files(passage.lines))

    @staticmethod
    def _first_line(kept: list[tuple[int, str]], number: int, lines: Iterator[str]) -> None:
        line = next(lines, "")
        if line:
            kept.append((number, line[:LONGEST_QUOTE]))


def describe(messages: Iterable[tuple[int, Message]], count: Count) -> dict[str, Any]:
    """Sizes, files, tools, requests and failures of a span, and questions that opening it would answer."""
    digest = _Digest()
    for number, message in messages:
        digest.take(number, message, count)
    return {
        "messages": sum(digest.roles.values()),
        "tokens": digest.tokens,
        "roles": dict(digest.roles),
        "tools": dict(digest.tools.most_common(MOST_LISTED)),
        "files": [path for path, _ in digest.files.most_common(MOST_LISTED)],
        "asked": [{"id": f"m{number}", "text": line} for number, line in digest.asks[:MOST_LISTED]],
        "failures": [{"id": f"m{number}", "text": line} for number, line in digest.failures[:MOST_LISTED]],
        "answers": list(_questions(digest))[:MOST_LISTED],
    }


def _files(lines: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for line in lines:
        named = _FILE_KEY.match(line)
        if named:
            found.add(named[1])
        elif line.startswith(("command: ", "cmd: ")):
            found.update(_FILE.findall(line))
    return found


def _questions(digest: _Digest) -> Iterator[str]:
    for number, line in digest.asks[:4]:
        yield f"How was this request of m{number} dealt with: {line}"
    for path, times in digest.files.most_common(4):
        yield f"What was done with {path}" + (f" ({times} calls)?" if times > 1 else "?")
    for number, line in digest.failures[:4]:
        yield f"What led to this in m{number}, and what followed: {line}"
