"""What a number counts: the words beside it."""

from __future__ import annotations

import re

from leporello.summary.support.figures import Figure
from leporello.summary.support.lexicon import root
from leporello.summary.support.reading import QUOTED, Reading, Token

SMALL_COUNT = 12


def neighbours(reading: Reading, figure: Figure) -> list[str]:
    """The words that say what a number counts: the next ones, or the one right before it."""
    found: list[str] = []
    assigned = reading.text[figure.start - 1 : figure.start] == "="
    for token in [] if assigned else [token for token in reading.tokens if token.start >= figure.end][:4]:
        if token.boundary or token.name or token.text.casefold() in _APART:
            break
        found.extend(_telling(token))
    if found:
        return found
    for token in reversed([token for token in reading.tokens if token.start + len(token.text) <= figure.start][-2:]):
        if token.boundary and token.text in ":(":
            continue
        if token.boundary or token.name:
            break
        if token.content:
            return _telling(token)
        if token.text.casefold() not in _LINKS:
            break
    return []


_APART = frozenset("in on at to and after with for by or but from".split())
_LINKS = frozenset("is was of at to under on are over".split())


def _telling(token: Token) -> list[str]:
    """The keys of a word that can tell one number from another; vague words stand beside all kinds of them."""
    return [key for key in token.keys if key not in _VAGUE] if token.content else []


_VAGUE = frozenset(map(root, "take last run get need total time thing way about log use set value number".split()))


def free_figures(claim: Reading) -> list[Figure]:
    """The numbers that are no part of a name or a quotation."""
    inside = [(token.start, token.start + len(token.text)) for token in claim.names]
    inside.extend(match.span() for match in QUOTED.finditer(claim.text))
    return [figure for figure in claim.figures if not any(start <= figure.start < end for start, end in inside)]


def may_be_counted(claim: Reading, figure: Figure) -> bool:
    """Small whole numbers may be the writer's own count; a rate or a factor is measured, not counted."""
    if _RATE.match(claim.text, figure.end):
        return False
    return figure.word or (not figure.kind and figure.bare <= SMALL_COUNT and figure.bare == int(figure.bare))


_RATE = re.compile(r"\s*(?:\w+ per\b|\w+/s\b|times (?:faster|slower|as|more|less))")
