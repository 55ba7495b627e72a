"""All of them, some of them, none of them: what a claim says of a number, against the counts in the turns.

"Some of the 12 tests passed" is false where "12 passed" stands, "all 12 passed" where "12 passed, 3 failed" does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from leporello.summary.support.counts import neighbours
from leporello.summary.support.figures import Figure, same
from leporello.summary.support.lexicon import Side, sides_of
from leporello.summary.support.reading import Reading

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
