"""Every weight of the ranking, in one place.

A line's score is a sum: for each word of the query, its rarity times how near the line stands to it; plus what speaks
for the line itself. The figures were fitted on question banks over recorded sessions (docs/recall.md), then rounded.
"""

from __future__ import annotations

from leporello.recall.signs import Sign
from leporello.recall.wants import Want

OWN = 1.7
"""The word stands in the line."""
NEAR = (1.3, 1.05, 1.05, 0.85, 0.85, 0.85)
"""It stands one, two, ... lines away in the same passage."""
PARTNER = 1.7
"""It stands in the call whose result this is, or in the result of this call."""
BESIDE = 0.7
"""It stands in the same step (an assistant message with its calls and results) or in the one before or after."""
AROUND = 0.55
"""It stands two or three steps away: questions like to say what happened before or after."""
SCALE = 0.3
"""Brings rarities (0 to about 8) to the scale of the figures below."""

SMALL_PASSAGE = 15
"""Passages of more lines speak less for what stands around them: in a long listing any word occurs."""

PAIR = 0.058
"""Two neighbouring words of the query stand side by side, times their rarity."""
LENGTH = 0.47
"""Times the logarithm of the line's words: a longer line holds more, ..."""
COST = 0.5
"""... but takes more of the budget: this times the logarithm of its tokens is taken off when lines are chosen."""
CROWD = 0.3
"""Taken off a line, times the logarithm of how many lines of its passage are shown already."""
REPEATED = -1.65
"""The same line stood in the conversation before."""

USER = 1.8
ASSISTANT = 0.7
CALL = -0.7
"""Users say little, and it matters; arguments of calls are mostly code that stands elsewhere too."""

ROLE_WANTS: dict[Want, dict[str, float]] = {
    Want.USER: {"user": 2.7},
    Want.AGENT: {"assistant": 0.7},
    Want.REASON: {"assistant": 1.25, "user": 0.45},
    Want.ERROR: {"tool": 1.05},
    Want.PLACE: {"tool": 0.15},
    Want.AMOUNT: {"tool": 0.15},
}
SIGN_WANTS: dict[Want, dict[Sign, float]] = {
    Want.ERROR: {Sign.ERROR: 1.8},
    Want.PLACE: {Sign.PLACE: 0.8, Sign.PATH: 1.1},
    Want.COMMIT: {Sign.COMMIT: 0.95},
    Want.AMOUNT: {Sign.NUMBER: 0.4, Sign.AMOUNT: 2.0},
    Want.TALLY: {Sign.TALLY: 1.7},
    Want.REASON: {Sign.REASON: 0.85},
    Want.NAME: {Sign.NAME: 0.2, Sign.DEFINITION: 0.5, Sign.QUOTED: 0.25},
    Want.ADDRESS: {Sign.ADDRESS: 0.65},
    Want.COMMAND: {Sign.COMMAND: 0.75, Sign.FLAG: 0.75},
    Want.COLOUR: {Sign.COLOUR: 0.6},
    Want.VERSION: {Sign.VERSION: 0.3},
    Want.TEST: {Sign.TEST: 0.7},
    Want.DATE: {Sign.DATE: 0.25},
}
