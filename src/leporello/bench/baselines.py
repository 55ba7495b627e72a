"""The simplest things that could work, so that every score has something to stand beside.

Engines: `whole` never compacts, `clear-tools` blanks all but the last ten tool results; `newest`, `cut-alike`,
`first-chars` and `idf-sentences` keep as many tokens as the compressor aims at. Search: plain BM25 over chunks.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from leporello.bench.bank import decoded_texts_of, json_tokens, sentences_of, text_tokens
from leporello.engines.base import ContextEngine
from leporello.messages import Message, is_result
from leporello.models import Limits
from leporello.turns import iter_groups

CLEARED = "[old tool result cleared]"
KEPT_RESULTS = 10
CHUNK_CHARACTERS = 900
ID_TOKENS = 5
"""What a message's id costs before its first sentence."""
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


Select: TypeAlias = Callable[[Sequence[Message], int], list[Message]]


class SizedEngine(WholeEngine):
    """Compacts once, at the end, to the size that the compressor aims at; earlier ones would change nothing."""

    def __init__(self, window: int, name: str, select: Select) -> None:
        super().__init__(window)
        self.name = name
        self._aim = Limits.for_window(window).aim_tokens
        self._select = select

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        """What is selected from the whole session."""
        self.compression_count += 1
        return self._select(messages, self._aim)


def newest(messages: Sequence[Message], aim: int) -> list[Message]:
    """The newest messages, calls with their results."""
    start, left = len(messages), aim
    for group in reversed(list(iter_groups(messages))):
        left -= json_tokens(messages[group.start : group.stop])
        if left < 0:
            break
        start = group.start
    return list(messages[start:])


def first_chars(messages: Sequence[Message], aim: int) -> list[Message]:
    """The first characters of every message, as many of each as fit."""
    return _cut_all(messages, aim, lambda text, size: text[:size])


def cut_alike(messages: Sequence[Message], aim: int) -> list[Message]:
    """Every message cut to the same number of characters, half from its beginning and half from its end."""
    return _cut_all(messages, aim, _both_ends)


def _both_ends(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - size // 2]} ... {text[len(text) - size // 2 :]}"


def _cut_all(messages: Sequence[Message], aim: int, cut: Callable[[str, int], str]) -> list[Message]:
    texts = [_text(message) for message in messages]

    def written(size: int) -> list[Message]:
        return [{"role": "user", "content": "\n".join(cut(text, size) for text in texts)}]

    low, high = 0, max(map(len, texts), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if json_tokens(written(middle)) <= aim:
            low = middle
        else:
            high = middle - 1
    return written(low)


def idf_sentences(messages: Sequence[Message], aim: int) -> list[Message]:
    """Sentences of rare words, by summed idf over the root of the length; a tenth is left to the newest messages."""
    tail = newest(messages, aim // 10)
    older = messages[: len(messages) - len(tail)]
    sentences = [list(dict.fromkeys(sentences_of(_text(message)))) for message in older]
    held_by = Counter(word for told in sentences for word in {word for one in told for word in _words(one)})
    ranked = []
    for number, told in enumerate(sentences):
        for place, sentence in enumerate(told):
            worth = sum(math.log((len(sentences) + 1) / (held_by[word] + 0.5)) for word in set(_words(sentence)))
            tokens = text_tokens(json.dumps(sentence, ensure_ascii=False)[1:-1])
            ranked.append((worth / math.sqrt(tokens), number, place, tokens))
    ranked.sort(reverse=True)
    room = aim - json_tokens(tail)
    # Sentences counted one by one do not add up to their text: what that is off by is made good once.
    room += aim * 99 // 100 - json_tokens([_best(sentences, ranked, room), *tail])
    return [_best(sentences, ranked, room), *tail]


def _best(sentences: Sequence[list[str]], ranked: Iterable[tuple[float, int, int, int]], room: int) -> Message:
    """The best sentences that fit, in order, with one id for each message."""
    taken: dict[int, list[int]] = defaultdict(list)
    for _, number, place, tokens in ranked:
        cost = tokens if number in taken else tokens + ID_TOKENS
        if cost <= room:
            taken[number].append(place)
            room -= cost
    lines = []
    for number, places in sorted(taken.items()):
        kept = " ".join(sentences[number][place] for place in sorted(places))
        lines.append(f"m{number + 1}: {kept}")
    return {"role": "user", "content": "\n".join(lines)}


def _text(message: Message) -> str:
    return "\n".join(decoded_texts_of(message))


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
