"""What of a message can be searched: its texts and calls, secrets masked, in chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leporello.messages import PartKind, calls_of, parse_json, parts_of
from leporello.redact import redact
from leporello.redact.messages import masked_call, masked_text

SEARCHABLE_VERSION = 2
"""Raised when the chunks of a message change, so that a stored index knows it is out of date."""

CHUNK = 2000
OVERLAP = 80
_DATA_URI = re.compile(r"data:[\w.+-]{1,64}/[\w.+-]{1,64}(?:;[\w=-]{1,64}){0,3};base64,[A-Za-z0-9+/=_-]*")
# Longer than any identifier; a run of letters without a blank is an encoded file.
_LEAST_BLOB = 400
_BLOB = re.compile(rf"[A-Za-z0-9+/=_-]{{{_LEAST_BLOB},}}")
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class SearchableChunk:
    """A part of a message's text as it is indexed."""

    number: int
    """Counts the chunks of a message from 0."""
    start: int
    """Where it begins in its piece."""
    tool: str
    """The tool whose call this is; empty for the message's own text."""
    text: str


def searchable_chunks(message: Mapping[str, Any]) -> list[SearchableChunk]:
    """All chunks of a message, secrets masked."""
    chunks: list[SearchableChunk] = []
    for tool, text in searchable_pieces(message):
        for start, part in _cut(_without_blobs(text)):
            chunks.append(SearchableChunk(len(chunks), start, tool, part))
    return chunks


def searchable_pieces(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Pieces of text, each with the tool it calls; secrets are masked before anything is cut or taken out."""
    text = "\n".join(part.text for part in parts_of(message) if part.kind in (PartKind.TEXT, PartKind.THINKING))
    for key in ("reasoning_content", "reasoning", "refusal"):
        extra = message.get(key)
        if isinstance(extra, str) and extra:
            text = f"{text}\n{extra}" if text else extra
    if text.strip():
        yield "", masked_text(text)
    for call in map(masked_call, calls_of(message)):
        value = parse_json(call.arguments)
        arguments = call.arguments if value is None else "\n".join(_texts(value, 0))
        yield call.name, redact(f"{call.name}\n{arguments}")


def _texts(value: Any, depth: int) -> Iterator[str]:
    """The texts inside a JSON value, keys included, one a line."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth < _DEEPEST:
        for key, item in value.items():
            yield f"{key} {' '.join(_texts(item, depth + 1))}"
    elif isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            yield from _texts(item, depth + 1)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _without_blobs(text: str) -> str:
    # Neither has a blank inside; looking for long words first is far faster than the patterns.
    if len(text) < _LEAST_BLOB or ("base64," not in text and max(map(len, text.split()), default=0) < _LEAST_BLOB):
        return text
    return _BLOB.sub(" ", _DATA_URI.sub(" ", text))


def _cut(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while len(text) - start > CHUNK + OVERLAP:
        end = start + CHUNK
        line_end = text.rfind("\n", start + CHUNK // 2, end)
        stop = line_end + 1 if line_end >= 0 else end
        yield start, text[start : stop + OVERLAP]
        start = stop
    if text[start:].strip():
        yield start, text[start:]
