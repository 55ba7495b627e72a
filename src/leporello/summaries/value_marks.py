"""Marks behind the lines of a section that give a value: what holds since, and what the user said later of the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from leporello.ledger.ledger import Ledger
from leporello.ledger.values import LATER
from leporello.summaries.handoff import ENDED, HandoffLine, LineOrigin


def marked(ledger: Ledger, covered: Collection[int], lines: Sequence[HandoffLine]) -> list[HandoffLine]:
    """The user's lines, with a mark behind each value that was replaced since.

    What the user said later and may be of the same is shown too, if it is in `covered`. Where it is a line itself, that
    stands directly behind, and its id is enough.
    """
    values, known = ledger.values, "\n".join(line.text for line in lines)
    told: set[int] = set()
    shown = []
    for line in lines:
        if not line.sources or line.origin is not LineOrigin.USER or line.text.startswith(ENDED):
            shown.append((line, line.text))
            continue
        number = line.sources[0]
        later = values.related_to(number, line.text)
        # A piece of a long sentence beside a rule reads as if it changed the rule.
        related = later is not None and later.since in covered and not later.text.endswith("…")
        beside = later.sentence if later and later.since in told else known
        text = values.marked(number, line.text, beside=beside, related=related)
        told.add(values.shown_beside(number, text)[0])
        joins = later is not None and f"{LATER}{later.since})" in text
        shown.append((replace(line, text=text), later.sentence if later and joins else line.text))
    return _together(shown)


def _together(lines: Sequence[tuple[HandoffLine, str]]) -> list[HandoffLine]:
    """Lines about the same directly behind each other, where the first of them stands; each with what it is about."""
    first: dict[str, int] = {}
    for place, (_, about) in enumerate(lines):
        first.setdefault(about, place)
    return [line for line, _ in sorted(lines, key=lambda entry: first[entry[1]])]
