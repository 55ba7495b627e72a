"""Learns from each real usage how far off the estimate was, per model."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

LOWEST, HIGHEST = 0.7, 2.5
"""The factor never leaves these bounds. They are uneven: a real count far below the estimate means that a provider
dropped something, and believing it would make the next estimate dangerously low."""

MEMORY = 15
LEAST_TOKENS = 50
VERSION = 1


class Calibration:
    """A factor between raw estimates and real counts: the weighted median of the last few observations.

    A median follows the first observation at once and then needs several that agree before it moves, so one
    absurd report changes nothing.
    """

    __slots__ = ("_factor", "_seen", "rejected")

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque(maxlen=MEMORY)
        self._factor = 1.0
        self.rejected = 0

    @property
    def factor(self) -> float:
        """Multiply a raw estimate by this."""
        return self._factor

    @property
    def observations(self) -> int:
        """How many real usages it rests on."""
        return len(self._seen)

    def learn(self, raw: float, actual: int) -> bool:
        """Take one observation; False when it can't be an honest one and was left out."""
        if raw < LEAST_TOKENS or actual < LEAST_TOKENS:
            return False
        ratio = actual / raw
        if not LOWEST <= ratio <= HIGHEST:
            self.rejected += 1
            return False
        # Rounded here, not when it is written down: after a restart the factor is the same.
        self._seen.append((round(ratio, 5), round(math.sqrt(raw), 1)))
        self._factor = _weighted_median(self._seen)
        return True

    def export(self) -> dict[str, Any]:
        """A small JSON-ready dict."""
        return {"v": VERSION, "seen": [[ratio, weight] for ratio, weight in self._seen]}

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Take over an exported state; anything malformed leaves a fresh calibration and gives False."""
        self._seen.clear()
        self._factor = 1.0
        rows = state.get("seen")
        if state.get("v") != VERSION or not isinstance(rows, list):
            return False
        for row in rows[-MEMORY:]:
            if not _is_observation(row):
                self._seen.clear()
                return False
            self._seen.append((float(row[0]), float(row[1])))
        if self._seen:
            self._factor = _weighted_median(self._seen)
        return True


def _is_observation(row: Any) -> bool:
    if not isinstance(row, list | tuple) or len(row) != 2:
        return False
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in row):
        return False
    return bool(LOWEST <= row[0] <= HIGHEST and 0 < row[1] < math.inf)


def _weighted_median(seen: deque[tuple[float, float]]) -> float:
    ordered = sorted(seen)
    half = sum(weight for _, weight in ordered) / 2
    passed = 0.0
    for ratio, weight in ordered:
        passed += weight
        if passed >= half:
            return ratio
    return ordered[-1][0]
