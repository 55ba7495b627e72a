"""Values over time in a fold: lines that tell what changed, and marks behind lines that give a value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import one_line
from leporello.ledger.ledger import Ledger
from leporello.ledger.values import LATER, Change
from leporello.summaries.handoff import ENDED, HandoffLine, LineOrigin

SUBJECT_CHARS = 80


def change_lines(ledger: Ledger, covered: Collection[int]) -> list[HandoffLine]:
    """Values that were replaced, newest change first: what holds now, and what held before."""
    lines = []
    for change in ledger.values.latest():
        # The old one may stand before the fold, in the head, where nothing can be marked.
        source = next((number for number in (change.was_since, change.since) if number in covered), 0)
        if source:
            subject = one_line(change.subject, SUBJECT_CHARS)
            told = f"{subject}: now {change.value} [m{change.since}], was {change.was} until then"
            lines.append(HandoffLine(told, (source,), LineOrigin.PROGRAM))
    return lines


def read_change(line: HandoffLine) -> Change | None:
    """The change that a line of `change_lines` tells."""
    subject, now, rest = line.text.partition(": now ")
    found = _CHANGED.search(rest)
    if line.origin is not LineOrigin.PROGRAM or not line.sources or not now or found is None:
        return None
    was = rest[found.end() :].removesuffix(" until then")
    since = int(found[1])
    was_since = line.sources[0] if line.sources[0] != since else 0
    return Change(subject, rest[: found.start()], since, was, was_since, subject, "")


_CHANGED = lazy_regex(r" \[m(\d{1,9})\], was ")


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
