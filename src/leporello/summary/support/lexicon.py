"""Word knowledge of the verifier, read once from the lists beside this file: opposites, synonyms, general words."""

from __future__ import annotations

import re
from dataclasses import dataclass
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
    """Words that may stand for this one."""
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
