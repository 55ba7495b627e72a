"""Carrying on an earlier summary that nobody vouches for: its lines stay in their sections, marked.

Each line's source becomes the message that carries the summary: whatever ids the summary names, they are not ours.
What a summary says of a passing moment (active task, state, remaining work) is left out, as it is of our own folds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from leporello.ledger.facts import EarlierLine, earlier_line
from leporello.ledger.ledger import Ledger
from leporello.redact import PLACEHOLDER, redact, redact_spans
from leporello.summaries.handoff import ENDED, Handoff, HandoffLine, LineOrigin, Section
from leporello.summaries.sections import ROOT_LINE, CountText, within

PASSING = (Section.ACTIVE_TASK, Section.STATE, Section.REMAINING)
STATED = (Section.GOAL, Section.CONSTRAINTS, Section.COMPLETED, Section.PENDING, Section.FILES, Section.PINNED)
"""Sections with a share of their own in a fold; the lines of all others compete for room with other quotations."""


def take_over(ledger: Ledger, number: int, handoff: Handoff) -> None:
    """Put an unverified summary into the ledger under the number of the message that carries it."""
    add(ledger, number, [(section, line) for section, line in _masked(handoff.lines()) if section not in PASSING])


def _masked(lines: Iterable[tuple[Section, HandoffLine]]) -> list[tuple[Section, HandoffLine]]:
    """Lines of somebody's summary without secrets; a secret that runs over several of them is masked in each."""
    told = list(lines)
    spans = redact_spans("\n".join(line.text for _, line in told))
    masked = []
    start = 0
    for section, line in told:
        end = start + len(line.text)
        text = line.text
        for span in reversed(spans):
            if span.start < end and span.end > start:
                text = text[: max(0, span.start - start)] + PLACEHOLDER + text[min(len(text), span.end - start) :]
        masked.append((section, replace(line, text=redact(text))))
        start = end + 1
    return masked


def add(ledger: Ledger, number: int, lines: Iterable[tuple[Section, HandoffLine]]) -> None:
    """Put unverified lines of one summary into the ledger; what it says twice counts once."""
    made: dict[tuple[str, str], EarlierLine] = {}
    root = ""
    for section, line in lines:
        text = line.text
        if section is Section.FILES:
            if text.startswith(ROOT_LINE):
                root = text.removeprefix(ROOT_LINE)
                continue
            text = text if text.startswith("/") else root + text
        if text.strip():
            is_rule = section is Section.CONSTRAINTS
            told = earlier_line(
                ledger.vocabulary, section.value, _role(section, line), text, len(made), is_rule=is_rule
            )
            made.setdefault((section.value, text), told)
    ledger.earlier[number] = tuple(made.values())


def _role(section: Section, line: HandoffLine) -> str:
    if section in STATED:
        return ""
    if section is Section.USER_SAID:
        return "user"
    return "tool" if section is Section.INDEX and line.origin is LineOrigin.TOOL else "assistant"


def stated(ledger: Ledger, covered: Collection[int], section: Section) -> list[HandoffLine]:
    """The unverified lines of a section, oldest summary first; what stands in the list itself is not said twice."""
    known = {rule.text for rule in ledger.rules}
    standing = {rule.text for rule in ledger.active_rules}
    found: dict[str, HandoffLine] = {}
    for number, lines in sorted(ledger.earlier.items()):
        for line in lines if number in covered else ():
            revoked = line.text.partition(": ")[2] if line.text.startswith(ENDED) else ""
            if line.section == section.value and line.text not in known and revoked not in standing:
                found.setdefault(line.text, HandoffLine(line.text, (number,), LineOrigin.UNVERIFIED))
    return list(found.values())


def beside(
    lines: Sequence[HandoffLine], earlier: Sequence[HandoffLine], budget: int, count: CountText
) -> list[HandoffLine]:
    """The lines of a section after the unverified ones, which get what room the others leave."""
    used = sum(count(line.text) + 6 for line in lines)
    return [*within(earlier, budget - used, count, newest_first=True), *lines]
