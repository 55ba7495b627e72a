"""A message cut into passages of short lines: the text it shows, and each of its tool calls.

A line is what a search can bring back alone, so lines are kept short: a long paragraph becomes several at the ends of
its sentences. JSON is read, not shown: the arguments of a call become `name: value` lines, and a result that is JSON is
seen as the texts inside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leporello.messages import calls_of, is_result, parse_json, role_of, text_of

LONGEST_LINE = 240
_DEEPEST = 20
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_DATA_URI = re.compile(r"data:[\w.+-]{1,64}/[\w.+-]{1,64}(?:;[\w=-]{1,64}){0,3};base64,[A-Za-z0-9+/=_-]*")
# Longer than any identifier: an encoded file, which says nothing to a reader.
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{400,}")


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one message, or one tool call of it, as lines."""

    role: str
    tool: str
    """The tool that was called or gave the result; empty for plain text."""
    is_call: bool
    call: int
    """Which call of the message this is; 0 for its text."""
    lines: tuple[str, ...]


def passages_of(message: Mapping[str, Any], tool: str = "") -> list[Passage]:
    """All passages of a message; `tool` names the tool whose result it is. Passages without text are left out."""
    role = role_of(message)
    text = text_of(message)
    if is_result(message):
        text = _inside_json(text)
        tool = tool or str(message.get("name") or "")
    found = [Passage(role, tool, False, 0, tuple(lines_of(text)))]
    for call in calls_of(message):
        value = parse_json(call.arguments)
        body = call.arguments if value is None else "\n".join(_named_texts(value))
        found.append(Passage(role, call.name, True, call.index, tuple(lines_of(body)) or (call.name,)))
    return [passage for passage in found if passage.lines]


def lines_of(text: str) -> Iterator[str]:
    """Short lines with something in them; encoded files are taken out."""
    if len(text) > LONGEST_LINE:
        if "base64," in text:
            text = _DATA_URI.sub(" ", text)
        text = _BLOB.sub(" ", text)
    for line in text.splitlines():
        line = line.strip()
        if len(line) <= LONGEST_LINE:
            if line:
                yield line
        else:
            yield from _sentences(line)


def _sentences(line: str) -> Iterator[str]:
    """A long line as pieces that end where sentences end, else at a blank, else anywhere."""
    piece = ""
    for sentence in _SENTENCE.split(line):
        if piece and len(piece) + 1 + len(sentence) > LONGEST_LINE:
            yield piece
            piece = ""
        while len(sentence) > LONGEST_LINE:
            if piece:
                yield piece
                piece = ""
            # At a blank, else behind a comma (JSON without blanks), else anywhere.
            cut = sentence.rfind(" ", LONGEST_LINE // 2, LONGEST_LINE)
            cut = cut if cut >= 0 else sentence.rfind(",", LONGEST_LINE // 2, LONGEST_LINE) + 1 or LONGEST_LINE
            yield sentence[:cut]
            sentence = sentence[cut:].lstrip()
        piece = f"{piece} {sentence}" if piece else sentence
    if piece.strip():
        yield piece


def _inside_json(text: str) -> str:
    """The texts inside a result that is JSON with text packed into it; any other text, plain JSON too, as it is."""
    if "\\" not in text or text.lstrip()[:1] not in ("{", "["):
        return text
    value = parse_json(text)
    return text if value is None else "\n".join(_named_texts(value))


def _named_texts(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST or value is None:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _named_texts(item, str(key), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _named_texts(item, name, depth + 1)
    else:
        yield f"{name}: {value}" if name else str(value)
