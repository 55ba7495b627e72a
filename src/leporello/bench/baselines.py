"""The simplest things that could work, so that every score has something to stand beside.

Engines: `whole` never compacts, `clear-tools` blanks all but the last ten tool results. Search: plain BM25 over chunks.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from leporello.bench.bank import decoded_texts_of, text_tokens
from leporello.engines.base import ContextEngine
from leporello.messages import Message, is_result

CLEARED = "[old tool result cleared]"
KEPT_RESULTS = 10
CHUNK_CHARACTERS = 900
_WORD = re.compile(r"\w+")


class WholeEngine(ContextEngine):
    """Never compacts: the upper bound for closed-book answers."""

    name = "whole"

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """Keep the counters a host reads."""
        self.last_prompt_tokens = int(usage.get("prompt_tokens", 0))

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Never."""
        return False

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        """The list as it is."""
        return list(messages)


class ClearToolsEngine(WholeEngine):
    """Blanks every tool result but the last ten."""

    name = "clear-tools"

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """At the threshold."""
        return (self.last_prompt_tokens if prompt_tokens is None else prompt_tokens) >= self.threshold_tokens > 0

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        """Old results become one short note; everything else stays."""
        self.compression_count += 1
        results = [index for index, message in enumerate(messages) if is_result(message)]
        old = set(results[:-KEPT_RESULTS])
        return [
            {**message, "content": CLEARED} if index in old and message.get("content") != CLEARED else message
            for index, message in enumerate(messages)
        ]


class PlainSearch:
    """BM25 over fixed-size chunks, words as they stand."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._chunks = list(_chunks(messages))
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths = []
        for number, chunk in enumerate(self._chunks):
            words = Counter(_words(chunk))
            self._lengths.append(sum(words.values()))
            for word, count in words.items():
                self._postings[word].append((number, count))
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0

    def __call__(self, query: str, max_tokens: int) -> str:
        """The best chunks, best first, until the budget is used."""
        taken: list[str] = []
        left = max_tokens
        for number in self._ranked(query):
            cost = text_tokens(self._chunks[number]) + 2
            if cost > left:
                continue
            taken.append(self._chunks[number])
            left -= cost
        return "\n\n".join(taken)

    def _ranked(self, query: str) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for word in set(_words(query)):
            postings = self._postings.get(word, ())
            rarity = math.log(1 + (len(self._chunks) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                norm = 1.2 * (0.25 + 0.75 * self._lengths[number] / self._mean)
                scores[number] += rarity * count * 2.2 / (count + norm)
        return sorted(scores, key=lambda number: (-scores[number], number))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _chunks(messages: Iterable[Message]) -> Iterator[str]:
    """Each message's text cut at line ends into pieces of about equal size."""
    for message in messages:
        piece: list[str] = []
        size = 0
        for line in _lines(decoded_texts_of(message)):
            if piece and size + len(line) > CHUNK_CHARACTERS:
                yield "\n".join(piece)
                piece, size = [], 0
            piece.append(line)
            size += len(line) + 1
        if piece:
            yield "\n".join(piece)


def _lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in text.splitlines():
            for start in range(0, max(1, len(line)), CHUNK_CHARACTERS):
                yield line[start : start + CHUNK_CHARACTERS]
