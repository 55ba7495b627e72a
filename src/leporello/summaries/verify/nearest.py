"""Where a claim comes from: the segments nearest to it, and which of its words, names and numbers they hold.

Both ends of a judgement need this: a line that one or two segments account for word by word stays as it is, and one in
doubt is replaced by the segments that hold its essentials.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from leporello.summaries.verify.evidence import Evidence, Segment, fold
from leporello.summaries.verify.numbers import free_figures
from leporello.summaries.verify.reading import ELLIPSIS, LINE_NUMBER, Figure, Reading, amounts, any_same, is_hash, read

MOST_SEGMENTS = 24
MOST_READ = 400
MOST_TRIED = 12
LEAST_SHARE = 0.15
"""Of a claim's words, when its names and numbers are there."""
LEAST_SHARE_OF_WORDS = 0.5
"""Of a claim that has only words."""
_FRINGE = ",;:()[]\"'`*"


@dataclass(frozen=True, slots=True)
class Essentials:
    """What a claim can't do without: names, numbers in digits, and quotations."""

    names: tuple[str, ...]
    figures: tuple[Figure, ...]
    quotes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names) + len(self.figures) + len(self.quotes)

    def held_by(self, segment: Segment) -> set[int]:
        """Which of them a segment holds, by their place."""
        held = [holds_name(name, (fold(segment.text),)) for name in self.names]
        if self.figures:
            known = read(segment.text).figures
            held.extend(any_same(figure, known) for figure in self.figures)
        held.extend(_holds_quote(quote, segment) for quote in self.quotes)
        return {place for place, there in enumerate(held) if there}


def essentials_of(claim: Reading) -> Essentials:
    names = tuple(dict.fromkeys(token.text for token in claim.names))
    figures = tuple(figure for figure in free_figures(claim) if not figure.word)
    return Essentials(names, figures, tuple(quote for quote in claim.quotes if " " in quote))


def _holds_quote(quote: str, segment: Segment) -> bool:
    text = fold(segment.text)
    return all(fold(piece).rstrip(".,;:!?") in text for piece in ELLIPSIS.split(quote) if len(piece) > 1)


def holds_name(raw: str, texts: Collection[str]) -> bool:
    """Whether folded texts hold a name: whole, or shortened at the end of a path, or as the start of a hash."""
    whole = raw.strip(_FRINGE).rstrip(".").casefold()
    name = LINE_NUMBER.sub("", whole)
    if is_hash(name):
        begins = re.compile(rf"(?<![0-9a-z]){name[:12]}")
        return any(begins.search(text) for text in texts)
    if "/" in name or "." in name:
        return _holds_path(name, whole, texts)
    bounded = re.compile(rf"(?<![\w-]){re.escape(whole)}(?![\w-])")
    return any(bounded.search(text) for text in texts)


def _holds_path(name: str, whole: str, texts: Collection[str]) -> bool:
    pieces = [piece for piece in ELLIPSIS.split(name) if piece]
    if whole != name and not any(whole.rpartition(":")[2] in text for text in texts):
        return False
    if len(pieces) > 1:
        return any(all(piece.strip("/") in text for piece in pieces) for text in texts)
    bounded = re.compile(rf"(?<![\w.-]){re.escape(name.removeprefix('./'))}(?![\w-]|\.\w)")
    return any(bounded.search(text) for text in texts)


@lru_cache(maxsize=50_000)
def _amounts(text: str) -> list[Figure]:
    return amounts(text)


@dataclass(frozen=True, slots=True)
class _Rated:
    """A segment: which essentials it holds, its share of the words, and how much it tells of what was done."""

    held: set[int]
    share: float
    more: int
    segment: Segment


class Nearest:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def candidates(
        self, claim: Reading, weights: dict[str, float], numbers: Collection[int]
    ) -> list[tuple[float, Segment]]:
        """The segments of some messages that share most with a claim, with the share of its words, best first."""
        aligned = self.evidence.aligned(weights, numbers, MOST_READ)
        shares = {id(segment): (share, segment) for share, segment in aligned}
        exact: Counter[int] = Counter()
        for segment in self._with_exact(claim, numbers):
            shares.setdefault(id(segment), (0.0, segment))
            exact[id(segment)] += 1
        like = sorted(shares, key=lambda key: -shares[key][0])[:MOST_SEGMENTS]
        holding = sorted(exact, key=lambda key: (-exact[key], -shares[key][0]))[:MOST_SEGMENTS]
        return [shares[key] for key in dict.fromkeys((*like, *holding))]

    def _with_exact(self, claim: Reading, numbers: Iterable[int]) -> Iterator[Segment]:
        """The segments that hold a number of a claim, or a name that they write otherwise."""
        figures = free_figures(claim)
        names = [token.text for token in claim.names if not self.evidence.has(token.key, tuple(numbers))]
        for number in numbers if figures or names else ():
            known = list(self.evidence.figures((number,)))
            here = [figure for figure in figures if any_same(figure, known)]
            named = [name for name in names if holds_name(name, (self.evidence.text(number),))]
            for segment in self.evidence.of(number) if here or named else ():
                given = _amounts(segment.text)
                for figure in here:
                    if any_same(figure, given):
                        yield segment
                for name in named:
                    if holds_name(name, (fold(segment.text),)):
                        yield segment

    def quotable(
        self,
        claim: Reading,
        weights: dict[str, float],
        places: Iterable[Sequence[int]],
        cited: Collection[int] = (),
    ) -> tuple[Segment, ...]:
        """The one or two segments that hold the essentials of a claim and most of its words; none when none does.

        Places are looked through in their order: the messages that a line cites come first.
        """
        essentials = essentials_of(claim)
        least = LEAST_SHARE if len(essentials) else LEAST_SHARE_OF_WORDS
        for numbers in places:
            found = [(share, s) for share, s in self.candidates(claim, weights, numbers) if s.verbatim]
            rated = [_Rated(essentials.held_by(s), share, self._tells_more(s), s) for share, s in found]
            rated.sort(key=lambda one: (-len(one.held), -one.share, -one.more))
            for first in rated[:MOST_TRIED]:
                chosen = self._completed(first, rated, len(essentials), cited)
                if chosen and sum(one.share for one in chosen) >= least:
                    return tuple(one.segment for one in chosen)
        return ()

    def _completed(
        self, first: _Rated, rated: Sequence[_Rated], wanted: int, cited: Collection[int]
    ) -> tuple[_Rated, ...]:
        """A segment, with a second one when it lacks essentials that another has; nothing when some are lacking still.

        The second belongs to it: the call and its results, or another message that the line cites.
        """
        if len(first.held) == wanted:
            return (first,)
        beside = {*self.evidence.groups((first.segment.number,)), *cited}
        fitting = (one for one in rated if one.segment.number in beside and len(first.held | one.held) == wanted)
        second = max(fitting, key=lambda one: (one.share, one.more), default=None)
        return (first, second) if second is not None else ()

    def _tells_more(self, segment: Segment) -> int:
        """Of two segments that are as near: what was done is told by the call, best by one that changed something."""
        return (segment.role == "call") + self.evidence.changes(segment.number)
