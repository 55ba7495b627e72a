"""Finds the places where a rule may match by its literal word, and the spans that hold a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PLACEHOLDER = "[REDACTED]"


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """One secret: code points start..end of the text, and what kind it is. Never the secret itself."""

    start: int
    end: int
    kind: str


def merge(text: str, spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """In order and without overlap; what is a placeholder already, or nothing, is left out."""
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not text[span.start : span.end].replace(PLACEHOLDER, "").strip():
            continue
        last = merged[-1] if merged else None
        if last is not None and span.start < last.end:
            merged[-1] = SecretSpan(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged


def lowered_of(text: str) -> str:
    """The text in small letters, with every character at its old place."""
    lowered = text.lower()
    # One letter (the dotted capital I) becomes two in small; nothing ever becomes fewer.
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "I").lower()


def matches(pattern: re.Pattern[str], text: str, word: str, searched: str) -> Iterator[re.Match[str]]:
    """What the pattern matches from each place of a word in `searched` (the text, or the text in small letters).

    Places inside an earlier match are passed over: they were read.
    """
    place = searched.find(word)
    while place >= 0:
        match = pattern.match(text, place)
        if match is not None:
            yield match
        place = searched.find(word, max(place + len(word), match.end() if match else 0))
