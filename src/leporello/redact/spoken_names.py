"""Where a text names a password, a PIN or a key in people's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from enum import Enum

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.redact.names import KEYS, PASSWORDS, PINS, STEMS
from leporello.redact.spans import lowered_of, places_of
from leporello.text_features.rare import RarePattern

CJK = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts that put no blank between a word and the next; Thai is one of them."""
_NAME = lazy_regex(
    rf"(?:(?P<pin>{PINS})|(?P<password>{PASSWORDS})|(?P<key>{KEYS}))"
    rf"(?:(?:s|es|en|-ul|nya|['’]\w{{1,4}}|i|y|ом|а|ам)(?![\w-]))?(?=[^\w-]|$|[{CJK}]|-\s)"
)
_ANY_STEM = RarePattern(lazy_regex("|".join(map(re.escape, sorted(STEMS)))))


class Said(Enum):
    PASSWORD = "password"
    KEY = "key"
    PIN = "pin"


class SpokenName(Struct, frozen=True):
    start: int
    end: int
    said: Said
    word: str


def names_in(text: str) -> Iterator[str]:
    """What a text calls passwords, keys and PINs."""
    lowered = lowered_of(text)
    if _ANY_STEM.may_match(lowered):
        yield from (name.word for name in spoken_names(text, lowered, STEMS))


def name_at(lowered: str, place: int) -> re.Match[str] | None:
    """The name that begins at a place of a text in small letters."""
    return _NAME.match(lowered, place)


COMPOUNDED = ("passwort", "kennwort", "wachtwoord", "lösenord", "passord", "adgangskode", "salasana")
"""Words that end longer ones: `Datenbankpasswort`."""


def spoken_names(text: str, lowered: str, words: Set[str]) -> Iterator[SpokenName]:
    done = 0
    for place in places_of(words & STEMS, lowered):
        if place < done or (place > 0 and _is_inside_word(text, place)):
            continue
        name = name_at(lowered, place)
        if name is not None and name[0] != "passes":
            done = name.end()
            yield SpokenName(place, done, Said(name.lastgroup), name[0])


def _is_inside_word(text: str, place: int) -> bool:
    """The word is the end of another one. Scripts without blanks know no such thing."""
    before = text[place - 1]
    if before == "-" and text[place].isupper():  # WLAN-Passwort
        return False
    if before.isalpha() and text.startswith(COMPOUNDED, place):
        return False
    return (before.isalnum() or before in "_-.$/@#:+={") and text[place] < "\u3000" and before < "\u3000"
