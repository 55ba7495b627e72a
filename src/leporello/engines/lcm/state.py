"""Writing the state: what changes from one compaction to the next, and what became important only later.

It stands behind the nodes. The rules and requests in it are the registry's, word for word; the rest of its room goes to
the most valuable pieces of the whole folded history that no node quotes. So a fact that nobody could know to matter
when its node was written comes back as soon as the conversation turns to it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from leporello.engines.lcm.nodes import Desk, said
from leporello.ledger.ranking import Ranking
from leporello.summaries.deterministic import USER_SHARE, QuotationBudget, merge, plain_sections, quotations
from leporello.summaries.handoff import Handoff, Section, joined, render
from leporello.summaries.summary_tree import SummaryNode

ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Shelf:
    """Tokens of everything that is folded, and the share of them that the state may use now."""

    whole: int
    state: int


def plain(desk: Desk, covered: Collection[int], whole: int) -> Handoff:
    """Rules, requests, files and open work, with the shares of the whole that they have in any fold."""
    facts = plain_sections(desk.ledger, covered, whole, desk.count)
    return Handoff({section: lines for section, lines in facts.sections.items() if section is not Section.COMPLETED})


def write(
    desk: Desk, covered: Collection[int], nodes: Collection[SummaryNode], shelf: Shelf, passing: Handoff
) -> Handoff:
    """The state's handoff within its tokens."""
    facts = merge(plain(desk, covered, shelf.whole), passing)
    taken = said(nodes) | {rule.text for rule in desk.ledger.rules}
    fixed = desk.count(render(facts))
    spoken = sum(desk.count(line.text) for node in nodes for line in node.handoff[Section.USER_SAID])
    user = max(0, int(shelf.whole * USER_SHARE) - spoken)
    room = float(shelf.state - fixed)
    handoff = facts
    ranking = Ranking(desk.ledger, covered)
    for _ in range(ROUNDS):
        size = QuotationBudget(max(0, int(room)), user)
        words = quotations(desk.ledger, ranking, size, desk.count, focus=desk.focus, taken=taken)
        handoff = joined(facts, words)
        tokens = desk.count(render(handoff))
        if tokens <= shelf.state:
            return handoff
        room -= (tokens - shelf.state) * 1.1 + 1
    return facts if room < 0 else handoff
