"""Lines of earlier summaries that nobody vouches for.

They are carried on beside what the ledger knows itself and never become part of it: no rule, request, pin, file or
action is made of them, and none is ended by them. The user's own words still end what they say is a rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from leporello.ledger import importance
from leporello.ledger.facts import UnitFacts
from leporello.ledger.signals import identifiers


@dataclass(frozen=True, slots=True)
class EarlierLine:
    """One line, with the section it stood in."""

    section: str
    role: str
    """Whose words it says it is, by which it is weighed against other quotations; empty for a plain statement."""
    unit: UnitFacts
    is_rule: bool = False
    """Whether it says it is a rule: what the user takes back is no longer carried on."""

    @property
    def text(self) -> str:
        """What it says."""
        return self.unit.text


def earlier_line(section: str, role: str, text: str, position: int, *, is_rule: bool = False) -> EarlierLine:
    """The line with its importance, as far as it is known at once."""
    odds = importance.weigh(importance.text_features(text, role, 0, 1)) if role else 0.0
    return EarlierLine(section, role, UnitFacts(text, position, odds, identifiers(text)), is_rule)
