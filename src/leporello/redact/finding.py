"""Finding words fast: every rule names a literal word, and its pattern is tried only where that word stands.

Searching for a literal runs at memory speed, a pattern does not. This also keeps the whole work linear: a pattern reads
a bounded stretch from each place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


def lowered_of(text: str) -> str:
    """The text in small letters, with every character at its old place."""
    lowered = text.lower()
    # One letter (the dotted capital I) becomes two in small; nothing ever becomes fewer.
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "I").lower()


def matches(pattern: re.Pattern[str], text: str, word: str, searched: str) -> Iterator[re.Match[str]]:
    """What the pattern matches from each place of a word in `searched` (the text, or the text in small letters).

    Places inside an earlier match are passed over: they were read.
    """
    place = searched.find(word)
    while place >= 0:
        match = pattern.match(text, place)
        if match is not None:
            yield match
        place = searched.find(word, max(place + len(word), match.end() if match else 0))
