"""Nearly the same words: when a claim repeats a sentence of the turns, every difference counts.

A word for another of the same meaning, a moved clause, a number in another format are harmless. A "not" more or less,
an opposite, another name or number in its place are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from leporello.summary.support.figures import Figure, same
from leporello.summary.support.lexicon import root, sides_of, synonyms_of
from leporello.summary.support.reading import DOUBTING, NEGATORS, Reading, Token

ALIKE = 0.7
MOVED = 0.85
NEARLY_AS_ALIKE = 0.93
LEAST_WORDS = 4
MOST_WORDS = 150


def faithful(claim: Reading, passages: Sequence[Reading]) -> bool | None:
    """Whether a claim repeats a passage without a difference that matters; None when it repeats none."""
    mine = _words(claim)
    if not LEAST_WORDS <= len(mine) <= MOST_WORDS:
        return None
    compared = []
    for passage in passages:
        theirs = _words(passage)
        if not len(mine) / 3 <= len(theirs) <= MOST_WORDS:
            continue
        matcher = SequenceMatcher(None, [word.key for word in theirs], [word.key for word in mine], autojunk=False)
        in_order = sum(block.size for block in matcher.get_matching_blocks())
        in_all = sum((Counter(word.key for word in mine) & Counter(word.key for word in theirs)).values())
        if in_order >= ALIKE * len(mine) or in_all >= MOVED * len(mine):
            compared.append((in_all / len(mine), matcher, theirs, passage))
    if not compared:
        return None
    best = max(share for share, *_ in compared)
    alike = [entry for entry in compared if entry[0] >= NEARLY_AS_ALIKE * best]
    return any(not _matters(matcher, theirs, mine, passage, claim) for _, matcher, theirs, passage in alike)


def _words(reading: Reading) -> list[Token]:
    return [token for token in reading.tokens if token.keys]


def _matters(
    matcher: SequenceMatcher[str], theirs: list[Token], mine: list[Token], passage: Reading, claim: Reading
) -> bool:
    gone: list[Token] = []
    come: list[Token] = []
    for tag, start, stop, begin, end in matcher.get_opcodes():
        if tag == "equal":
            continue
        old, new = theirs[start:stop], mine[begin:end]
        if tag == "replace" and _replaced(old, _not_moved(new, old, passage), passage, claim):
            return True
        gone.extend(old)
        come.extend(new)
    # What is moved is gone in one place and comes in another; what is left has really changed.
    lost, gained = _difference(gone, come), _difference(come, gone)
    return _turned(lost, gained) or _rescaled(lost, gained) or _changed(lost, gained, passage, claim)


def _not_moved(new: list[Token], old: list[Token], passage: Reading) -> list[Token]:
    """The words of a longer piece that don't stand elsewhere in the passage: those were only moved."""
    if len(new) == len(old) == 1:
        return new
    known = {token.key for token in passage.tokens}
    return [word for word in new if word.key not in known]


def _replaced(old: list[Token], new: list[Token], passage: Reading, claim: Reading) -> bool:
    """Whether a word has become another one that changes the meaning."""
    for word in new:
        if any(word.key == other.key or word.key in synonyms_of(other.key) for other in old):
            continue
        if _changed(old, [word], passage, claim):
            return True
        if len(old) == len(new) and word.content and any(other.content for other in old):
            return True
    return False


def _changed(old: list[Token], new: list[Token], passage: Reading, claim: Reading) -> bool:
    """Whether an opposite, another name or another number has come for what was there."""
    for word in new:
        for other in old:
            if _opposites(word.key, other.key) or _other_number(word, other, passage, claim):
                return True
            if word.name and other.name and not _one_name(word.key, other.key):
                return True
    return False


def _difference(words: list[Token], others: list[Token]) -> list[Token]:
    left = Counter(other.key for other in others)
    kept = []
    for word in words:
        if left[word.key]:
            left[word.key] -= 1
        else:
            kept.append(word)
    return kept


def _opposites(one: str, other: str) -> bool:
    if one in (f"un{other}", f"non{other}") or other in (f"un{one}", f"non{one}"):
        return True
    others = sides_of(other)
    return any(a.axis == b.axis and a.side != b.side for a in sides_of(one) for b in others)


def _one_name(one: str, other: str) -> bool:
    return one.endswith(other) or other.endswith(one) or one.startswith(other) or other.startswith(one)


def _other_number(word: Token, other: Token, passage: Reading, claim: Reading) -> bool:
    mine, theirs = _figure(word, claim), _figure(other, passage)
    return mine is not None and theirs is not None and not same(mine, theirs)


def _figure(word: Token, reading: Reading) -> Figure | None:
    return next((figure for figure in reading.figures if figure.start <= word.start < figure.end), None)


def _turned(lost: list[Token], gained: list[Token]) -> bool:
    """Whether a negation went or came, or a doubt or a condition went."""
    if _marks(lost, NEGATORS) != _marks(gained, NEGATORS):
        return True
    return any(_marks(lost, marks) > _marks(gained, marks) for marks in (DOUBTING, _CONDITIONS))


_CONDITIONS = frozenset(("if", "unless"))
_SCALES = tuple(
    frozenset(line.split())
    for line in (
        "all every each both some several few many most any none only half hardly",
        "first second third fourth fifth last next previous",
        "once twice thrice again",
        "now still already yet formerly previously currently recently soon later earlier always never often sometimes",
        "must may should shall can could might will would",
        "today yesterday tomorrow morning evening week month year",
    )
)
"""Little words that place something among others of its kind: one for another changes what is said."""


def _rescaled(lost: list[Token], gained: list[Token]) -> bool:
    for scale in _SCALES:
        old = {word.text.casefold() for word in lost} & scale
        new = {word.text.casefold() for word in gained} & scale
        if old and new and not any(root(b) in synonyms_of(root(a)) for a in old for b in new):
            return True
    return False


def _marks(words: list[Token], marks: frozenset[str]) -> int:
    return sum(
        word.text.casefold().replace("’", "'") in marks or (marks is NEGATORS and word.denying) for word in words
    )
