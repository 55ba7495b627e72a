"""Is a claim plainly what one or two sentences say? Every word of it must be accounted for.

The judge finds what contradicts a claim; much that is wrong contradicts nothing it knows. So a claim stays in its own
words only when nothing in it is new: each name, number, word and small word that bears meaning stands in one or two
segments, or one that is known to mean the same, and what they doubt, plan or deny is not told as a fact.
"""

from __future__ import annotations

from collections.abc import Sequence

from leporello.summary.support.counts import free_figures
from leporello.summary.support.evidence import Evidence, Segment, fold
from leporello.summary.support.figures import any_same
from leporello.summary.support.lexicon import in_other_script, root, synonyms_of
from leporello.summary.support.nearest import holds_name
from leporello.summary.support.reading import NEGATORS, Reading, Token, read
from leporello.summary.support.status import Status

_MARKS = NEGATORS | frozenset(
    """
    after again all any before both could each if many may might more most must off once only should since some still
    under until while will without would yet over because unless always
    """.split()
)
"""Small words that change what is said."""
_OF_TOOLS = frozenset(map(root, "test run suite result command file commit error exit code output".split()))
"""What a claim may call the things that tools deal with."""
MOST_SOURCES = 2
LEAST_ADDED = 2
"""Words that a second sentence must account for: a single one may have been put in the place of another. Tools print a
name here and a number there, so one of these is enough."""


def telling(claim: Reading) -> list[Token]:
    """The words, names, numbers and small words of a claim that must be accounted for."""
    return [token for token in claim.tokens if _must_be_told(token, claim)]


def unaccounted(claim: Reading, left: list[Token], segments: Sequence[Segment], evidence: Evidence) -> list[str]:
    """The words of a claim, of those given, that the best one or two segments don't account for."""
    chosen: list[Segment] = []
    for _ in range(MOST_SOURCES):
        beside = [s for s in segments if not chosen or (s is not chosen[0] and _together(s, chosen[0], evidence))]
        rated = [(_left(left, claim, segment, evidence), segment) for segment in beside]
        if not rated:
            break
        rest, best = min(rated, key=lambda entry: len(entry[0]))
        added = [token for token in left if token not in rest]
        if chosen and len(added) < (LEAST_ADDED if best.role not in _OF_CALLS or _only_words(added) else 1):
            break
        left = rest
        chosen.append(best)
        if not left:
            break
    if not chosen:
        return ["everything"] if claim.content else []
    if not left and _unlike(claim, chosen):
        return ["status"]
    return [token.text for token in left]


def _must_be_told(token: Token, claim: Reading) -> bool:
    if token.text.casefold() == "all" and claim.text[token.start + 4 : token.start + 5].isdigit():
        # Whether a number is all there is, is judged with the numbers.
        return False
    return bool(token.keys) and (
        token.name or token.content or token.key[:1].isdigit() or token.text.casefold() in _MARKS
    )


def _only_words(tokens: Sequence[Token]) -> bool:
    return all(token.content for token in tokens)


def _together(one: Segment, other: Segment, evidence: Evidence) -> bool:
    """Whether two segments are parts of one message, or of a call and its results."""
    return one.number == other.number or (
        one.role in _OF_CALLS and other.role in _OF_CALLS and one.number in evidence.groups((other.number,))
    )


_OF_CALLS = ("call", "tool")


def _left(tokens: Sequence[Token], claim: Reading, segment: Segment, evidence: Evidence) -> list[Token]:
    """The words that a segment doesn't account for."""
    source = read(segment.text)
    known = {key for token in source.tokens for key in token.keys}
    given = _OF_TOOLS | evidence.called(segment.number) if segment.role in _OF_CALLS else frozenset()
    text = fold(segment.text)
    denies = any(token.negated or token.text.casefold() in NEGATORS for token in source.tokens)
    return [
        token
        for token in tokens
        if not (
            token.key in given
            or (denies and token.text.casefold() in NEGATORS)
            or _told(token, claim, source, known, text)
        )
    ]


def _told(token: Token, claim: Reading, source: Reading, known: set[str], text: str) -> bool:
    if token.name:
        return holds_name(token.text, (text,)) or token.key in known
    figure = next((f for f in free_figures(claim) if f.start <= token.start < f.end), None)
    if figure is not None:
        return any_same(figure, source.figures)
    return all(key in known or not known.isdisjoint(synonyms_of(key) | in_other_script(key)) for key in token.keys)


def _unlike(claim: Reading, segments: Sequence[Segment]) -> bool:
    """Whether a claim tells as a fact what its sources doubt or plan, or as a plan what they don't."""
    readings = [(segment.role, read(segment.text).statuses) for segment in segments]
    if Status.DOUBTED not in claim.statuses and any(Status.DOUBTED in statuses for _, statuses in readings):
        return True
    if Status.PLANNED in claim.statuses:
        return not any(role == "user" or Status.PLANNED in statuses for role, statuses in readings)
    if Status.DONE in claim.statuses:
        return not any(role in ("tool", "call") or Status.DONE in statuses for role, statuses in readings)
    return False
