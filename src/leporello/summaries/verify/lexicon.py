"""What the verifier knows about words: opposites, synonyms, general words.

What says that something has happened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

from leporello.text_features.words import STOP_WORDS, stem


@dataclass(frozen=True, slots=True)
class Side:
    """One answer to one question: `passed` is side 0 of its line of opposites, `failed` side 1."""

    axis: int
    side: int
    sides: int


_EED = re.compile(r"([a-z]+eed)(?:s|ed|ing)?")
"""Verbs whose own end looks like an ending."""


def _lines(name: str) -> list[str]:
    text = files(__package__).joinpath(name).read_text("utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


@cache
def _opposites() -> dict[str, tuple[Side, ...]]:
    found: dict[str, dict[Side, None]] = {}
    for axis, line in enumerate(_lines("opposites.txt")):
        answers = line.split("|")
        for side, words in enumerate(answers):
            for word in words.split():
                found.setdefault(root(word), {})[Side(axis, side, len(answers))] = None
    return {word: tuple(sides) for word, sides in found.items()}


@cache
def _synonyms() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _lines("synonyms.txt"):
        words = {root(word) for word in line.split()}
        for word in words:
            found.setdefault(word, set()).update(words)
    for line in _lines("opposites.txt"):
        for answer in line.split("|"):
            words = {root(word) for word in answer.split()}
            for word in words:
                found.setdefault(word, set()).update(words)
    return {word: frozenset(words - {word}) for word, words in found.items()}


@cache
def _general() -> frozenset[str]:
    words = {root(word) for line in _lines("general.txt") for word in line.split()}
    return frozenset(words | {root(word) for word in STOP_WORDS})


@cache
def _irregular() -> dict[str, str]:
    return {form.rstrip("*"): line.split()[0] for line in _lines("irregular.txt") for form in line.split()[1:]}


@cache
def past_forms() -> frozenset[str]:
    """Irregular forms that say that something happened."""
    return frozenset(form for line in _lines("irregular.txt") for form in line.split()[1:] if not form.endswith("*"))


@cache
def root(word: str) -> str:
    """The form under which a word is compared: lower case, English endings off, irregular forms folded."""
    lowered = word.casefold()
    verb = _EED.fullmatch(lowered)
    if verb:
        return verb[1]
    return stem(_irregular().get(lowered, lowered))


def sides_of(key: str) -> tuple[Side, ...]:
    """The opposites a word takes part in."""
    return _opposites().get(key, ())


@cache
def words_of(axis: int) -> frozenset[str]:
    """All words that give an answer to one question."""
    return frozenset(word for word, sides in _opposites().items() if any(side.axis == axis for side in sides))


def synonyms_of(key: str) -> frozenset[str]:
    return _synonyms().get(key, frozenset())


def has_synonyms(key: str) -> bool:
    """Whether it is known which words may stand for this one."""
    return key in _synonyms()


@cache
def _consequences() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(root(word) for word in line.split()) for line in _lines("consequences.txt"))


@cache
def consequences_of(word: str) -> tuple[frozenset[str], ...]:
    """The groups of words that tell of the same consequence as a word, or as a part of a Chinese one."""
    if word.isascii():
        return tuple(group for group in _consequences() if root(word) in group)
    return tuple(group for group in _consequences() if any(part in word for part in group if not part.isascii()))


@cache
def in_other_script(key: str) -> frozenset[str]:
    """Words of the same side in the other script: 通过 for pass."""
    mine = {(side.axis, side.side) for side in sides_of(key)}
    return frozenset(
        word
        for word, sides in _opposites().items()
        if word.isascii() != key.isascii() and any((side.axis, side.side) in mine for side in sides)
    )


def is_general(key: str) -> bool:
    """Whether a word carries no fact of its own."""
    return key in _general()


class ClaimStatus(StrEnum):
    DONE = "done"
    PLANNED = "planned"
    AHEAD = "ahead"
    """Plainly still to come, not only wanted or intended."""
    DOUBTED = "doubted"


def _any(english: str, chinese: str) -> re.Pattern[str]:
    """One pattern of the words in a block, a line at a time, and of some Chinese ones."""
    return re.compile(rf"\b(?:{'|'.join(english.split(chr(10))[1:-1]).replace('    ', '')})\b|{chinese}", re.IGNORECASE)


_PLANNED = _any(
    r"""
    will|'ll|won't|shall|would|should|must|i'd
    going to|gonna|about to|yet to|to do|todo|to be \w+ed
    (?:plan(?:s|ned)?|intend(?:s|ed)?|want(?:s|ed)?|ask(?:s|ed)?|needs?|has|have) to
    let me|let's|lets|please|wants?|asked for
    next(?: steps?)?|pending|later|tomorrow|soon|upcoming|scheduled|planned|remain(?:s|ing)|not yet|still (?:open|to)
    proposed?|suggest(?:s|ed)?
    """,
    "将要?|会|计划|打算|准备|即将|待|下一步|需要|应该|想要|希望|要求|请|还没|尚未|未来",
)
_AHEAD = _any(
    r"""
    will|'ll|going to|about to|yet to|to be \w+ed|plans? (?:is|are)? ?to|scheduled (?:to|for)|due to be
    still running|still in progress|in progress|ongoing|underway|under way|gave up|given up|in vain
    unfinished|half[- ]done|halfway
    (?:began|begun|started|tried|attempted) to|without success|abandoned
    (?:still )?(?:has|have|needs?) to be
    still (?:to|has to|needs to)
    next|tomorrow|upcoming
    """,
    "将要?|即将|待|下一步|尚未|还没",
)
_DOUBTED = _any(
    r"""
    might|maybe|perhaps|possibly|probably|presumably|apparently|likely
    unsure|not sure|unclear|could be|seems? to|may (?:be|have)
    """,
    "可能|也许|或许|大概|似乎|不确定",
)
_DONE = _any(
    r"""
    was|were|has been|have been|had|done|already|finished|completed?
    (?:has|have) \w+ed
    now \w+s
    """,
    r"已经?|了(?=[，。、；！\s]|$)|完成|✓|✅",
)
_PAST = re.compile(r"\b[a-z]{2,}ed\b", re.IGNORECASE)
_NOT_PAST = frozenset(
    "need feed seed speed embed indeed exceed proceed succeed bed red led shed based named called".split()
)


def statuses_of(text: str) -> frozenset[ClaimStatus]:
    """Everything a sentence says about whether something happened."""
    found = {
        status
        for status, pattern in (
            (ClaimStatus.PLANNED, _PLANNED),
            (ClaimStatus.AHEAD, _AHEAD),
            (ClaimStatus.DOUBTED, _DOUBTED),
        )
        if pattern.search(text)
    }
    lowered = text.casefold()
    past = set(_PAST.findall(lowered)) - _NOT_PAST
    if past or _DONE.search(text) or not past_forms().isdisjoint(lowered.split()):
        found.add(ClaimStatus.DONE)
    return frozenset(found)
