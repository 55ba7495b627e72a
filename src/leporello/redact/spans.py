"""A place in a text, and how places found by several rules become one list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import re2
from msgspec import Struct

from leporello.text_features.rare import widened

PLACEHOLDER = "[REDACTED]"


class SecretSpan(Struct, frozen=True):
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


_AUTOMATON = 64 << 20
"""Bytes that its states may take, as they are met; with less it forgets them, and is slower by half."""


class Words:
    """Which of many words stand in a text, found in one reading however many they are."""

    def __init__(self, words: Iterable[str], patterns: Mapping[str, str] | None = None) -> None:
        """`patterns`: words that count only where such a pattern matches, in any case."""
        self._patterns = {word: re.escape(word) for word in words} | dict(patterns or {})
        self._words = ("", *self._patterns)

    @cached_property
    def _set(self) -> Any:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1  # bytes as they are: a text may have no right UTF-8 form
        options.case_sensitive = False
        options.max_mem = _AUTOMATON
        found = re2.Set.SearchSet(options)
        for pattern in ("", *self._patterns.values()):
            found.Add(widened(pattern).encode())
        found.Compile()
        return found

    def of(self, lowered: str) -> set[str]:
        """The words that stand in a text in small letters."""
        found = self._set.Match(lowered.encode("utf-8", "surrogatepass"))
        if not found:  # The empty word is in every text: the set had no room to read this one.
            return {word for word in self._patterns if word.lower() in lowered}
        return {self._words[number] for number in found if number}


def places_of(words: Iterable[str], lowered: str) -> list[int]:
    """Where any of the words stands, in order."""
    places: list[int] = []
    for word in words:
        place, size = lowered.find(word), len(word)
        while place >= 0:
            places.append(place)
            place = lowered.find(word, place + size)
    return sorted(set(places))


def matches(pattern: re.Pattern[str], text: str, word: str, searched: str) -> Iterator[re.Match[str]]:
    """What the pattern matches from each place of a word in `searched` (the text, or the text in small letters).

    Places inside an earlier match are passed over: they were read.
    """
    place = searched.find(word)
    while place >= 0:
        match = pattern.match(text, place)
        if match is not None:
            yield match
        # The blank at the end of ` -p ` may begin the next one.
        place = searched.find(word, match.end() if match and match.end() > place else place + 1)
