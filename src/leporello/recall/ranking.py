"""Which lines answer a question, and which of them are shown.

Every line is scored by the words near it, by who wrote it, and by what it looks like. Lines are taken in the order of
their score less what they cost: twenty short lines of evidence are worth more than one long one. Each further line of a
passage is worth a little less than the one before, so that the budget is spread over many places. A line that is shown
already, word for word, is not shown again.
"""

from __future__ import annotations

import heapq
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence, Set
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from leporello.lazy_regex import lazy_regex
from leporello.ledger.sentence_pieces import words_in
from leporello.ledger.units import sentences_of
from leporello.ledger.value_patterns import asks
from leporello.recall.base import GAP, RecallQuery, Window
from leporello.recall.chunks import Chunk, LineFeature, MemoryIndex
from leporello.recall.question import AnswerType, Question, Term, understand
from leporello.recall.superseded import mark_superseded
from leporello.text_features.words import rarity

OWN = 2.25
"""The word stands in the line."""
NEAR = (1.2, 1.1, 1.1)
"""It stands one, two, three lines away in the same passage."""
PARTNER = 2.0
"""It stands in the call whose result this is, or in the result of this call."""
BESIDE = 0.92
"""It stands in the same step (an assistant message with its calls and results) or in the one before or after."""
AROUND = 0.35
"""It stands two or three steps away: questions like to say what happened before or after."""
SCALE = 0.3
"""Brings rarities (0 to about 8) to the scale of the figures below."""

SMALL_PASSAGE = 15
"""Passages of more lines speak less for what stands around them: in a long listing any word occurs."""

LENGTH = 0.22
"""Times the logarithm of the line's words: a longer line holds more, ..."""
COST = 0.6
"""... but takes more of the budget: this times the logarithm of its tokens is taken off when lines are chosen."""
CROWD = 0.3
"""Taken off a line, times the logarithm of how many lines of its passage are shown already."""
REPEATED = -2.2
"""The same line stood in the conversation before."""
LATER = -0.7
"""Where the user is asked about, of their messages all but the first line: they open with what they are about."""

USER = 1.95
ASSISTANT = 1.15
CALL = -1.0
"""Users say little, and it matters; arguments of calls are mostly code that stands elsewhere too."""

ROLE_WANTS: dict[AnswerType, dict[str, float]] = {
    AnswerType.USER: {"user": 3.3},
    AnswerType.RULE: {"user": 1.05},
    AnswerType.AGENT: {"assistant": 1.0},
    AnswerType.REASON: {"assistant": 0.85, "tool": -0.75},
    AnswerType.ERROR: {"tool": 1.3, "assistant": -0.35},
    AnswerType.COMMIT: {"tool": 0.3},
    AnswerType.EVENT: {"tool": 0.2},
}
SPOKEN = 1.5
"""Among named people: said by one of them, instead of the weights of user and assistant."""
NAMED = 2.0
"""Said by somebody whom the question names."""
SIGN_WANTS: dict[AnswerType, dict[LineFeature, float]] = {
    AnswerType.USER: {LineFeature.STANDING: 1.8},
    AnswerType.ERROR: {LineFeature.ERROR: 2.2},
    AnswerType.EVENT: {LineFeature.ERROR: 0.1},
    AnswerType.PLACE: {LineFeature.PLACE: 1.3, LineFeature.PATH: 1.5},
    AnswerType.DEFINITION: {LineFeature.DEFINITION: 0.55, LineFeature.PLACE: 0.7},
    AnswerType.COMMIT: {LineFeature.COMMIT: 1.9},
    AnswerType.AMOUNT: {LineFeature.NUMBER: 0.4, LineFeature.AMOUNT: 1.7, LineFeature.TALLY: 0.95},
    AnswerType.TALLY: {LineFeature.TALLY: 2.0},
    AnswerType.REASON: {LineFeature.REASON: 0.6},
    AnswerType.RULE: {LineFeature.RULE: 0.65},
    AnswerType.NAME: {LineFeature.NAME: 0.5, LineFeature.DEFINITION: 0.35},
    AnswerType.ADDRESS: {LineFeature.ADDRESS: 1.1},
    AnswerType.COMMAND: {LineFeature.COMMAND: 0.4, LineFeature.FLAG: 0.9},
    AnswerType.COLOUR: {LineFeature.COLOUR: 1.0},
    AnswerType.VERSION: {LineFeature.VERSION: 1.0},
    AnswerType.TEST: {LineFeature.TEST: 1.1},
    AnswerType.DATE: {LineFeature.DATE: 0.3},
}


MOST_PASSAGES = 250
"""Passages looked at line by line."""
MOST_LINES = 600
"""Lines that are handed on."""
SHORT_PASSAGE = 10
"""Of a longer passage only lines are looked at that have a word of the question near, or look like an answer."""
LEAST_FRAGMENT = 3
CLOSE = 0.45
"""Bare words are meant as they are: lines with less than this share of the best line's evidence are left out."""
LEAST_RARITY = 0.5
MANY_LINES = 500
"""A word that stands nearly everywhere and in so many lines costs much to follow and tells nothing."""

Rarity = Callable[[str], float]
"""How rare a word is where the question is asked; 0 for a word that is everywhere."""

_LONGEST = 200
_BY_LENGTH = tuple(LENGTH * math.log1p(words) for words in range(_LONGEST + 1))
_REACH = len(NEAR)
_DISTANCES = tuple((NEAR[abs(away) - 1] if away else OWN, away) for away in range(-_REACH, _REACH + 1))
_STEPS = tuple((BESIDE if abs(away) < 2 else AROUND, away) for away in range(-3, 4))


class ScoredLine(NamedTuple):
    """How well a line of the collection answers; `words` is the part of it that the query's words account for."""

    score: float
    line: int
    words: float


def rank(
    collection: MemoryIndex, question: Question, rare: Rarity | None = None, known: KnownEvidence | None = None
) -> list[ScoredLine]:
    """The lines that answer a question, best first; `known` keeps what was found out about its terms."""
    known = {} if known is None else known
    rare = rare or (lambda word: rarity(len(collection.entries), collection.spread.get(word, 0)))
    named = _named_speakers(collection, question)
    # Who speaks is told by the entry; the name itself stands in every greeting.
    terms = [term for term in question.terms if term.words[0][0] not in named] or question.terms
    for term in terms:
        if term not in known:
            known[term] = _Evidence(collection, term, rare)
    evidence = [known[term] for term in terms if known[term].hits]
    liking = _Liking(question, frozenset(itertools.chain.from_iterable(named.values())))
    places = _best_passages(collection, evidence, liking)
    bases = {place: sum(found.around(place, collection.entries[place].step) for found in evidence) for place in places}
    gains = _gains(collection, evidence, bases)
    scored = itertools.chain.from_iterable(
        _score_lines(collection, place, base, gains, liking) for place, base in bases.items()
    )
    best = [ScoredLine(*found) for found in heapq.nlargest(MOST_LINES, scored)]
    return best if question.is_question else _close_to_best(best)


def _named_speakers(collection: MemoryIndex, question: Question) -> dict[str, list[int]]:
    """For each word of the question that names a speaker, what they said."""
    asked = {term.words[0][0] for term in question.terms}
    speakers = collection.speakers().items()
    return {word: places for name, places in speakers for word in name.split() if word in asked}


class _Evidence:
    """One term of the question: how strongly each place of the collection speaks of it."""

    def __init__(self, collection: MemoryIndex, term: Term, rare: Rarity) -> None:
        self.hits: list[tuple[list[int], float]] = []
        """Lines that hold the word or a relative, and what that is worth."""
        own: float | None = None
        for word, factor in term.words:
            lines = collection.postings.get(word)
            if lines is None:
                continue
            value = rare(word)
            # A rare relative of a common word is no better evidence than the word itself.
            own = value if own is None else own
            value = value if factor == 1.0 else min(value, own) * factor
            if value >= LEAST_RARITY or len(lines) < MANY_LINES:
                self.hits.append((lines, value * term.weight * SCALE))
        self.passages: dict[int, float] = {}
        """The best of it in each passage."""
        entry_of = collection.entry_of.__getitem__
        for lines, value in self.hits:
            for entry in set(map(entry_of, lines)):
                if self.passages.get(entry, 0.0) < value:
                    self.passages[entry] = value
        self._spread_out(collection)

    def _spread_out(self, collection: MemoryIndex) -> None:
        """What passages say of the passages and steps around them."""
        self.steps: dict[int, float] = defaultdict(float)
        self.partners: dict[int, float] = {}
        steps, partners, entries = self.steps, collection.partners, collection.entries
        for place, value in self.passages.items():
            entry = entries[place]
            size = len(entry.passage.lines)
            value = value if size <= SMALL_PASSAGE else value * SMALL_PASSAGE / size
            if place in partners:
                self.partners[partners[place]] = value * PARTNER
            for share, away in _STEPS:
                if steps[entry.step + away] < value * share:
                    steps[entry.step + away] = value * share

    def around(self, place: int, step: int) -> float:
        """What the surroundings of a passage say, whichever of its lines is looked at."""
        return max(self.steps.get(step, 0.0), self.partners.get(place, 0.0))


KnownEvidence: TypeAlias = dict[Term, _Evidence]


class _Liking:
    """What speaks for a line beside the words: who wrote it, and what it looks like."""

    def __init__(self, question: Question, spoken: frozenset[int]) -> None:
        self._roles = {"user": USER, "assistant": ASSISTANT, "call": CALL}
        self._spoken = spoken
        """What those have said whom the question names; empty when it names nobody."""
        for want in question.wants:
            for role, weight in ROLE_WANTS.get(want, {}).items():
                self._roles[role] = self._roles.get(role, 0.0) + weight
        self._signs = [
            (int(sign), weight) for want in sorted(question.wants) for sign, weight in SIGN_WANTS.get(want, {}).items()
        ]
        self.any_sign = 0
        """All signs that count."""
        for sign, _ in self._signs:
            self.any_sign |= sign
        self._known: dict[int, float] = {0: 0.0}
        self._asks_user = AnswerType.USER in question.wants

    def role(self, place: int, passage: Chunk) -> float:
        if self._spoken and not passage.is_call and passage.role in ("user", "assistant"):
            return SPOKEN + (NAMED if place in self._spoken else 0.0)
        return self._roles.get("call" if passage.is_call else passage.role, 0.0)

    def signs(self, signs: int) -> float:
        known = self._known.get(signs)
        if known is None:
            known = self._known[signs] = sum(weight for sign, weight in self._signs if signs & sign)
        return known

    def admits(self, passage: Chunk) -> bool:
        """Whether lines count that share no word with the question: what a user says is little, and may be asked for
        in quite other words."""
        return self._asks_user and passage.role == "user"


def containing(collection: MemoryIndex, text: str) -> list[ScoredLine]:
    """Lines that hold a text literally (case folded), newest first: a piece of a name that no word equals."""
    wanted = text.strip().casefold()
    if len(wanted) < LEAST_FRAGMENT:
        return []
    found = [line for line, shown in enumerate(collection.lines) if wanted in shown.casefold()]
    return [ScoredLine(1.0 + line / len(collection.lines), line, 1.0) for line in reversed(found[-MOST_LINES:])]


def _best_passages(collection: MemoryIndex, evidence: list[_Evidence], liking: _Liking) -> list[int]:
    steps: dict[int, float] = defaultdict(float)
    extra: dict[int, float] = defaultdict(float)
    entries = collection.entries
    for found in evidence:
        for step, value in found.steps.items():
            steps[step] += value
        for place, value in found.partners.items():
            extra[place] += max(0.0, value - found.steps.get(entries[place].step, 0.0))
        for place, value in found.passages.items():
            extra[place] += max(0.0, value * OWN - found.around(place, entries[place].step))
    scores = (
        (words + liking.role(place, entry.passage), place)
        for place, entry in enumerate(entries)
        if (words := steps.get(entry.step, 0.0) + extra.get(place, 0.0)) > 0.0 or liking.admits(entry.passage)
    )
    return [place for _, place in heapq.nlargest(MOST_PASSAGES, scores)]


def _gains(collection: MemoryIndex, evidence: list[_Evidence], places: Container[int]) -> dict[int, float]:
    """For each line of the passages in question: what words in it or near it say beyond its surroundings."""
    gains: dict[int, float] = defaultdict(float)
    entries, entry_of = collection.entries, collection.entry_of
    for found in evidence:
        around = {place: found.around(place, entries[place].step) for place in found.passages if place in places}
        for line, value in _near(found, entry_of, around).items():
            gains[line] += value - around[entry_of[line]]
    return gains


def _near(found: _Evidence, entry_of: list[int], around: dict[int, float]) -> dict[int, float]:
    """For each line the value of the nearest occurrence of a term, where it is more than the surroundings say."""
    best: dict[int, float] = {}
    known = best.get
    end = len(entry_of)
    for lines, value in found.hits:
        worths = [(value * share, away) for share, away in _DISTANCES]
        for line in lines:
            place = entry_of[line]
            least = around.get(place)
            if least is not None:
                for worth, away in worths:
                    near = line + away
                    if worth > known(near, least) and 0 <= near < end and entry_of[near] == place:
                        best[near] = worth
    return best


def _score_lines(
    collection: MemoryIndex, place: int, base: float, gains: dict[int, float], liking: _Liking
) -> Iterator[tuple[float, int, float]]:
    entry = collection.entries[place]
    liked = base + liking.role(place, entry.passage)
    least = -1.0 if liking.admits(entry.passage) else 0.0
    # In a long passage a line must have a word near it or look like an answer.
    any_line = base > least and len(entry.passage.lines) <= SHORT_PASSAGE
    any_sign = liking.any_sign if base > least else 0
    later = LATER if liking.admits(entry.passage) else 0.0
    lengths, repeated = collection.lengths, collection.repeated
    for line, signs in enumerate(collection.signs(entry.first, entry.stop, liking.any_sign), entry.first):
        gain = gains.get(line, 0.0)
        if gain or any_line or signs & any_sign:
            score = liked + gain + liking.signs(signs) + _BY_LENGTH[min(lengths[line], _LONGEST)]
            score += later if line > entry.first else 0.0
            yield score + REPEATED if repeated[line] else score, line, base + gain


def _close_to_best(scored: list[ScoredLine]) -> list[ScoredLine]:
    least = CLOSE * max((found.words for found in scored), default=0.0)
    return [found for found in scored if found.words >= least]


# --- lines shown within a token budget -------------------------------------------------------------------------------

Count = Callable[[str], int]
"""Tokens of a text."""
About = Callable[[int], str]
"""For an entry of a collection one line that says what it belongs to."""

SAME_WORDS = 2
"""So many of its words at least must a question share with the query to be the query over again."""
_NUMBER = lazy_regex(r"\d+")
_COURTESY = lazy_regex(
    r"\b(?:please|pls|thanks?(?: you)?|thx|hi|hello|hey|bitte|danke|hallo|merci|svp|s'il (?:vous|te) pla[iî]t|bonjour"
    r"|gracias|por favor|hola|obrigad[oa]|grazie|per favore|ciao|спасибо|пожалуйста|привет)\b"
    r"|谢谢|请问?|你好|ありがとう(?:ございます)?|お願いします|감사합니다|안녕하세요",
    re.IGNORECASE,
)
FULL = 0.985
"""Of the budget: beyond it no shorter line is looked for."""
_LINE_END = 1
_GAP_TOKENS = 2


def render(windows: Sequence[Window]) -> str:
    return "\n".join(map(str, windows))


def choose(
    collection: MemoryIndex,
    scored: Sequence[ScoredLine],
    count: Count,
    query: RecallQuery,
    about: About | None = None,
) -> list[Window]:
    """The best lines that fit, as windows, best first. Rendered together they never exceed the query's tokens."""
    packer = _Packer(collection, count, query.max_tokens, query.limit, about)
    for worth, line, tokens in packer.by_worth(scored):
        if not packer.take(worth, line, tokens):
            break
    asked = frozenset(words_in(query.text))
    windows = mark_superseded(sorted(packer.windows(), key=lambda window: -window.score), asked)
    if AnswerType.USER not in understand(query.text).wants:
        windows = _questions_last(windows, packer.only_asking(query.text, asked))
    # Tokens of a whole may differ by a few from the sum over its lines; the promise is about the whole.
    while windows and count(render(windows)) > query.max_tokens:
        windows.pop()
    return windows


def _questions_last(windows: Sequence[Window], asking: Container[tuple[str, int]]) -> list[Window]:
    """Where the user asked the same before and said no more, the question stands behind what answers it."""
    lowest = min((window.score for window in windows), default=0.0)
    placed = [
        replace(window, score=lowest)
        if (window.conversation, window.message) in asking and not window.about
        else window
        for window in windows
    ]
    return sorted(placed, key=lambda window: -window.score)


def _only_asks(text: str, query: str, asked: Set[str]) -> bool:
    """Whether a message says nothing but the query's question: each sentence asks, with no word or number of its own.

    A word more may be the answer ("Is it on heron?"), and so may a sentence without one ("Yes.", "It is 7.").
    """
    bare = _COURTESY.sub(" ", text)
    words = frozenset(words_in(bare))
    if (
        len(words) < SAME_WORDS
        or not words <= asked
        or not frozenset(_NUMBER.findall(text)).issubset(_NUMBER.findall(query))
    ):
        return False
    return all(
        asks(sentence) and "?" not in sentence[:-1] for sentence in map(_without_marks, sentences_of(bare)) if sentence
    )


def _without_marks(sentence: str) -> str:
    """A sentence without the blanks and marks around it, those that ask aside."""
    return sentence.strip(" \t,;:.!-–—*_>\"'“”„«»()[]…")


class _Packer:
    """Lines taken so far, by passage, and the tokens they need."""

    def __init__(
        self, collection: MemoryIndex, count: Count, max_tokens: int, limit: int | None, about: About | None
    ) -> None:
        self._collection = collection
        self._about = about
        self._count = count
        self._max_tokens = max_tokens
        self._limit = limit
        self._used = 0
        self._shown: set[str] = set()
        self._chosen: dict[int, dict[int, float]] = {}
        """For each passage its lines with their worth."""

    def by_worth(self, scored: Sequence[ScoredLine]) -> Iterator[tuple[float, int, int]]:
        """(worth, line, tokens), worthiest first, given what has been taken when the line comes up."""
        heap: list[tuple[float, int, int, int]] = []
        for found in scored:
            tokens = self._count(self._collection.lines[found.line])
            heap.append((COST * math.log(tokens + 3) - found.score, 0, found.line, tokens))
        heapq.heapify(heap)
        while heap:
            price, crowd, line, tokens = heapq.heappop(heap)
            taken = len(self._chosen.get(self._collection.entry_of[line], ()))
            if taken > crowd:
                price += CROWD * (math.log1p(taken) - math.log1p(crowd))
                heapq.heappush(heap, (price, taken, line, tokens))
            else:
                yield -price, line, tokens

    def take(self, worth: float, line: int, tokens: int) -> bool:
        """Take a line if it is new and fits; False when the budget is used up."""
        place = self._collection.entry_of[line]
        text = self._collection.lines[line].casefold()
        lines = self._chosen.get(place)
        if text in self._shown or (lines is None and self._limit is not None and len(self._chosen) >= self._limit):
            return True
        cost = tokens + _LINE_END + self._framing(place, line, lines)
        if self._used + cost > self._max_tokens:
            return self._used < self._max_tokens * FULL
        self._used += cost
        self._shown.add(text)
        self._chosen.setdefault(place, {})[line] = worth
        return True

    def _framing(self, place: int, line: int, lines: dict[int, float] | None) -> int:
        if lines is None:
            return self._count(str(self._window(place, {}))) + _LINE_END
        return 0 if line - 1 in lines or line + 1 in lines else _GAP_TOKENS

    def windows(self) -> list[Window]:
        return [self._window(place, lines) for place, lines in self._chosen.items()]

    def only_asking(self, query: str, asked: Set[str]) -> frozenset[tuple[str, int]]:
        """Conversation and number of each message that only asks the query again, of those that are shown."""
        entries = (self._collection.entries[place] for place in self._chosen)
        return frozenset(
            (entry.origin.conversation, entry.message)
            for entry in entries
            if entry.passage.role == "user" and _only_asks("\n".join(entry.passage.lines), query, asked)
        )

    def _window(self, place: int, lines: dict[int, float]) -> Window:
        entry = self._collection.entries[place]
        shown: list[str] = []
        before: int | None = None
        for line in sorted(lines):
            if before is not None and line > before + 1:
                shown.append(GAP)
            shown.append(self._collection.lines[line])
            before = line
        passage, origin = entry.passage, entry.origin
        return Window(
            message=entry.message,
            role=passage.role,
            tool=passage.tool,
            is_call=passage.is_call,
            text="\n".join(shown),
            score=max(lines.values(), default=0.0),
            conversation=origin.conversation,
            at=origin.at,
            about=self._about(place) if self._about else "",
        )
