"""Lines chosen for a token budget and shown as windows.

Lines are taken in the order of their score less what they cost: twenty short lines of evidence are worth more than one
long one. Each further line of a passage is worth a little less than the one before, so that the budget is spread over
many places. A line that is shown already, word for word, is not shown again.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence

from leporello.recall import ranking
from leporello.recall.base import GAP, Window
from leporello.recall.memory_index import MemoryIndex
from leporello.recall.ranking import ScoredLine

Count = Callable[[str], int]
"""Tokens of a text."""
About = Callable[[int], str]
"""For an entry of a collection one line that says what it belongs to."""

FULL = 0.985
"""Of the budget: beyond it no shorter line is looked for."""
_LINE_END = 1
_GAP_TOKENS = 2


def render(windows: Sequence[Window]) -> str:
    return "\n".join(map(str, windows))


def choose(
    collection: MemoryIndex,
    scored: Sequence[ScoredLine],
    count: Count,
    max_tokens: int,
    limit: int | None = None,
    about: About | None = None,
) -> list[Window]:
    """The best lines that fit, as windows, best first. Rendered together they never exceed `max_tokens`."""
    packer = _Packer(collection, count, max_tokens, limit, about)
    for worth, line, tokens in packer.by_worth(scored):
        if not packer.take(worth, line, tokens):
            break
    windows = sorted(packer.windows(), key=lambda window: -window.score)
    # Tokens of a whole may differ by a few from the sum over its lines; the promise is about the whole.
    while windows and count(render(windows)) > max_tokens:
        windows.pop()
    return windows


class _Packer:
    """Lines taken so far, by passage, and the tokens they need."""

    def __init__(
        self, collection: MemoryIndex, count: Count, max_tokens: int, limit: int | None, about: About | None
    ) -> None:
        self._collection = collection
        self._about = about
        self._count = count
        self._max_tokens = max_tokens
        self._limit = limit
        self._used = 0
        self._shown: set[str] = set()
        self._chosen: dict[int, dict[int, float]] = {}
        """For each passage its lines with their worth."""

    def by_worth(self, scored: Sequence[ScoredLine]) -> Iterator[tuple[float, int, int]]:
        """(worth, line, tokens), worthiest first, given what has been taken when the line comes up."""
        heap: list[tuple[float, int, int, int]] = []
        for found in scored:
            tokens = self._count(self._collection.lines[found.line])
            heap.append((ranking.COST * math.log(tokens + 3) - found.score, 0, found.line, tokens))
        heapq.heapify(heap)
        while heap:
            price, crowd, line, tokens = heapq.heappop(heap)
            taken = len(self._chosen.get(self._collection.entry_of[line], ()))
            if taken > crowd:
                price += ranking.CROWD * (math.log1p(taken) - math.log1p(crowd))
                heapq.heappush(heap, (price, taken, line, tokens))
            else:
                yield -price, line, tokens

    def take(self, worth: float, line: int, tokens: int) -> bool:
        """Take a line if it is new and fits; False when the budget is used up."""
        place = self._collection.entry_of[line]
        text = self._collection.lines[line].casefold()
        lines = self._chosen.get(place)
        if text in self._shown or (lines is None and self._limit is not None and len(self._chosen) >= self._limit):
            return True
        cost = tokens + _LINE_END + self._framing(place, line, lines)
        if self._used + cost > self._max_tokens:
            return self._used < self._max_tokens * FULL
        self._used += cost
        self._shown.add(text)
        self._chosen.setdefault(place, {})[line] = worth
        return True

    def _framing(self, place: int, line: int, lines: dict[int, float] | None) -> int:
        if lines is None:
            return self._count(str(self._window(place, {}))) + _LINE_END
        return 0 if line - 1 in lines or line + 1 in lines else _GAP_TOKENS

    def windows(self) -> list[Window]:
        return [self._window(place, lines) for place, lines in self._chosen.items()]

    def _window(self, place: int, lines: dict[int, float]) -> Window:
        entry = self._collection.entries[place]
        shown: list[str] = []
        before: int | None = None
        for line in sorted(lines):
            if before is not None and line > before + 1:
                shown.append(GAP)
            shown.append(self._collection.lines[line])
            before = line
        passage, origin = entry.passage, entry.origin
        return Window(
            message=entry.message,
            role=passage.role,
            tool=passage.tool,
            is_call=passage.is_call,
            text="\n".join(shown),
            score=max(lines.values(), default=0.0),
            conversation=origin.conversation,
            at=origin.at,
            about=self._about(place) if self._about else "",
        )
