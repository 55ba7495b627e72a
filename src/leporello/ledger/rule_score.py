"""How far a sentence of the user reads as a standing rule, by a linear model over signs and pieces of words.

A sign is a class of words or endings that a grammar has in every language: negations, quantifiers, modals, persons,
words of scope ("from now on"), of one time only ("again", "this"), of the past, of what others say. The words are
listed in `rule_signs.json`. Of two matches of which one lies within the other only the longer counts: "from now on"
says nothing of now. The sign "-" stands for words that only look like those of another sign.

Beside the signs count which of them stand together and in which order, the words, pairs of them and their pieces:
each is hashed to a place of one table of small whole numbers. `rule_weights.json` holds that table and what a sign
weighs, the same in each language: see `scripts/fit_rule_score.py`. Only whole numbers are added up, so a score is the
same on every machine.
"""

from __future__ import annotations

from array import array
from base64 import b85decode
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain, combinations, pairwise
from math import isqrt
from typing import Any
from zlib import crc32, decompress

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
PLACES = 1 << 15
"""How many weights the table of pieces has."""
SHORT_PIECES, LONG_PIECES = (1, 2, 3), (3, 4)
"""How many letters a piece of a word has, where a letter is a syllable and elsewhere."""
MOST_SPANS = 40
"""Signs of a sentence of which each two are compared: more stand in no sentence that anybody says."""
_WIDTH = {"zh": 2.2, "ja": 2.2, "ko": 1.8}
"""How many letters of another language a character stands for."""
_FORCE = frozenset("ban always never every only must wish scope order task permits".split())
_GENERAL = frozenset("ban always never every only scope wish form contrast".split())
"""Signs of what holds for more than the case at hand."""
_TOLD = frozenset("is past they me oh then".split())
"""Signs of a report: a line without any of them ("Dates always in figures") says how something is to be."""
_DIRECTED = frozenset("order must you we wish scope please ban".split())


MOST_FOUND = 16_384


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
    found: dict[str, tuple[_Pattern, ...]] = field(default_factory=dict)
    """The patterns of words that were asked for; most words come again and again."""

    def add(self, pattern: _Pattern) -> None:
        first = pattern.words[0]
        table = self.begin if first.endswith("*") else self.end if first.startswith("*") else self.whole
        table.setdefault(first.strip("*"), []).append(pattern)

    def of(self, word: str) -> tuple[_Pattern, ...]:
        """The patterns that may begin with a word."""
        found = self.found.get(word)
        if found is None:
            if len(self.found) >= MOST_FOUND:
                self.found.clear()
            found = self.found[word] = tuple(self._of(word))
        return found

    def _of(self, word: str) -> Iterator[_Pattern]:
        yield from self.whole.get(word, ())
        if word.isdigit():
            yield from self.whole.get("#", ())
        for length in self.lengths:
            yield from self.begin.get(word[:length], ())
            yield from self.end.get(word[-length:], ()) if length < len(word) else ()


@cache
def _data() -> dict[str, Any]:
    return dict(orjson.loads(shipped("leporello.ledger", "rule_signs.json")))


class _Weights(Struct, frozen=True):
    """What signs weigh, in hundredths, and what pieces do, in `step` thousandths of a hundredth."""

    signs: dict[str, int]
    pieces: array[int]
    step: int


@cache
def _weights() -> _Weights:
    data = orjson.loads(shipped("leporello.ledger", "rule_weights.json"))
    return _Weights(data["signs"], array("b", decompress(b85decode(data["pieces"]))), data["step"])


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
def vocabulary(language: str, without: frozenset[str] = frozenset()) -> frozenset[str]:
    """The words that are listed for a language, but for those of some signs."""
    listed = (pattern for pattern in _listed(language) if pattern.sign not in without)
    return frozenset(word.rstrip("'") for pattern in listed for word in pattern.words if "*" not in word)


@lru_cache(maxsize=8192)
def score(sentence: str, language: str, company: str = "") -> int:
    """Above zero for a rule, in hundredths; `company` is one more sign, of what stands beside the sentence."""
    weights = _weights()
    signs = signs_of(sentence, language) | ({company} - {""})
    places = places_of(sentence, language, signs)
    told = sum(weights.signs.get(sign, 0) for sign in (*signs, "bias"))
    # A long sentence has more pieces; by the root of their number they weigh about as much as those of a short one.
    return told + sum(map(weights.pieces.__getitem__, places)) * weights.step // isqrt(10**6 * max(1, len(places)))


def places_of(sentence: str, language: str, signs: frozenset[str]) -> frozenset[int]:
    """Where the pieces of a sentence stand in the table of weights."""
    lowered = _lowered(sentence)
    words = ["0" if word.isdigit() else word for word in _TOKEN.findall(lowered)]
    lengths = SHORT_PIECES if language in UNSPACED else LONG_PIECES
    beside = (f"{first} {second}" for first, second in pairwise(("<", *words, ">")))
    return frozenset(map(_place, chain(beside, _together(lowered, language, signs)))).union(
        *(_places_in(word, lengths) for word in words)
    )


def _place(piece: str) -> int:
    return crc32(piece.encode("utf-8", "surrogatepass")) % PLACES


@lru_cache(maxsize=8192)
def _places_in(word: str, lengths: tuple[int, ...]) -> frozenset[int]:
    """The places of a word and of its pieces; numbers are all alike."""
    marked = f"^{word}$"
    pieces = (marked[start : start + length] for length in lengths for start in range(len(marked) - length + 1))
    return frozenset(map(_place, (marked, *pieces)))


def _together(lowered: str, language: str, signs: frozenset[str]) -> Iterator[str]:
    """Which signs stand in one sentence, which of two comes first, and which the sentence begins and ends with."""
    ordered = sorted(signs)
    yield from (f"{first}&{second}" for first, second in combinations(ordered, 2))
    spans = sorted((start, end, sign) for sign, start, end in _spans(lowered, language))
    yield from (f"{first[2]}>{second[2]}" for first, second in combinations(spans[:MOST_SPANS], 2))
    if spans:
        opening = spans[0][0]
        at = ">" if opening <= 1 else ">>"
        yield from (f"{at}{sign}" for start, _, sign in spans if start == opening)
        yield f"{spans[-1][2]}>"


@lru_cache(maxsize=8192)
def signs_of(sentence: str, language: str) -> frozenset[str]:
    """The signs in a sentence; whether it is a rule, takes one back or only chats is asked of it several times."""
    lowered = _lowered(sentence)
    found = {sign for sign, _, _ in _spans(lowered, language)}
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
    return frozenset(found)


def _lowered(sentence: str) -> str:
    return without_paths(sentence).lower().replace("’", "'").strip()


@lru_cache(maxsize=64)
def _spans(lowered: str, language: str) -> tuple[tuple[str, int, int], ...]:
    """The signs and where they stand, without those that lie within a longer match."""
    spans = _in_text(lowered, language) if language in UNSPACED else _in_words(_TOKEN.findall(lowered), language)
    return tuple(span for span in spans if span[0] != "-" and not _within(span[1], span[2], spans))


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
            if length == 1 or _follow(pattern.words, words, place):
                spans.append((pattern.sign, place, place + length))
        opens = word in lead_ins
        clause, sentence = clause and opens, sentence and opens
    return spans


def _follow(pattern: tuple[str, ...], words: list[str], place: int) -> bool:
    """Whether the words of a pattern stand from a place on; of most the second one does not."""
    if place + len(pattern) > len(words) or not _fits(pattern[1], words[place + 1]):
        return False
    return all(map(_fits, pattern, words[place : place + len(pattern)]))


def _fits(pattern: str, word: str) -> bool:
    if pattern == word or (pattern == "*" and word.isalpha()):
        return True
    if pattern.endswith("*"):
        return len(pattern) > 1 and word.startswith(pattern[:-1])
    return (pattern.startswith("*") and word.endswith(pattern[1:])) or (pattern == "#" and word.isdigit())


@cache
def _lead_ins(language: str) -> frozenset[str]:
    return frozenset(_data()["lead_ins"].get(language, "").split())
