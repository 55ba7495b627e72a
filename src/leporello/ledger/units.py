"""Units, the smallest pieces of a message that can be kept on their own: lines of output, sentences of prose."""

from __future__ import annotations

import re
from collections.abc import Iterator

CUT_MARK = " […] "
MAX_UNIT_CHARS = 420
MAX_LINES_READ = 6_000
"""A huge output is read at both ends; the middle of it is in the log and in the search index."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(`*A-Z0-9\u00c0-\u024f\u0400-\u04ff])|(?<=[。！？；])\s*")
_UNSPACED_ENDS = ("。", "！", "？", "；")
_BLANK_OR_RULE = re.compile(r"^[\s\-=_*#|+~.>`]*$")
_MARKUP_NOISE = re.compile(r"^</?[\w-]+>(?:</[\w-]+>)?$")


def lines_of(text: str) -> Iterator[tuple[str, int, int]]:
    """The non-empty lines of tool output with their position and the total number."""
    lines = [line for line in text.split("\n") if not _BLANK_OR_RULE.match(line)]
    total = len(lines)
    if total > MAX_LINES_READ:
        half = MAX_LINES_READ // 2
        chosen = [*enumerate(lines[:half]), *enumerate(lines[-half:], total - half)]
    else:
        chosen = list(enumerate(lines))
    for position, line in chosen:
        yield clip(line.rstrip()), position, total


def sentences_of(text: str, limit: int = MAX_UNIT_CHARS) -> list[str]:
    """The sentences of prose: paragraphs and list items are split at sentence ends, code lines stay whole."""
    return [sentence for sentence, _ in placed_sentences(text, limit)]


def placed_sentences(text: str, limit: int = MAX_UNIT_CHARS) -> list[tuple[str, int]]:
    """Each sentence with its place: one more than the place before it on the same line, two more on the next line."""
    found: list[tuple[str, int]] = []
    place = 0
    for line in text.split("\n"):
        bare = line.strip()
        if not bare or _BLANK_OR_RULE.match(bare) or _MARKUP_NOISE.match(bare):
            continue
        pieces = _SENTENCE_END.split(bare) if len(bare) > 60 else [bare]
        for piece in pieces:
            if piece and piece.strip():
                found.append((clip(piece.strip(), limit), place))
                # Whether a space stood behind it is not known: it is shown on a line of its own.
                place += 2 if piece.endswith(_UNSPACED_ENDS) else 1
        place += 1
    return found


def clip(text: str, limit: int = MAX_UNIT_CHARS) -> str:
    """The text itself, or its beginning and end around a visible cut mark."""
    if len(text) <= limit:
        return text
    room = limit - len(CUT_MARK)
    front = room * 2 // 3
    return text[:front].rstrip() + CUT_MARK + text[-(room - front) :].lstrip()
