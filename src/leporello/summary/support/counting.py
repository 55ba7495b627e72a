"""The numbers of a claim against those in the turns: each must stand there, beside the same words, in one place."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from leporello.summary.support.counts import free_figures, may_be_counted, neighbours
from leporello.summary.support.evidence import Evidence, Scope
from leporello.summary.support.figures import Figure, any_same, looks_same
from leporello.summary.support.lexicon import in_other_script, synonyms_of
from leporello.summary.support.reading import Reading, read

_OF = (" of ", " of the ", " out of ", "/")


class Counting:
    """Looks numbers up."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def wrong(self, claim: Reading, scope: Scope) -> str:
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

    def _mixed(self, claim: Reading, scope: Scope) -> bool:
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
