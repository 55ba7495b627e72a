"""The units of a span, those that tell most first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop

from leporello.ledger.calls import common_folder
from leporello.ledger.facts import EarlierLine, UnitFacts
from leporello.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class RankedUnit:
    number: int
    role: str
    unit: UnitFacts
    heading: str = ""
    section: str = ""
    """For a line of an unverified summary: where it stood there."""

    @property
    def text(self) -> str:
        return self.unit.text

    @property
    def position(self) -> int:
        return self.unit.position


class Ranking:
    """The units of some messages of a ledger by score, taken one by one as far as somebody reads."""

    def __init__(self, ledger: Ledger, numbers: Collection[int]) -> None:
        self._ledger = ledger
        self._root = common_folder(ledger.files)
        self._headings: dict[int, str] = {}
        self._ranked: list[RankedUnit] = []
        covered = sorted(number for number in numbers if number in ledger.facts)
        own = ((number, unit, None) for number in covered for unit in ledger.facts[number].units)
        earlier = (
            (number, line.unit, line) for number in covered for line in ledger.earlier.get(number, ()) if line.role
        )
        # Units of one score come in the order of the conversation: their place in this list is theirs alone.
        self._waiting: list[tuple[float, int, int, UnitFacts, EarlierLine | None]] = [
            (-unit.score, place, number, unit, line) for place, (number, unit, line) in enumerate((*own, *earlier))
        ]
        heapify(self._waiting)

    def __iter__(self) -> Iterator[RankedUnit]:
        """Reading it again ranks nothing again."""
        place = 0
        while True:
            while place < len(self._ranked):
                yield self._ranked[place]
                place += 1
            if not self._waiting:
                return
            _, _, number, unit, line = heappop(self._waiting)
            self._ranked.append(self._earlier(number, line) if line else self._own(number, unit))

    def _own(self, number: int, unit: UnitFacts) -> RankedUnit:
        facts = self._ledger.facts[number]
        heading = self._headings.get(number)
        if heading is None:
            heading = self._headings[number] = facts.answers.heading_within(self._root) if facts.answers else ""
        text = self._ledger.values.marked(number, unit.text)
        return RankedUnit(number, facts.role, unit if text == unit.text else replace(unit, text=text), heading)

    def _earlier(self, number: int, line: EarlierLine) -> RankedUnit:
        return RankedUnit(number, line.role, line.unit, section=line.section)
