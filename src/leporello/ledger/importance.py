"""Importance: one scored, explainable function that decides what is kept wherever something must be left out.

The score of a unit is a weighted sum of its features, read as the log-odds that somebody will need exactly this piece
later. `weights.json` holds all weights in one place; `scripts/fit_importance.py` makes it from recorded sessions and
question banks. Features are traits of the text, of where it stands, and of what happened to it later; none of them
knows a project, a file or a question.

A `Ranking` hands out the units of a span, most valuable first, and scores them only as far as somebody reads on. What a
unit is worth at most is known when its message arrives. Units wait in that order; one is scored when its turn comes,
and handed out when no other can be worth more. A budget takes a few thousand of them, whatever the history.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from importlib.resources import files
from typing import TYPE_CHECKING

import orjson

from leporello.ledger.calls import common_folder
from leporello.ledger.line_features import PROSE_PATTERNS, TOOL_PATTERNS, line_features

if TYPE_CHECKING:
    from leporello.ledger.facts import EarlierLine, MessageFacts, UnitFacts
    from leporello.ledger.ledger import Ledger

COST_POWER = 0.7
"""How strongly length counts against a unit: 0 ignores it, 1 ranks by value per token."""

CHARS_PER_TOKEN = 3.2
LINE_OVERHEAD = 2

PREFIX = {"user": "u", "assistant": "a", "tool": "t"}


@dataclass(frozen=True, slots=True)
class Later:
    """What the rest of the conversation says about a unit: how many of its identifiers were cited in later text,
    used in later calls, how rare its rarest one is (1 = nowhere else), and how often the same text stood before."""

    cited: int = 0
    reused: int = 0
    rarity: float = 0.0
    repeats: int = 1


@cache
def weights() -> Mapping[str, float]:
    data = orjson.loads(files("leporello.ledger").joinpath("weights.json").read_bytes())
    return {str(name): float(value) for name, value in data["weights"].items()}


def text_features(text: str, role: str, position: int, total: int, work: str = "") -> dict[str, float]:
    """Features that are known when the message arrives."""
    p = PREFIX[role]
    patterns = TOOL_PATTERNS if role == "tool" else PROSE_PATTERNS
    found = line_features(text, patterns)
    bare = text.strip()
    features = {f"{p}_{name}": 1.0 for name in found}
    features[f"{p}_bias"] = 1.0
    features[f"{p}_log_total"] = math.log(total)
    features[f"{p}_log_length"] = math.log(1 + len(bare))
    features[f"{p}_dense"] = sum(map(str.isalnum, text)) / max(1, len(text))
    features[f"{p}_spaces"] = text.count(" ") / max(1, len(text))
    for name, holds in (
        ("first", position == 0),
        ("first3", position < 3),
        ("last", position == total - 1),
        ("last3", position >= total - 3),
        ("short", len(bare) < 15),
        ("indent", text[:1] in (" ", "\t")),
    ):
        if holds:
            features[f"{p}_{name}"] = 1.0
    if work:
        features[f"c_{work}"] = 1.0
        features[f"n_{work}"] = math.log(total)
        if "error" in found:
            features[f"e_{work}"] = 1.0
    return features


def later_features(role: str, identifiers: int, later: Later) -> dict[str, float]:
    """Features that are known only when something is folded."""
    p = PREFIX[role]
    return {
        f"{p}_ids": float(min(identifiers, 4)),
        f"{p}_cited": float(min(later.cited, 3)),
        f"{p}_reused": float(min(later.reused, 3)),
        f"{p}_rare": later.rarity,
        f"{p}_repeats": math.log(later.repeats),
    }


@cache
def _later_weights(role: str) -> tuple[float, float, float, float, float]:
    table, p = weights(), PREFIX[role]
    ids, cited, reused, rare, repeats = (
        table.get(f"{p}_{name}", 0.0) for name in ("ids", "cited", "reused", "rare", "repeats")
    )
    return ids, cited, reused, rare, repeats


def later_score(role: str, identifiers: int, later: Later) -> float:
    """`weigh(later_features(...))` without building the features: ranking asks for it tens of thousands of times."""
    ids, cited, reused, rare, repeats = _later_weights(role)
    return (
        ids * min(identifiers, 4)
        + cited * min(later.cited, 3)
        + reused * min(later.reused, 3)
        + rare * later.rarity
        + repeats * math.log(later.repeats)
    )


@cache
def most_later(role: str, identifiers: int) -> float:
    """The highest `later_score` there can be for a unit with so many identifiers."""
    ids, cited, reused, rare, repeats = _later_weights(role)
    if repeats > 0:
        return math.inf
    some = min(identifiers, 3)
    return ids * min(identifiers, 4) + max(0.0, cited) * some + max(0.0, reused) * some + max(0.0, rare) * bool(some)


def weigh(features: Mapping[str, float]) -> float:
    table = weights()
    return sum(table.get(name, 0.0) * value for name, value in features.items())


def value(log_odds: float, tokens: int) -> float:
    """What a unit is worth per what it costs; the order in which units enter a budget."""
    return 1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, log_odds)))) / float(max(1, tokens) ** COST_POWER)


def worth(log_odds: float, chars: int) -> float:
    """`value` of a unit of this many characters. Only for the order; what enters a budget is counted properly."""
    return value(log_odds, int(chars / CHARS_PER_TOKEN) + LINE_OVERHEAD)


def explain(features: Mapping[str, float]) -> list[tuple[str, float]]:
    """Each feature's share of the score, largest first."""
    table = weights()
    shares: Iterable[tuple[str, float]] = ((name, table.get(name, 0.0) * amount) for name, amount in features.items())
    return sorted((share for share in shares if share[1]), key=lambda share: -abs(share[1]))


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
