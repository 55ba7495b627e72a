"""What a sentence gives a value to, by general knowledge: "my manager is" and "I report to" are about one thing.

Two words of one thing count like a word that both sentences have; two things of one kind, such as the dentist and the
eye doctor, tell sentences apart. Some words are values of a thing and name it too: who speaks of Jenkins and later of
CircleCI speaks of one CI, and has another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

from msgspec import Struct

from leporello.files import shipped
from leporello.lazy_regex import lazy_regex
from leporello.ledger.sentence_pieces import UNSPACED, plain_words

_EDGES = " \t\"'`.,;:!?()[]{}<>«»„“”‘’¿¡…*_"
_OWNER = ("'s", "’s")
_E_OF_PLURALS = ("che", "she", "xe", "sse")
SAME_KIND, PEOPLE, VALUE, EXACTLY = "~", "+", "=", "!"
_NOTHING: frozenset[str] = frozenset()
_LATIN, LONGEST_FORM, LEAST = "\u024f", 7, 3
_ENDINGS = ("ing", "ed")
_ELIDED = lazy_regex(r"^(?:[dlmntsjc]|qu|dell|all|nell|sull|dall|un)['’](?=\w\w)")
_BETWEEN_SCRIPTS = lazy_regex(r"(?<=[0-9A-Za-z])(?=[\u3041-\ud7a3])|(?<=[\u3041-\ud7a3])(?=[0-9A-Za-z])")

_ByWord = dict[str, frozenset[str]]


class Named(Struct, frozen=True):
    """What a sentence names."""

    things: frozenset[str]
    """As `@kind.thing`."""
    values: frozenset[tuple[str, str]]
    """Things with a word that is a value of them."""
    words: Mapping[str, frozenset[str]]
    """Things by the words that name them here, as statements compare words."""


class _Phrase(Struct, frozen=True):
    """Words that name a thing when they stand together."""

    rest: tuple[str, ...]
    thing: str
    is_value: bool


class _Known(Struct, frozen=True):
    """Things by the words that name them."""

    words: _ByWord
    """By words in whatever form."""
    exactly: _ByWord
    """By words as they are, in the singular."""
    values: _ByWord
    """Words that are values of things."""
    proper: _ByWord
    """Words that are values where they begin with a capital letter, and mean something else where they don't."""
    phrases: dict[str, tuple[_Phrase, ...]]
    """By the first of their words."""
    unspaced: dict[str, tuple[tuple[str, frozenset[str], bool], ...]]
    """Of scripts without blanks by the first character, with whether the word is a value."""


@lru_cache(maxsize=4096)
def named_in(text: str) -> Named:
    """The things a sentence names, and their values that it does."""
    known = _known()
    values: set[tuple[str, str]] = set()
    by_word: dict[str, set[str]] = defaultdict(set)
    unspaced = max(text, default="") > UNSPACED
    written = [word.strip(_EDGES) for word in (_BETWEEN_SCRIPTS.sub(" ", text) if unspaced else text).split()]
    plain = [_singular(word.casefold()) for word in written]
    forms = [_form(word.casefold()) for word in written]
    for place, (word, form) in enumerate(zip(plain, forms, strict=True)):
        of = known.values.get(word, _NOTHING)
        if word in known.proper and written[place][0].isupper():
            of |= known.proper[word]
        values.update((thing, word) for thing in of)
        of = of | _by_form(known, plain[place], form) | known.exactly.get(word, _NOTHING)
        if of:
            by_word[written[place]] |= of
        for phrase in known.phrases.get(form, ()):
            stop = place + 1 + len(phrase.rest)
            if (*forms[place + 1 : stop],) == phrase.rest:
                values.update([(phrase.thing, " ".join((word, *phrase.rest)))] if phrase.is_value else ())
                for part in written[place:stop]:
                    by_word[part].add(phrase.thing)
    if unspaced:
        for place, sign in enumerate(text):
            for word, things, is_value in known.unspaced.get(sign, ()):
                if text.startswith(word, place):
                    by_word[word] |= things
                    values.update((thing, word) for thing in things if is_value)
    things = frozenset[str]().union(*by_word.values())
    return Named(things, frozenset(values), _by_plain_word(by_word))


def _by_form(known: _Known, word: str, form: str) -> frozenset[str]:
    """The things a word names; of "releasing" and "shipping" what is left is no word yet."""
    of = known.words.get(form)
    if of is None and form != word and word.isascii():
        of = known.words.get(f"{form}e") or known.words.get(form[:-1] if form[-1:] == form[-2:-1] else "")
    return of or _NOTHING


def _by_plain_word(by_word: Mapping[str, set[str]]) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for word, things in by_word.items():
        for plain in plain_words(word.removesuffix("'s")):
            found[plain] = found.get(plain, _NOTHING) | things
    return found


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
    """A word as it is compared: without endings that never make another word of it ("plan", "plane" are two).

    Accents stay: without them words of one language are those of another.
    """
    word = _singular(word)
    if not word or word[0] > _LATIN:
        return next(iter(plain_words(word)), word) if word else word
    if not word.isascii():
        return word[:LONGEST_FORM]
    return next((word[: -len(end)] for end in _ENDINGS if word.endswith(end) and len(word) - len(end) > LEAST), word)


@lru_cache(maxsize=65_536)
def _singular(word: str) -> str:
    word = _ELIDED.sub("", word[:-2] if word.endswith(_OWNER) else word, 1) if "'" in word or "’" in word else word
    if len(word) <= LEAST + 1:
        return word
    one = word[:-1] if word[-1] == "s" != word[-2] else word
    if one.endswith(_E_OF_PLURALS):
        return one[:-1]
    return f"{one[:-2]}y" if one.endswith("ie") else one


@cache
def _known() -> _Known:
    words: dict[str, set[str]] = defaultdict(set)
    exactly: dict[str, set[str]] = defaultdict(set)
    values: dict[str, set[str]] = defaultdict(set)
    proper: dict[str, set[str]] = defaultdict(set)
    phrases: dict[str, list[_Phrase]] = defaultdict(list)
    unspaced: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    unspaced_values: set[str] = set()
    for thing, listed in _listed():
        is_value, is_exact = listed[0] == VALUE, listed[0] == EXACTLY
        given = listed[is_value or is_exact :]
        one, *rest = given.casefold().split("_")
        if one[0] > UNSPACED:
            unspaced[one[0]][one].add(thing)
            unspaced_values.update([one] if is_value else ())
        elif rest:
            phrases[_form(one)].append(_Phrase(tuple(map(_form, rest)), thing, is_value))
        elif is_value:
            (proper if given[0].isupper() else values)[_singular(one)].add(thing)
        elif is_exact:
            exactly[_singular(one)].add(thing)
        else:
            words[_form(one)].add(thing)
    by_sign = {
        sign: tuple((word, frozenset(things), word in unspaced_values) for word, things in found.items())
        for sign, found in unspaced.items()
    }
    together = {one: tuple(found) for one, found in phrases.items()}
    return _Known(_frozen(words), _frozen(exactly), _frozen(values), _frozen(proper), together, by_sign)


def _listed() -> Iterator[tuple[str, str]]:
    """Things, with each word that names them as it is listed."""
    lines = shipped("leporello.ledger", "things.txt").decode().splitlines()
    for number, line in enumerate(line for line in lines if line and not line.startswith("#")):
        sign = line[0] if line[0] in (SAME_KIND, PEOPLE) else ""
        for place, told in enumerate(line.removeprefix(sign).split("|")):
            for listed in told.split():
                yield f"@{sign}{number}.{place}", listed


def _frozen(table: Mapping[str, set[str]]) -> _ByWord:
    return {key: frozenset(things) for key, things in table.items()}
