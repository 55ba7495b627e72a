"""The units of a span, most valuable first, scored only as far as somebody reads on.

What a unit is worth at most is known when its message arrives. Units wait in that order; one is scored when its turn
comes, and handed out when no other can be worth more. A budget takes a few thousand of them, whatever the history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from leporello.ledger.facts import EarlierLine, MessageFacts, UnitFacts
from leporello.ledger.importance import later_score, worth
from leporello.ledger.ledger import Ledger, common_folder


@dataclass(frozen=True, slots=True)
class RankedUnit:
    number: int
    role: str
    text: str
    position: int
    log_odds: float
    heading: str = ""
    section: str = ""
    """For a line of an unverified summary: where it stood there."""

    @property
    def worth(self) -> float:
        """What it brings per what it costs."""
        return worth(self.log_odds, len(self.text))


class Ranking:
    """The units of some messages of a ledger: all of the user's, and the others by their worth."""

    def __init__(self, ledger: Ledger, numbers: Collection[int]) -> None:
        self._ledger = ledger
        self._root = common_folder(ledger.files)
        self._headings: dict[int, str] = {}
        self._numbers = sorted(number for number in numbers if number in ledger.facts)
        self._ranked: list[RankedUnit] = []
        self._rest = self._by_worth()

    def of_user(self) -> list[RankedUnit]:
        """Everything the user said, in order; behind it what unverified summaries say the user said."""
        said = [
            self._candidate(number, facts, unit)
            for number, facts in self._messages()
            if facts.role == "user"
            for unit in facts.units
        ]
        return said + [self._earlier(number, line) for number, line in self._earlier_lines() if line.role == "user"]

    def others(self) -> Iterator[RankedUnit]:
        """What the assistant and the tools said, most valuable first. Reading it again scores nothing again."""
        place = 0
        while True:
            while place < len(self._ranked):
                yield self._ranked[place]
                place += 1
            following = next(self._rest, None)
            if following is None:
                return
            self._ranked.append(following)

    def _messages(self) -> Iterable[tuple[int, MessageFacts]]:
        facts = self._ledger.facts
        return ((number, facts[number]) for number in self._numbers)

    def _by_worth(self) -> Iterator[RankedUnit]:
        waiting = [
            (-unit.most, number, index)
            for number, facts in self._messages()
            if facts.role in ("assistant", "tool")
            for index, unit in enumerate(facts.units)
        ]
        heapify(waiting)
        told = [(number, line) for number, line in self._earlier_lines() if line.role in ("assistant", "tool")]
        scored: list[tuple[float, int, int, RankedUnit]] = [
            (-candidate.worth, candidate.number, candidate.position, candidate)
            for candidate in (self._earlier(number, line) for number, line in told)
        ]
        heapify(scored)
        while waiting or scored:
            while waiting and (not scored or waiting[0] <= scored[0][:3]):
                _, number, index = heappop(waiting)
                facts = self._ledger.facts[number]
                candidate = self._candidate(number, facts, facts.units[index])
                heappush(scored, (-candidate.worth, number, index, candidate))
            yield heappop(scored)[3]

    def _candidate(self, number: int, facts: MessageFacts, unit: UnitFacts) -> RankedUnit:
        heading = self._headings.get(number)
        if heading is None:
            heading = self._headings[number] = facts.answers.heading_within(self._root) if facts.answers else ""
        odds = unit.base + later_score(facts.role, len(unit.identifiers), self._ledger.occurrences.later(number, unit))
        return RankedUnit(number, facts.role, unit.text.strip(), unit.position, odds, heading)

    def _earlier_lines(self) -> Iterable[tuple[int, EarlierLine]]:
        earlier = self._ledger.earlier
        return ((number, line) for number in self._numbers if number in earlier for line in earlier[number])

    def _earlier(self, number: int, line: EarlierLine) -> RankedUnit:
        unit = line.unit
        odds = unit.base + later_score(line.role, len(unit.identifiers), self._ledger.occurrences.later(number, unit))
        return RankedUnit(number, line.role, unit.text, unit.position, odds, section=line.section)
