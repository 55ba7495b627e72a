"""How far a sentence of the user reads as a standing rule, by a small linear model over signs of ten languages.

A sign is a class of words or endings that a grammar has in every language: negations, quantifiers, modals, persons,
words of scope ("from now on"), of one time only ("again", "this"), of the past, of what others say. The words are
listed in `rule_signs.json`, and so is what a sign weighs, the same in each language: see `scripts/fit_rule_score.py`.

Of two matches of which one lies within the other only the longer counts: "from now on" says nothing of now. The
sign "-" stands for words that only look like those of another sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import orjson
from msgspec import Struct, field

from leporello.files import shipped
from leporello.lazy_regex import lazy_regex

UNSPACED = frozenset(("zh", "ja", "ko"))
_TOKEN = lazy_regex(r"[^\W\d_]+(?:'(?:t|s|m|d|re|ve|ll)\b|')?|\d+|[.,;:!?…—–()«»\"“”„]")
_MARKS = frozenset('.,;:!?…—–()«»"“”„')
_ENDS = ".。!！…~ "
_BREAKS = "，,。；;：:、！!？? （("
_QUOTED = lazy_regex(
    r"[\"“„«][^\"”“»]{14,400}[\"”“»]|[“「『《][^”」』》]{5,400}[”」』》]|(?<!\w)'[^'\n]{14,400}'(?!\w)"
)
"""What somebody else says; a word or two in quotation marks are only named."""
_NAMED = lazy_regex(
    r"`\w|\w/(?:\w|[\s,]|$)|\w_\w|[a-z][A-Z]|\b[A-Z]{2}|\w\.[a-z]{1,4}\b"
    r"|[\u0400-\uffff] ?[A-Za-z]{2}|^[A-Za-z]{2,30} ?[\u0400-\uffff]"
)
"""A path, an identifier, a short form, a word in Latin letters among others."""
_VERSION = lazy_regex(r"[A-Za-z][\w+#]{0,20} ?v?\d+(?:\.\d+)*")
_MONEY = lazy_regex(
    r"[€$£¥₩]|\b(?:euros?|dollars?|pounds|quid|reais)\b|\bрубл|\bтысяч|[\d一二三四五六七八九十百千万两]\s?[块元円圓원만]"
)
_PATH = lazy_regex(r"(?<![\w/.-])[\w.-]{1,60}(?:/[\w.-]{1,60}){1,12}\.\w{1,8}(?![\w/])")
LONG = 110
_WIDTH = {"zh": 2.2, "ja": 2.2, "ko": 1.8}
"""How many letters of another language a character stands for."""
_FORCE = frozenset("ban always never every only must wish scope order task permits".split())
_GENERAL = frozenset("ban always never every only scope wish form contrast".split())
"""Signs of what holds for more than the case at hand."""
_TOLD = frozenset("is past they me oh then".split())
"""Signs of a report: a line without any of them ("Dates always in figures") says how something is to be."""
_DIRECTED = frozenset("order must you we wish scope please ban".split())


class _Pattern(Struct, frozen=True):
    """Words in a row that are a sign; `at` is where they count: anywhere, at the start of a clause or of a sentence."""

    sign: str
    at: str
    words: tuple[str, ...]


class _Signs(Struct):
    """The patterns of a language by their first word, by what it begins with, and by what it ends with."""

    whole: dict[str, list[_Pattern]] = field(default_factory=dict)
    begin: dict[str, list[_Pattern]] = field(default_factory=dict)
    end: dict[str, list[_Pattern]] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()

    def add(self, pattern: _Pattern) -> None:
        first = pattern.words[0]
        table = self.begin if first.endswith("*") else self.end if first.startswith("*") else self.whole
        table.setdefault(first.strip("*"), []).append(pattern)

    def of(self, word: str) -> Iterator[_Pattern]:
        yield from self.whole.get(word, ())
        if word.isdigit():
            yield from self.whole.get("#", ())
        for length in self.lengths:
            yield from self.begin.get(word[:length], ())
            yield from self.end.get(word[-length:], ()) if length < len(word) else ()


@cache
def _data() -> dict[str, Any]:
    return dict(orjson.loads(shipped("leporello.ledger", "rule_signs.json")))


@cache
def _listed(language: str) -> tuple[_Pattern, ...]:
    rows = [(sign, word) for sign, listed in _data()["signs"][language].items() for word in listed.split("|")]
    marked = ((sign, word[:1] if word[:1] in "<^" else "", word.lstrip("<^")) for sign, word in rows)
    return tuple(
        _Pattern(sign, at, (word,) if language in UNSPACED else tuple(word.split(" "))) for sign, at, word in marked
    )


@cache
def _signs(language: str) -> _Signs:
    signs = _Signs()
    for pattern in _listed(language):
        signs.add(pattern)
    signs.lengths = tuple(sorted(set(map(len, (*signs.begin, *signs.end)))))
    return signs


@cache
def vocabulary(language: str) -> frozenset[str]:
    """The words that are listed for a language."""
    return frozenset(word.rstrip("'") for pattern in _listed(language) for word in pattern.words if "*" not in word)


@lru_cache(maxsize=8192)
def score(sentence: str, language: str, company: str = "") -> float:
    """Above zero for a rule; `company` is one more sign, of what stands beside the sentence."""
    weights = _data()["weights"]
    return float(sum(weights.get(sign, 0.0) for sign in (*signs_of(sentence, language, company), "bias")))


def signs_of(sentence: str, language: str, company: str = "") -> frozenset[str]:
    """The signs in a sentence and around it, and those pairs of them that weigh something together."""
    lowered = without_paths(sentence).lower().replace("’", "'").strip()
    spans = _in_text(lowered, language) if language in UNSPACED else _in_words(_TOKEN.findall(lowered), language)
    found = {sign for sign, start, end in spans if not _within(start, end, spans)}
    found -= {"-"}
    found |= {company} - {""}
    found |= {name for name, there in _shape(sentence, lowered, language) if there}
    if found.issuperset(("may", "past")):  # in Chinese, what may be done from now on
        found = found - {"past"} | {"permits"}
    if "then" in found:  # some languages have no other past
        found.add("past")
    if found & {"suppose", "withdrawn", "once"}:  # what would hold, was nearly said, or is for one time only
        found -= _FORCE
    if "wish" in found:  # what one wishes of somebody stands in the conditional too
        found -= {"cond", "longing", "suppose", "past"}
    if found.isdisjoint(_FORCE):
        found.add("plain")
    if found & {"order", "task", "must", "please"} and found.isdisjoint(_GENERAL):
        found.add("one_thing")
    if found & {"always", "never"} and found.isdisjoint(_DIRECTED) and found & _TOLD:
        found.add("bare_always")
    return frozenset(found | {pair for pair in _data()["pairs"] if found.issuperset(pair.split("&"))})


def without_paths(text: str) -> str:
    """The words of a file's path say nothing."""
    return _PATH.sub("…", text) if "/" in text else text


def _shape(sentence: str, lowered: str, language: str) -> Iterator[tuple[str, bool]]:
    yield "question", lowered.rstrip(_ENDS + "\"'”»").endswith(("?", "？"))
    yield "exclaims", "!" in sentence or "！" in sentence
    yield "dots", "…" in sentence or "..." in sentence
    yield "quote", _QUOTED.search(sentence) is not None
    yield "name", _NAMED.search(sentence) is not None
    yield "long", len(sentence) * _WIDTH.get(language, 1) > LONG
    yield "version", any(map(str.isdigit, sentence)) and _VERSION.search(sentence) is not None
    yield "money", _MONEY.search(lowered) is not None


def _within(start: int, end: int, spans: list[tuple[str, int, int]]) -> bool:
    size = end - start
    return any(s <= start and end <= e and (e - s > size or sign == "-") for sign, s, e in spans)


def _in_text(text: str, language: str) -> list[tuple[str, int, int]]:
    """Where signs stand in a text that has no blanks between its words."""
    padded = f" {text} "
    bare = text.rstrip(_ENDS)
    clauses = {1} | {place + 2 for place, letter in enumerate(text) if letter in _BREAKS}
    spans: list[tuple[str, int, int]] = []
    for pattern in _listed(language):
        word = pattern.words[0]
        if word.endswith("$"):
            word = word[:-1].rstrip(_ENDS)
            if bare.endswith(word):
                spans.append((pattern.sign, len(bare) + 1 - len(word), len(bare) + 1))
            continue
        place = padded.find(word)
        while place >= 0:
            if not pattern.at or place == 1 or (pattern.at == "^" and place in clauses):
                spans.append((pattern.sign, place, place + len(word)))
            place = padded.find(word, place + 1)
    return spans


def _in_words(words: list[str], language: str) -> list[tuple[str, int, int]]:
    """Where signs stand in a row of words and marks."""
    signs, lead_ins = _signs(language), _lead_ins(language)
    spans: list[tuple[str, int, int]] = []
    clause = sentence = True
    for place, word in enumerate(words):
        if word in _MARKS:
            clause = True
            continue
        for pattern in signs.of(word):
            length = len(pattern.words)
            if (pattern.at == "^" and not clause) or (pattern.at == "<" and not sentence):
                continue
            if length == 1 or _match(pattern.words, words[place : place + length]):
                spans.append((pattern.sign, place, place + length))
        opens = word in lead_ins
        clause, sentence = clause and opens, sentence and opens
    return spans


def _match(pattern: tuple[str, ...], words: list[str]) -> bool:
    return len(pattern) == len(words) and all(map(_fits, pattern, words))


def _fits(pattern: str, word: str) -> bool:
    if pattern == word or (pattern == "*" and word.isalpha()):
        return True
    if pattern.endswith("*"):
        return len(pattern) > 1 and word.startswith(pattern[:-1])
    return (pattern.startswith("*") and word.endswith(pattern[1:])) or (pattern == "#" and word.isdigit())


@cache
def _lead_ins(language: str) -> frozenset[str]:
    return frozenset(_data()["lead_ins"].get(language, "").split())
