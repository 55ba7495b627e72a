"""No text can make a pattern slow: the work of every regular expression grows no faster than its text.

Work is counted, not timed: `steps` runs the parse tree of each pattern with a backtracking matcher of its own that counts,
on the texts that `inputs` builds from that tree (long words, long runs of every class the pattern uses, repeated
near-matches, each with an end at which the match fails). A text twice as long may cost twice the work and not more. That
catches nested and adjacent repeats, and the trap of a search that reads the rest of the text again from each character.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

import pytest

from .collect import SOURCE, Found, patterns
from .inputs import Shape, shapes
from .steps import Counter

PER_CHARACTER = 4
"""Less work than this for each character needs no second look."""
GROWTH = 1.3
"""What the work for a character may grow by when the text doubles; a quadratic pattern's doubles."""
AT_RUN_TIME = {
    ("agent/prompt", "expand"),
}


@pytest.fixture(autouse=True)
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield
    sys.setrecursionlimit(before)


def superlinear(pattern: re.Pattern[str], how: frozenset[str]) -> tuple[str, Shape] | None:
    """A text on which the work grows faster than the text, if there is one."""
    counter = Counter(pattern)
    for shape in shapes(counter):
        short = shape.text(0)
        for way in how:
            first = counter.work(short, way, budget=len(short) ** 2) / len(short)
            if first > PER_CHARACTER:
                long = shape.text(1)
                second = counter.work(long, way, budget=int(2 * GROWTH * first * len(long))) / len(long)
                if second > GROWTH * first:
                    return way, shape
    return None


@pytest.mark.parametrize("found", patterns(), ids=lambda found: found.name)
def test_pattern_is_linear(found: Found) -> None:
    """Twice the text, at most twice the work."""
    pattern = found.pattern
    if isinstance(pattern.pattern, bytes):
        pattern = re.compile(pattern.pattern.decode("ascii"), (pattern.flags & ~re.LOCALE) | re.ASCII)
    assert superlinear(pattern, found.how) is None
