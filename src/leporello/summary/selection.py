"""Filling a token budget with the units that are worth most, and showing what was chosen in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from leporello.ledger.importance import LINE_OVERHEAD
from leporello.ledger.ranking import RankedUnit

CountText = Callable[[str], int]
ENTRY_OVERHEAD = 7
"""Bullet, id and newline of an entry."""
FOCUS_SHARE = 0.65
GAP = "[…]"


@dataclass(slots=True)
class Pick:
    """Chosen units by message, and what they cost."""

    units: dict[int, list[RankedUnit]] = field(default_factory=lambda: defaultdict(list))
    tokens: int = 0

    def numbers(self) -> list[int]:
        """The messages something was chosen from, in order."""
        return sorted(self.units)

    def text(self, number: int, *, gaps: bool) -> str:
        """The chosen units of a message in their order; `gaps` marks where something is left out between them."""
        chosen = sorted(self.units[number], key=lambda unit: unit.position)
        out: list[str] = []
        before = -1
        for unit in chosen:
            if gaps and unit.position != before + 1:
                out.append(GAP)
            out.append(unit.text)
            before = unit.position
        return "\n".join(out)


def choose(
    ranked: Iterable[RankedUnit],
    budget: int,
    count: CountText,
    *,
    focus: Collection[str] = (),
    taken: Collection[str] = (),
) -> Pick:
    """The first candidates within a budget; they come in the order of their worth.

    Texts in `taken` already stand elsewhere in the handoff. With a focus all of them are read.
    """
    pick = Pick()
    seen = set(taken)
    if focus:
        ranked = list(ranked)
        words = [word.casefold() for word in focus]
        about = [c for c in ranked if any(word in c.text.casefold() for word in words)]
        _fill(pick, about, int(budget * FOCUS_SHARE), count, seen)
    _fill(pick, ranked, budget, count, seen)
    return pick


def _fill(pick: Pick, ranked: Iterable[RankedUnit], budget: int, count: CountText, seen: set[str]) -> None:
    misses = 0
    for candidate in ranked:
        if candidate.text in seen:
            continue
        cost = count(candidate.text) + LINE_OVERHEAD
        if candidate.number not in pick.units:
            cost += ENTRY_OVERHEAD + (count(candidate.heading) if candidate.heading else 0)
        if pick.tokens + cost > budget:
            misses += 1
            # Nearly full: only small pieces could still enter, and looking for them costs more than they bring.
            if misses > 50 or pick.tokens > budget * 0.99:
                return
            continue
        seen.add(candidate.text)
        pick.units[candidate.number].append(candidate)
        pick.tokens += cost
