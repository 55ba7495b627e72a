"""The numbers of a claim against those in the turns: values, what they count, all, some or none."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from leporello.summaries.verify.evidence import ClaimScope, Evidence
from leporello.summaries.verify.lexicon import Side, in_other_script, root, sides_of, synonyms_of
from leporello.summaries.verify.reading import QUOTED, Figure, Reading, Token, any_same, looks_same, read, same

SMALL_COUNT = 12


def neighbours(reading: Reading, figure: Figure) -> list[str]:
    """The words that say what a number counts: the next ones, or the one right before it."""
    found: list[str] = []
    assigned = reading.text[figure.start - 1 : figure.start] == "="
    for token in [] if assigned else [token for token in reading.tokens if token.start >= figure.end][:4]:
        if token.boundary or token.name or token.text.casefold() in _APART:
            break
        found.extend(_telling(token))
    if found:
        return found
    for token in reversed([token for token in reading.tokens if token.start + len(token.text) <= figure.start][-2:]):
        if token.boundary and token.text in ":(":
            continue
        if token.boundary or token.name:
            break
        if token.content:
            return _telling(token)
        if token.text.casefold() not in _LINKS:
            break
    return []


_APART = frozenset("in on at to and after with for by or but from".split())
_LINKS = frozenset("is was of at to under on are over".split())


def _telling(token: Token) -> list[str]:
    """The keys of a word that can tell one number from another; vague words stand beside all kinds of them."""
    return [key for key in token.keys if key not in _VAGUE] if token.content else []


_VAGUE = frozenset(map(root, "take last run get need total time thing way about log use set value number".split()))


def free_figures(claim: Reading) -> list[Figure]:
    """The numbers that are no part of a name or a quotation."""
    inside = [(token.start, token.start + len(token.text)) for token in claim.names]
    inside.extend(match.span() for match in QUOTED.finditer(claim.text))
    return [figure for figure in claim.figures if not any(start <= figure.start < end for start, end in inside)]


def may_be_counted(claim: Reading, figure: Figure) -> bool:
    """Small whole numbers may be the writer's own count; a rate or a factor is measured, not counted."""
    if _RATE.match(claim.text, figure.end):
        return False
    return figure.word or (not figure.kind and figure.bare <= SMALL_COUNT and figure.bare == int(figure.bare))


_RATE = re.compile(r"\s*(?:\w+ per\b|\w+/s\b|times (?:faster|slower|as|more|less))")


_OF = (" of ", " of the ", " out of ", "/")


class Counting:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def wrong(self, claim: Reading, scope: ClaimScope) -> str:
        """Which number of a claim is wrong in a scope, and how; empty when none is."""
        for figure in free_figures(claim):
            if self.summed(claim, figure, scope.region):
                continue
            shown = claim.text[figure.start : figure.end]
            keys = neighbours(claim, figure)
            plainly = "contradicts: " if scope.cited else ""
            for numbers, weight in ((scope.core, plainly), (scope.region, "")):
                if self._other_unit(figure, numbers):
                    return f"{plainly}another unit than {shown}"
                beside = [other for key in keys for other in self._standing(key, numbers)]
                if beside and not any_same(figure, beside):
                    return f"{weight}another number than {shown}"
                if beside:
                    break
            else:
                if (
                    keys
                    and not figure.kind
                    and not may_be_counted(claim, figure)
                    and not self._together(figure, keys, scope.region)
                ):
                    return f"unknown count {shown}"
                if not may_be_counted(claim, figure) and not any_same(figure, self.evidence.figures(scope.region)):
                    return f"unknown number {shown}"
        return "counts of different places" if self._mixed(claim, scope) else ""

    def _mixed(self, claim: Reading, scope: ClaimScope) -> bool:
        """Whether some of a claim's counts stand in the messages it is about, and others only in those around."""
        figures = [figure for figure in free_figures(claim) if not self.summed(claim, figure, scope.region)]
        counts = [(figure, keys) for figure in figures if (keys := neighbours(claim, figure))]
        if len(counts) < 2:
            return False
        there = [self._counts(figure, keys, scope.core) for figure, keys in counts]
        elsewhere = scope.region if scope.cited else self.evidence.numbers
        return any(there) and any(
            not found and any(self._standing(key, elsewhere) for key in keys)
            for found, (_, keys) in zip(there, counts, strict=True)
        )

    def _together(self, figure: Figure, keys: Iterable[str], region: Collection[int]) -> bool:
        """Whether a number and one of the words it stands with are in one segment, however far apart."""
        words = {word for key in keys for word in (key, *synonyms_of(key), *in_other_script(key))}
        places = {place for word in words for place in self.evidence.segments_with(word, region)}
        return any(any_same(figure, read(self.evidence.segments[place].text).figures) for place in places)

    def summed(self, claim: Reading, figure: Figure, region: Collection[int]) -> bool:
        """Whether "2 of 12" adds up: two numbers of one segment, 2 and 10, make the second."""
        part = next((other for other in claim.figures if claim.text[other.end : figure.start] in _OF), None)
        if part is None:
            return False
        for number in region:
            for segment in self.evidence.of(number):
                known = {other.bare for other in read(segment.text).figures if not other.kind}
                if part.bare in known and figure.bare - part.bare in known:
                    return True
        return False

    def _counts(self, figure: Figure, keys: Iterable[str], numbers: Collection[int]) -> bool:
        """Whether a number stands beside one of its words."""
        return any(any_same(figure, self._standing(key, numbers)) for key in keys)

    def _other_unit(self, claim: Figure, numbers: Collection[int]) -> bool:
        """Whether the same figure stands there with another unit, and not with this one."""
        if not claim.kind:
            return False
        known = [figure for figure in self.evidence.figures(numbers) if figure.kind]
        return any(looks_same(claim, figure) for figure in known) and not any_same(claim, known)

    def _standing(self, key: str, scope: Collection[int]) -> list[Figure]:
        """The numbers that stand beside a word, or one of the same meaning, in a scope."""
        found: list[Figure] = []
        words = {key, *in_other_script(key)}
        for word in words:
            for place in self.evidence.segments_with(word, scope):
                reading = read(self.evidence.segments[place].text)
                found.extend(figure for figure in reading.figures if words & set(neighbours(reading, figure)))
        return found

    def share_in(self, claim: Reading, number: int) -> float:
        """How many of a claim's numbers stand in one message, beside their words when they have some."""
        known = list(self.evidence.figures((number,)))
        found = 0.0
        for figure in claim.figures:
            keys = neighbours(claim, figure)
            if keys and self._counts(figure, keys, (number,)):
                found += 1.0
            elif any_same(figure, known):
                found += 0.5 if keys else 1.0
        return found / len(claim.figures)


_PART = re.compile(
    r"\b(?:some|none|few|most|half|many|several|only \w+|hardly any|not all|fewer|part) of (?:the |these |all )?$", re.I
)
_ALL = re.compile(r"\b(?:all|every one of)(?: of)? ?(?:the |these )?$|全部|所有", re.I)


def misjudged(claim: Reading, counts: Sequence[Reading]) -> bool:
    """Whether a claim calls a count a part of itself, or the whole where others are counted on the other side."""
    for figure in claim.figures:
        before = claim.text[: figure.start]
        part, whole = bool(_PART.search(before)), bool(_ALL.search(before))
        if not part and not whole:
            continue
        verdicts = [_against(claim, figure, count, part=part) for count in counts]
        known = [verdict for verdict in verdicts if verdict is not None]
        if known and all(known):
            return True
    return False


def _against(claim: Reading, figure: Figure, count: Reading, *, part: bool) -> bool | None:
    """Whether one count speaks against it; None when it counts something else."""
    asked = {facet.side for facet in claim.facets if facet.side.sides == 2}
    counted = [(other, _sides(count, other)) for other in count.figures]
    if not any(same(figure, other) and asked & sides for other, sides in counted):
        return None
    if part:
        return True
    return any(other.bare > 0 and _opposite(asked, sides) for other, sides in counted)


def _sides(reading: Reading, figure: Figure) -> set[Side]:
    return {side for key in neighbours(reading, figure) for side in sides_of(key)}


def _opposite(asked: set[Side], sides: set[Side]) -> bool:
    return any(one.axis == other.axis and one.side != other.side for one in asked for other in sides)
