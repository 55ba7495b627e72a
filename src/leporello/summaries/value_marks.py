"""Marks behind the lines of a section that give a value: what holds since, and what the user said later of the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from leporello.ledger.ledger import Ledger
from leporello.ledger.values import Values
from leporello.summaries.handoff import ENDED, HandoffLine, LineOrigin

MOST_RELATED = 12
"""Lines of a section beside which something said later is shown."""


def marked(ledger: Ledger, covered: Collection[int], lines: Sequence[HandoffLine]) -> list[HandoffLine]:
    """The user's lines, with a mark behind each value that was replaced since.

    What was said later of the same is told by its id where it stands among the lines itself. What may be of the same
    is shown for the few lines that have most to do with it, if it is in `covered`.
    """
    values, beside = ledger.values, frozenset(line.text for line in lines)
    best = _most_related(values, covered, lines)
    return [
        replace(line, text=values.marked(line.sources[0], line.text, beside=beside, related=line in best))
        if line.sources and line.origin is LineOrigin.USER and not line.text.startswith(ENDED)
        else line
        for line in lines
    ]


def _most_related(values: Values, covered: Collection[int], lines: Iterable[HandoffLine]) -> list[HandoffLine]:
    """The lines that have most to do with something said later; each sentence is in one pair."""
    told = ((values.related_to(line.sources[0], line.text), line) for line in lines if line.sources)
    related = [(later, line) for later, line in told if later is not None and later.since in covered]
    used: set[str] = set()
    best = []
    for later, line in sorted(related, key=lambda entry: -entry[0].relation):
        if used.isdisjoint((later.sentence, line.text)):
            used |= {later.sentence, line.text}
            best.append(line)
    return best[:MOST_RELATED]
