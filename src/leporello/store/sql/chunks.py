"""What of a message can be searched (its texts and calls, secrets masked, in chunks), and what of a chunk is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.messages import PartKind, calls_of, parse_json, parts_of
from leporello.redact import redact
from leporello.redact.messages import Given, masked_call, masker
from leporello.text_features.words import index_words, query_words

CHUNK = 2000
OVERLAP = 80
_DATA_URI = lazy_regex(r"data:[\w.+-]{1,64}/[\w.+-]{1,64}(?:;[\w=-]{1,64}){0,3};base64,[A-Za-z0-9+/=_-]*")
# Longer than any identifier; a run of letters without a blank is an encoded file.
_LEAST_BLOB = 400
_BLOB = lazy_regex(rf"[A-Za-z0-9+/=_-]{{{_LEAST_BLOB},}}")
_DEEPEST = 20


class SearchableChunk(Struct, frozen=True):
    """A part of a message's text as it is indexed."""

    number: int
    """Counts the chunks of a message from 0."""
    start: int
    """Where it begins in its piece."""
    tool: str
    """The tool whose call this is; empty for the message's own text."""
    text: str


def searchable_chunks(message: Mapping[str, Any], given: Given = Given.NOTHING) -> list[SearchableChunk]:
    """All chunks of a message, secrets masked."""
    chunks: list[SearchableChunk] = []
    for tool, text in searchable_pieces(message, given):
        for start, part in _cut(_without_blobs(text)):
            chunks.append(SearchableChunk(len(chunks), start, tool, part))
    return chunks


def searchable_pieces(message: Mapping[str, Any], given: Given) -> Iterator[tuple[str, str]]:
    """Pieces of text, each with the tool it calls; secrets are masked before anything is cut or taken out."""
    text = "\n".join(part.text for part in parts_of(message) if part.kind in (PartKind.TEXT, PartKind.THINKING))
    for key in ("reasoning_content", "reasoning", "refusal"):
        extra = message.get(key)
        if isinstance(extra, str) and extra:
            text = f"{text}\n{extra}" if text else extra
    if text.strip():
        yield "", masker(dict(message), given)(text)
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


LONGEST = 240
_LINE = lazy_regex(r"[^\n]+")


def snippet(text: str, query: str) -> str:
    """Around the query itself where the text has it, else around the line that shares most words with it."""
    place = text.casefold().find(query.casefold()) if query else 0
    if place < 0:
        place = _best_line(text, query)
    start = max(0, place - LONGEST // 4)
    piece = " ".join(text[start : start + LONGEST].split())
    return ("..." if start else "") + piece + ("..." if start + LONGEST < len(text) else "")


def _best_line(text: str, query: str) -> int:
    wanted = set(query_words(query))
    best, place = 0, 0
    for line in _LINE.finditer(text):
        shared = len(wanted.intersection(index_words(line.group())))
        if shared > best:
            best, place = shared, line.start()
    return place
