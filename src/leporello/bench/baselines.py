"""The simplest things that could work, and rules of other agents, so that every score has something beside it.

Engines: `whole` never compacts, `clear-tools` blanks all but the last ten tool results; `newest`, `cut-alike`,
`first-chars` and `idf-sentences` keep as many tokens as the compressor aims at. Search: plain BM25 over chunks.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from leporello.bench.bank import clip_to_tokens, decoded_texts_of, json_tokens, sentences_of, text_tokens
from leporello.engines.base import ContextEngine
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, calls_of, is_result, role_of, text_of
from leporello.models import Limits
from leporello.turns import iter_groups

CLEARED = "[old tool result cleared]"
KEPT_RESULTS = 10
CHUNK_CHARACTERS = 900
ID_TOKENS = 5  # what a message's id costs before its first sentence
_WORD = lazy_regex(r"\w+")


class WholeEngine(ContextEngine):
    """Never compacts: the upper bound for closed-book answers."""

    name = "whole"

    def update_from_response(self, usage: dict[str, Any]) -> None:
        self.last_prompt_tokens = int(usage.get("prompt_tokens", 0))

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return False

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        return list(messages)


Rule: TypeAlias = Callable[[Sequence[Message], int], list[Message]]
"""What is left of messages, given their size. Those that stay as they are stay the same objects."""


class RuleEngine(WholeEngine):
    """Compacts by a rule: from a number of tokens on, or only when it is told to."""

    summary_reads_prefix = False
    """Whether the call that writes the summary repeats the conversation, so that most of it is read from the cache."""
    summary_output = 0

    def __init__(self, window: int, name: str, rule: Rule, threshold: int | None = None) -> None:
        super().__init__(window)
        self.name = name
        self._rule = rule
        self._threshold = threshold
        if threshold is not None:
            self.threshold_tokens = threshold

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        size = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return self._threshold is not None and size >= self._threshold

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        self.compression_count += 1
        return self._rule(messages, current_tokens or 0)


def clear_tools(messages: Sequence[Message], _: int) -> list[Message]:
    """Every tool result but the last ten becomes one short note; everything else stays."""
    results = [index for index, message in enumerate(messages) if is_result(message)]
    old = {index for index in results[:-KEPT_RESULTS] if messages[index].get("content") != CLEARED}
    return [{**message, "content": CLEARED} if index in old else message for index, message in enumerate(messages)]


def newest(messages: Sequence[Message], aim: int) -> list[Message]:
    """The newest messages, calls with their results."""
    start, left = len(messages), aim
    for group in reversed(list(iter_groups(messages))):
        left -= json_tokens(messages[group.start : group.stop])
        if left < 0:
            break
        start = group.start
    return list(messages[start:])


def _both_ends(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - size // 2]} ... {text[len(text) - size // 2 :]}"


def cut_all(messages: Sequence[Message], aim: int, cut: Callable[[str, int], str]) -> list[Message]:
    """Every message cut to the same number of characters, as many as fit."""
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


SIZED: dict[str, Rule] = {
    "newest": newest,
    "cut-alike": partial(cut_all, cut=_both_ends),
    "first-chars": partial(cut_all, cut=lambda text, size: text[:size]),
    "idf-sentences": idf_sentences,
}
"""Rules that are given the size aimed at."""


def _sized(window: int, name: str) -> ContextEngine:
    """Compacts once, at the end, to the size that the compressor aims at; earlier ones would change nothing."""
    return RuleEngine(window, name, lambda messages, _: SIZED[name](messages, Limits.for_window(window).aim_tokens))


BASELINES: dict[str, Callable[[int], ContextEngine]] = {
    "whole": WholeEngine,
    "clear-tools": lambda window: RuleEngine(window, "clear-tools", clear_tools, WholeEngine(window).threshold_tokens),
    **{name: partial(_sized, name=name) for name in SIZED},
}

# -- rules that others published, so that their bill and recall can stand beside ours. Those that let a model write a
# summary get a stand-in of the usual size without any content: no model is asked in a replay. Their closed-book recall
# is that of what they keep word for word; what the summary would add is not known.

SUMMARY_TOKENS = 4_000
STAND_IN: Message = {"role": "user", "content": "[summary]" + " of" * (SUMMARY_TOKENS - 4)}
READ_FILES, FILE_TOKENS = 5, 5_000
USER_TOKENS = 20_000


def _summary_rule(
    window: int, name: str, threshold: int, keep: Callable[[Sequence[Message]], list[Message]], prefix: bool = True
) -> ContextEngine:
    """At the threshold everything becomes a summary and what the rule keeps beside it."""

    def rule(messages: Sequence[Message], _: int) -> list[Message]:
        return [STAND_IN, *keep([message for message in messages if message is not STAND_IN])]

    engine = RuleEngine(window, name, rule, threshold)
    engine.summary_reads_prefix, engine.summary_output = prefix, SUMMARY_TOKENS
    return engine


def _files_read_last(messages: Sequence[Message]) -> list[Message]:
    reads = {call.id for message in messages for call in calls_of(message) if "read" in call.name.lower()}
    found = [text_of(message) for message in messages if is_result(message) and message.get("tool_call_id") in reads]
    return [{"role": "user", "content": clip_to_tokens(text, FILE_TOKENS)} for text in found[-READ_FILES:]]


def _users_words(messages: Sequence[Message]) -> list[Message]:
    kept: list[Message] = []
    left = USER_TOKENS
    for message in reversed([message for message in messages if role_of(message) == "user"]):
        left -= json_tokens([message])
        if left < 0:
            break
        kept.append(message)
    return kept[::-1]


def _sliding_window(window: int) -> ContextEngine:
    """From 90% of the window on the oldest messages fall out, as few at a time as possible."""
    threshold = window * 9 // 10

    def rule(messages: Sequence[Message], size: int) -> list[Message]:
        return newest(messages, json_tokens(messages) - max(0, size - threshold))

    return RuleEngine(window, "sliding-window", rule, threshold)


RULES: dict[str, Callable[[int], ContextEngine]] = {
    # 13,000 tokens before the end; a summary, and the five files read last, up to 5,000 tokens of each.
    "claude-code": lambda window: _summary_rule(window, "claude-code", window - 13_000, _files_read_last),
    # At 90%; the newest words of the user, up to 20,000 tokens, and a summary.
    "codex": lambda window: _summary_rule(window, "codex", window * 9 // 10, _users_words),
    # At 85%; a summary, and the newest tenth of the window word for word.
    "deepagents": lambda window: _summary_rule(
        window, "deepagents", window * 85 // 100, partial(newest, aim=window // 10), prefix=False
    ),
    "sliding-window": _sliding_window,
    # Only the ten newest results are ever shown; each older one becomes a note as soon as it is older.
    "masking": lambda window: RuleEngine(window, "masking", clear_tools, threshold=0),
}


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
