"""The units of a span, those that tell most first.

What was told already tells less: in work, a word loses most of its worth with each unit before that has it. The order
of what is left is the greedy one for a sum that grows ever more slowly, so that a fold tells of many things (decision
0060).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heappush
from operator import attrgetter

import msgspec
from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import common_folder
from leporello.ledger.facts import EarlierLine, UnitFacts
from leporello.ledger.importance import Vocabulary, user_weight, words_of
from leporello.ledger.ledger import Ledger
from leporello.ledger.sentence_pieces import gives_value
from leporello.ledger.units import INTENT, SAYS_WHY
from leporello.ledger.values import LATER, SHORTEST

_FEW_WORDS = lazy_regex(r"[^\W\d_\u3040-\u9fff\uac00-\ud7a3][a-zß-ÿа-я'’, -]{0,31}[.!:]?")
"""No figure, no name, no identifier: "Good catch.", "I see the issue.", "This makes sense because:"."""
NEWER_VALUE = 1.0
"""What a sentence is worth beside its score that says something else about a thing than an earlier one."""
RECENT = 1.5
"""What the newest of the values that the user stated is worth more than the first."""
REPEATED = 0.2
"""What it costs when the words of a unit tell less than they would alone, for each e-fold."""
LEAST_TOLD = 0.1
"""For units without a word."""
TOLD_AGAIN = 0.3
"""What is left of a word's worth with each unit that has it."""
_ROOM = 1 << 20
"""Places that each message has for its units."""
_SCORE = attrgetter("score")
MOST_SAID, LONGEST_SAID = 300, 200
"""Newest sentences of the user that are looked at for values, and the characters of one that states something."""


class RankedUnit(Struct, frozen=True):
    number: int
    role: str
    unit: UnitFacts
    heading: str = ""
    section: str = ""
    """For a line of an unverified summary: where it stood there."""
    beside: tuple[int, str] = (0, "")
    """A later message that is told beside it, with the words."""

    @property
    def text(self) -> str:
        return self.unit.text

    @property
    def position(self) -> int:
        return self.unit.position


class _Telling(Struct, frozen=True, gc=False):
    """The words of a unit, each once, and how much they would tell alone."""

    words: tuple[str, ...]
    alone: float


class _Novelty:
    """What words still tell beside the units that were taken."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._rarity: dict[str, float] = {}
        self._left: dict[str, float] = {}

    def telling(self, text: str) -> _Telling:
        words = tuple(dict.fromkeys(words_of(text)))
        for word in words:
            if word not in self._rarity:
                self._rarity[word] = self._left[word] = self._vocabulary.rarity(word)
        return _Telling(words, sum(map(self._rarity.__getitem__, words)))

    def loss(self, telling: _Telling) -> float:
        """By how much a score falls for what was taken before."""
        left = sum(map(self._left.__getitem__, telling.words))
        return REPEATED * math.log((telling.alone + LEAST_TOLD) / (left + LEAST_TOLD))

    def take(self, telling: _Telling) -> None:
        for word in telling.words:
            self._left[word] *= TOLD_AGAIN


def is_talk(ledger: Ledger) -> bool:
    """Without a single tool call it is a talk: nobody's words are requests, and nothing is done."""
    return not any(facts.role == "tool" for facts in ledger.facts.values())


class Ranking:
    """The units of some messages of a ledger by score, taken one by one as far as somebody reads."""

    def __init__(self, ledger: Ledger, numbers: Collection[int], told: str = "") -> None:
        """`told`: a text that is read beside the units; what stands there is not told again behind one of them."""
        self._ledger = ledger
        self._told = told
        self._root = common_folder(ledger.files)
        self._headings: dict[int, str] = {}
        self._ranked: list[RankedUnit] = []
        self._anew = ledger.values.told_anew()
        self._stated: list[RankedUnit] | None = None
        self._ended = {(rule.number, rule.text): rule.ended_by for rule in ledger.rules if rule.ended_by is not None}
        """By what the rules ended that hold no longer."""
        self._is_talk = is_talk(ledger)
        self._covered = covered = sorted(number for number in numbers if number in ledger.facts)
        self._span = frozenset(covered)
        self._bonus = user_weight() if self._is_talk else 0.0
        # Between people what comes up again is what they care about.
        self._novelty = None if self._is_talk else _Novelty(ledger.vocabulary)
        self._tellings: dict[int, _Telling] = {}
        # Of a few hundred messages something is shown: the units of the others are never looked at. Those of one score
        # come in the order of the conversation, a message before its units; the lines of earlier summaries come last.
        self._waiting: list[tuple[float, int, int, UnitFacts | None, EarlierLine | None]] = []
        for place, number in enumerate(covered):
            facts = ledger.facts[number]
            if number in self._anew:
                self._waiting += self._units_of(place, number)
            elif facts.units:
                best = max(map(_SCORE, facts.units))
                self._waiting.append((self._worth(facts.role) - best, place * _ROOM, number, None, None))
        behind = len(covered) * _ROOM
        lines = ((number, line) for number in covered for line in ledger.earlier.get(number, ()) if line.role)
        self._waiting += (
            (self._worth(line.role) - line.unit.score, behind + place, number, line.unit, line)
            for place, (number, line) in enumerate(lines)
        )
        heapify(self._waiting)

    def _worth(self, role: str) -> float:
        return self._bonus if role == "user" else 0.0

    def _units_of(self, place: int, number: int) -> Iterator[tuple[float, int, int, UnitFacts, None]]:
        worth = self._worth(self._ledger.facts[number].role)
        for behind, unit in enumerate(self._in_time(number), place * _ROOM + 1):
            yield worth - unit.score, behind, number, unit, None

    def _in_time(self, number: int) -> Iterator[UnitFacts]:
        """The units of a message, those worth more that say something anew."""
        anew = self._anew.get(number)
        if anew is None:
            yield from self._telling(number)
            return
        for unit in self._telling(number):
            told_anew = unit.text in anew
            yield msgspec.structs.replace(unit, score=unit.score + NEWER_VALUE) if told_anew else unit

    def stated(self) -> list[RankedUnit]:
        """Short sentences of the user that give a value, those that tell most first; without what was replaced.

        Where work is done, they stand nowhere else: no file and no output has them.
        """
        if self._stated is None:
            values, last = self._ledger.values, self._ledger.last or 1
            ended = {text for _, text in self._ended}
            said = [
                (number, unit)
                for number in reversed(self._covered)
                if self._ledger.facts[number].role == "user"
                for unit in self._in_time(number)
                if SHORTEST <= len(unit.text) <= LONGEST_SAID
            ][:MOST_SAID]
            again = {later.since for told in values.related.values() for later in told.values()}
            found = [
                (-unit.score - RECENT * number / last - NEWER_VALUE * (number in again), number, unit)
                for number, unit in said
                if unit.text not in ended and unit.text not in values.related.get(number, ())
                if all(unit.text != change.was_text for change in values.replaced_in(number))
                if number in again or gives_value(unit.text)
            ]
            found.sort(key=lambda entry: entry[:2])
            self._stated = [self._own(number, unit) for _, number, unit in found]
        return self._stated

    def _telling(self, number: int) -> Iterator[UnitFacts]:
        """The units of a message; what the assistant says it will call for is told by the calls, but not why.

        Where work is done, a few plain words of the assistant's tell nothing without what they answer.
        """
        facts = self._ledger.facts[number]
        if facts.role != "assistant" or self._is_talk:
            yield from facts.units
            return
        following = self._ledger.facts.get(number + 1)
        calls = following is not None and following.role == "tool"
        for unit in facts.units:
            announced = INTENT.match(unit.text) if calls else None
            if announced is not None and not SAYS_WHY.search(unit.text, announced.end()):
                continue
            if not _FEW_WORDS.fullmatch(unit.text):
                yield unit

    def __iter__(self) -> Iterator[RankedUnit]:
        """Reading it again ranks nothing again."""
        place = 0
        while True:
            while place < len(self._ranked):
                yield self._ranked[place]
                place += 1
            if not self._waiting:
                return
            _, place_of, number, unit, line = heappop(self._waiting)
            if unit is None:
                for waiting in self._units_of(place_of // _ROOM, number):
                    heappush(self._waiting, waiting)
            elif not self._falls_behind(place_of, number, unit, line):
                self._ranked.append(self._earlier(number, line) if line else self._own(number, unit))

    def _falls_behind(self, place: int, number: int, unit: UnitFacts, line: EarlierLine | None) -> bool:
        """Whether others come before the first that waits, for what was told since it was put there; else it is told.

        What a unit still tells only ever falls, so that nothing but the first has to be looked at again.
        """
        novelty = self._novelty
        if novelty is None:
            return False
        telling = self._tellings.get(place)
        if telling is None:
            telling = self._tellings[place] = novelty.telling(unit.text)
        # A newer value comes in the words of the older one, and is no repetition of it.
        lost = 0.0 if unit.text in self._anew.get(number, ()) else novelty.loss(telling)
        now = lost - unit.score
        if self._waiting and now > self._waiting[0][0]:
            heappush(self._waiting, (now, place, number, unit, line))
            return True
        novelty.take(telling)
        return False

    def _own(self, number: int, unit: UnitFacts) -> RankedUnit:
        facts = self._ledger.facts[number]
        heading = self._headings.get(number)
        if heading is None:
            heading = self._headings[number] = facts.answers.heading_within(self._root) if facts.answers else ""
        values = self._ledger.values
        later = values.related_to(number, unit.text)
        # What is told elsewhere, in a fold of its own or as it was said, is not told here.
        related = later is not None and later.since in self._span
        text = values.marked(number, unit.text, is_output=facts.role == "tool", beside=self._told, related=related)
        if text == unit.text and (ended := self._ended.get((number, text))):
            text += f"{LATER}{ended})"
        shown = unit if text == unit.text else msgspec.structs.replace(unit, text=text)
        return RankedUnit(number, facts.role, shown, heading, beside=values.shown_beside(number, text))

    def _earlier(self, number: int, line: EarlierLine) -> RankedUnit:
        return RankedUnit(number, line.role, line.unit, section=line.section)
