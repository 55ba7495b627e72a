"""BM25: how well a document's words answer a query, given how common each word is. Pure arithmetic, no index.

SQLite and PostgreSQL rank text differently; candidates from either are scored here, so that the order of hits does not
depend on the database. A query is a mapping of words to weights: what the user typed weighs 1, a guessed relative less.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

K1 = 1.2
"""How soon further occurrences of a word stop counting."""
B = 0.5
"""How much a long document is held against it (0 not at all, 1 fully)."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 must know about the whole collection."""

    documents: int
    average_length: float
    """Mean number of words of a document."""
    containing: Mapping[str, int]
    """For each word of the query: how many documents hold it."""


def rarity(documents: int, containing: int) -> float:
    """The weight of one word: near 0 when every document has it, never negative."""
    return math.log1p((max(documents, containing) - containing + 0.5) / (containing + 0.5))


def saturation(frequency: float, length: float, average_length: float) -> float:
    """What `frequency` occurrences in a document of this length are worth, between 0 and K1 + 1."""
    relative = length / average_length if average_length > 0 else 1.0
    return frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * relative))


def score(query: Mapping[str, float], words: Sequence[str], statistics: Statistics) -> float:
    """How well one document answers the query; 0 when it has none of its words."""
    frequencies = Counter(words)
    total = 0.0
    for word, weight in query.items():
        frequency = frequencies.get(word)
        if frequency:
            rare = rarity(statistics.documents, statistics.containing.get(word, 0))
            total += weight * rare * saturation(frequency, len(words), statistics.average_length)
    return total


def rank(
    query: Mapping[str, float],
    candidates: Iterable[tuple[Key, Sequence[str]]],
    statistics: Statistics,
    limit: int,
) -> list[tuple[Key, float]]:
    """The best candidates with their scores, best first; equal scores keep the order in which they came."""
    scored = ((score(query, words, statistics), -place, key) for place, (key, words) in enumerate(candidates))
    best = heapq.nlargest(limit, (entry for entry in scored if entry[0] > 0.0), key=lambda entry: entry[:2])
    return [(key, value) for value, _, key in best]
