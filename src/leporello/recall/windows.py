"""Lines chosen for a token budget and shown as windows.

Lines are taken in the order of their score less what they cost: twenty short lines of evidence are worth more than one
long one. A line that is shown already, word for word, is not shown again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leporello.recall import weights
from leporello.recall.base import GAP, Window
from leporello.recall.collection import Collection
from leporello.recall.ranking import ScoredLine

Count = Callable[[str], int]
"""Tokens of a text."""

FULL = 0.985
"""Of the budget: beyond it no shorter line is looked for."""
_LINE_END = 1
_GAP_TOKENS = 2


def render(windows: Sequence[Window]) -> str:
    """Windows as the text a reader gets."""
    return "\n".join(map(str, windows))


def choose(
    collection: Collection, scored: Sequence[ScoredLine], count: Count, max_tokens: int, limit: int | None = None
) -> list[Window]:
    """The best lines that fit, as windows, best first. Rendered together they never exceed `max_tokens`."""
    chosen: dict[int, dict[int, float]] = {}
    shown: set[str] = set()
    used = 0
    for worth, line, tokens in _by_worth(collection, scored, count):
        place = collection.entry_of[line]
        key = collection.lines[line].casefold()
        lines = chosen.get(place)
        if key in shown or (lines is None and limit is not None and len(chosen) >= limit):
            continue
        if lines is None:
            cost = tokens + _LINE_END + count(_window(collection, place, {}).heading) + _LINE_END
        else:
            cost = tokens + _LINE_END + (0 if line - 1 in lines or line + 1 in lines else _GAP_TOKENS)
        if used + cost > max_tokens:
            if used > max_tokens * FULL:
                break
            continue
        used += cost
        shown.add(key)
        chosen.setdefault(place, {})[line] = worth
    windows = [_window(collection, place, lines) for place, lines in chosen.items()]
    windows.sort(key=lambda window: -window.score)
    # Tokens of a whole may differ by a few from the sum over its lines; the promise is about the whole.
    while windows and count(render(windows)) > max_tokens:
        windows.pop()
    return windows


def _by_worth(collection: Collection, scored: Sequence[ScoredLine], count: Count) -> list[tuple[float, int, int]]:
    """(worth, line, tokens) of the lines in question, worthiest first."""
    weighed = []
    for found in scored:
        tokens = count(collection.lines[found.line])
        weighed.append((found.score - weights.COST * math.log(tokens + 3), found.line, tokens))
    weighed.sort(key=lambda entry: (-entry[0], entry[1]))
    return weighed


def _window(collection: Collection, place: int, lines: dict[int, float]) -> Window:
    entry = collection.entries[place]
    shown: list[str] = []
    before: int | None = None
    for line in sorted(lines):
        if before is not None and line > before + 1:
            shown.append(GAP)
        shown.append(collection.lines[line])
        before = line
    passage = entry.passage
    best = max(lines.values(), default=0.0)
    return Window(entry.message, passage.role, passage.tool, passage.is_call, "\n".join(shown), best)
