"""What a sentence gives a value to, by general knowledge: "my manager is" and "I report to" are about one thing.

Two words of one thing count like a word that both sentences have; two things of one kind, such as the dentist and the
eye doctor, tell sentences apart.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache, lru_cache
from itertools import pairwise

from msgspec import Struct

from leporello.files import shipped
from leporello.ledger.sentence_pieces import UNSPACED, plain_words

_EDGES = " \t\"'`.,;:!?()[]{}<>«»„“”‘’¿¡…*_"
_OWNER = ("'s", "’s")
SAME_KIND, PEOPLE = "~", "+"
_NOTHING: frozenset[str] = frozenset()
_LATIN, LONGEST_FORM = "\u024f", 7


class _Known(Struct, frozen=True):
    """Things by the words that name them."""

    words: dict[str, frozenset[str]]
    pairs: dict[tuple[str, str], frozenset[str]]
    unspaced: dict[str, tuple[tuple[str, frozenset[str]], ...]]
    """Of scripts without blanks by the first character."""


@lru_cache(maxsize=4096)
def things_in(text: str) -> frozenset[str]:
    """The things a sentence names, as `@kind.thing`."""
    known = _known()
    found: set[str] = set()
    words = [_form(word) for word in text.casefold().split()]
    for word in words:
        found |= known.words.get(word, _NOTHING)
    for pair in pairwise(words):
        found |= known.pairs.get(pair, _NOTHING)
    if max(text, default="") > UNSPACED:
        for place, sign in enumerate(text):
            for word, things in known.unspaced.get(sign, ()):
                if text.startswith(word, place):
                    found |= things
    return frozenset(found)


def others_of_a_kind(ones: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sentences name different things of one kind, and none of that kind in common."""
    mine, theirs = _by_kind(ones), _by_kind(others)
    return any(mine[kind].isdisjoint(theirs[kind]) for kind in mine.keys() & theirs.keys())


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
    words: dict[str, frozenset[str]] = {}
    pairs: dict[tuple[str, str], frozenset[str]] = {}
    unspaced: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    lines = shipped("leporello.ledger", "things.txt").decode().splitlines()
    for number, line in enumerate(line for line in lines if line and not line.startswith("#")):
        sign = line[0] if line[0] in (SAME_KIND, PEOPLE) else ""
        kind = f"@{sign}{number}"
        for place, told in enumerate(line.removeprefix(sign).split("|")):
            thing = frozenset((f"{kind}.{place}",))
            for word in told.casefold().split():
                one, _, other = word.partition("_")
                if word[0] > UNSPACED:
                    unspaced[word[0]][word] = unspaced[word[0]].get(word, _NOTHING) | thing
                elif other:
                    pair = _form(one), _form(other)
                    pairs[pair] = pairs.get(pair, _NOTHING) | thing
                else:
                    words[_form(word)] = words.get(_form(word), _NOTHING) | thing
    return _Known(words, pairs, {sign: tuple(found.items()) for sign, found in unspaced.items()})
