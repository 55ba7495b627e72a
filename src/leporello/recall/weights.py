"""Every weight of the ranking, in one place.

A line's score is a sum: for each word of the query, its rarity times how near the line stands to it; plus what speaks
for the line itself. The figures were fitted on question banks over recorded sessions (docs/recall.md), then rounded.
"""

from __future__ import annotations

from leporello.recall.signs import Sign
from leporello.recall.wants import Want

OWN = 2.25
"""The word stands in the line."""
NEAR = (1.2, 1.1, 1.1)
"""It stands one, two, three lines away in the same passage."""
PARTNER = 2.0
"""It stands in the call whose result this is, or in the result of this call."""
BESIDE = 0.92
"""It stands in the same step (an assistant message with its calls and results) or in the one before or after."""
AROUND = 0.35
"""It stands two or three steps away: questions like to say what happened before or after."""
SCALE = 0.3
"""Brings rarities (0 to about 8) to the scale of the figures below."""

SMALL_PASSAGE = 15
"""Passages of more lines speak less for what stands around them: in a long listing any word occurs."""

LENGTH = 0.22
"""Times the logarithm of the line's words: a longer line holds more, ..."""
COST = 0.6
"""... but takes more of the budget: this times the logarithm of its tokens is taken off when lines are chosen."""
CROWD = 0.3
"""Taken off a line, times the logarithm of how many lines of its passage are shown already."""
REPEATED = -2.2
"""The same line stood in the conversation before."""

USER = 1.95
ASSISTANT = 1.15
CALL = -1.0
"""Users say little, and it matters; arguments of calls are mostly code that stands elsewhere too."""

ROLE_WANTS: dict[Want, dict[str, float]] = {
    Want.USER: {"user": 3.3},
    Want.RULE: {"user": 1.05},
    Want.AGENT: {"assistant": 1.0},
    Want.REASON: {"assistant": 0.85, "tool": -0.75},
    Want.ERROR: {"tool": 1.3, "assistant": -0.35},
    Want.COMMIT: {"tool": 0.3},
    Want.EVENT: {"tool": 0.2},
}
SIGN_WANTS: dict[Want, dict[Sign, float]] = {
    Want.ERROR: {Sign.ERROR: 2.2},
    Want.EVENT: {Sign.ERROR: 0.1},
    Want.PLACE: {Sign.PLACE: 1.3, Sign.PATH: 1.5},
    Want.DEFINITION: {Sign.DEFINITION: 0.55, Sign.PLACE: 0.7},
    Want.COMMIT: {Sign.COMMIT: 1.9},
    Want.AMOUNT: {Sign.NUMBER: 0.4, Sign.AMOUNT: 1.7, Sign.TALLY: 0.95},
    Want.TALLY: {Sign.TALLY: 2.0},
    Want.REASON: {Sign.REASON: 0.6},
    Want.RULE: {Sign.RULE: 0.65},
    Want.NAME: {Sign.NAME: 0.5, Sign.DEFINITION: 0.35},
    Want.ADDRESS: {Sign.ADDRESS: 1.1},
    Want.COMMAND: {Sign.COMMAND: 0.4, Sign.FLAG: 0.9},
    Want.COLOUR: {Sign.COLOUR: 1.0},
    Want.VERSION: {Sign.VERSION: 1.0},
    Want.TEST: {Sign.TEST: 1.1},
    Want.DATE: {Sign.DATE: 0.3},
}
