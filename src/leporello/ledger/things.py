"""What a sentence gives a value to, by general knowledge: "my manager is" and "I report to" are about one thing.

Two words of one thing count like a word that both sentences have; two things of one kind, such as the dentist and the
eye doctor, tell sentences apart. Some words are values of a thing and name it too: who speaks of Jenkins and later of
CircleCI speaks of one CI, and has another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct

from leporello.files import shipped
from leporello.ledger.sentence_pieces import UNSPACED, plain_words

_EDGES = " \t\"'`.,;:!?()[]{}<>«»„“”‘’¿¡…*_"
_OWNER = ("'s", "’s")
SAME_KIND, PEOPLE, VALUE = "~", "+", "="
_NOTHING: frozenset[str] = frozenset()
_LATIN, LONGEST_FORM = "\u024f", 7

_ByWord = dict[str, frozenset[str]]
_Key = TypeVar("_Key")


class Named(Struct, frozen=True):
    """What a sentence names."""

    things: frozenset[str]
    """As `@kind.thing`."""
    values: frozenset[tuple[str, str]]
    """Things with a word that is a value of them."""


class _Known(Struct, frozen=True):
    """Things by the words that name them."""

    words: _ByWord
    pairs: dict[tuple[str, str], frozenset[str]]
    unspaced: dict[str, tuple[tuple[str, frozenset[str], bool], ...]]
    """Of scripts without blanks by the first character, with whether the word is a value."""
    values: _ByWord
    """Words that are values of things."""
    pair_values: dict[tuple[str, str], frozenset[str]]
    proper: _ByWord
    """Words that are values where they begin with a capital letter, and mean something else where they don't."""


@lru_cache(maxsize=4096)
def named_in(text: str) -> Named:
    """The things a sentence names, and their values that it does."""
    known = _known()
    found: set[str] = set()
    values: set[tuple[str, str]] = set()
    written = text.split()
    words = [_form(word.casefold()) for word in written]
    for word, given in zip(words, written, strict=True):
        found |= known.words.get(word, _NOTHING)
        of = known.values.get(word, _NOTHING)
        if word in known.proper and given.strip(_EDGES)[:1].isupper():
            of |= known.proper[word]
        if of:
            found |= of
            values.update((thing, word) for thing in of)
    for pair in pairwise(words):
        found |= known.pairs.get(pair, _NOTHING)
        for thing in known.pair_values.get(pair, _NOTHING):
            found.add(thing)
            values.add((thing, " ".join(pair)))
    if max(text, default="") > UNSPACED:
        for place, sign in enumerate(text):
            for word, things, is_value in known.unspaced.get(sign, ()):
                if text.startswith(word, place):
                    found |= things
                    values.update((thing, word) for thing in things if is_value)
    return Named(frozenset(found), frozenset(values))


def things_in(text: str) -> frozenset[str]:
    """The things a sentence names, as `@kind.thing`."""
    return named_in(text).things


def others_of_a_kind(ones: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sentences name different things of one kind, and none of that kind in common."""
    mine, theirs = _by_kind(ones), _by_kind(others)
    return any(mine[kind].isdisjoint(theirs[kind]) for kind in mine.keys() & theirs.keys())


def other_value(ones: frozenset[tuple[str, str]], others: frozenset[tuple[str, str]]) -> bool:
    """Whether the other sentence gives a thing another value than the one: CircleCI after Jenkins."""
    mine = {thing for thing, _ in ones}
    return any(thing in mine and (thing, word) not in ones for thing, word in others)


def somebody_else(ones: frozenset[str], others: frozenset[str]) -> bool:
    """Whether the other sentence names people that the one does not."""
    return any(thing[1] == PEOPLE for thing in others - ones)


def _by_kind(things: frozenset[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for thing in things:
        kind = thing.partition(".")[0]
        if kind[1] != SAME_KIND:
            found[kind].add(thing)
    return found


@lru_cache(maxsize=65_536)
def _form(word: str) -> str:
    """A word as it is compared; with its accents, without which words of one language are those of another."""
    word = word.strip(_EDGES)
    word = word[:-2] if word.endswith(_OWNER) else word
    plain = plain_words(word) if word else ()
    if word.isascii() or word[0] > _LATIN:
        return plain[0] if plain else word
    return word.removesuffix("s")[:LONGEST_FORM]


@cache
def _known() -> _Known:
    words: dict[str, set[str]] = defaultdict(set)
    values: dict[str, set[str]] = defaultdict(set)
    proper: dict[str, set[str]] = defaultdict(set)
    pairs: dict[tuple[str, str], set[str]] = defaultdict(set)
    pair_values: dict[tuple[str, str], set[str]] = defaultdict(set)
    unspaced: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    unspaced_values: set[str] = set()
    lines = shipped("leporello.ledger", "things.txt").decode().splitlines()
    for number, line in enumerate(line for line in lines if line and not line.startswith("#")):
        sign = line[0] if line[0] in (SAME_KIND, PEOPLE) else ""
        for place, told in enumerate(line.removeprefix(sign).split("|")):
            thing = f"@{sign}{number}.{place}"
            for listed in told.split():
                is_value = listed.startswith(VALUE)
                given = listed.removeprefix(VALUE)
                one, _, other = given.casefold().partition("_")
                if one[0] > UNSPACED:
                    unspaced[one[0]][one].add(thing)
                    unspaced_values.update([one] if is_value else ())
                elif other:
                    (pair_values if is_value else pairs)[_form(one), _form(other)].add(thing)
                else:
                    table = proper if is_value and given[0].isupper() else values if is_value else words
                    table[_form(one)].add(thing)
    return _Known(
        _frozen(words),
        _frozen(pairs),
        {
            sign: tuple((word, frozenset(things), word in unspaced_values) for word, things in found.items())
            for sign, found in unspaced.items()
        },
        _frozen(values),
        _frozen(pair_values),
        _frozen(proper),
    )


def _frozen(table: Mapping[_Key, set[str]]) -> dict[_Key, frozenset[str]]:
    return {key: frozenset(things) for key, things in table.items()}
