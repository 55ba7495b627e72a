"""The pieces of a sentence: words, figures, names and signs; and words as they are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum, IntFlag, auto
from functools import cache, lru_cache
from typing import NamedTuple

from leporello.lazy_regex import lazy_regex
from leporello.ledger import value_patterns as patterns
from leporello.text_features.words import stem

UNSPACED = "\u2fff"
"""Characters behind it are of scripts that don't put blanks between words, or hide the word behind endings (Hangul)."""
MONEY = "$€£¥₽₩"
SHORT_ACRONYM, SHORT_QUOTATION = 6, 5


class Sort(Enum):
    PAUSE = auto()
    SMALL = auto()
    """Says nothing about what is meant."""
    LINK = auto()
    """A small word that ties what follows to what stands before: the port *of* the worker."""
    WORD = auto()
    CAPITAL = auto()
    ACRONYM = auto()
    FIGURE = auto()
    MONTH = auto()
    DATE = auto()
    TIME = auto()
    COLOUR = auto()
    CODE = auto()
    OWNER = auto()


class Sign(IntFlag):
    """What a sentence may hold that has this piece. Most have nothing of it, and looking with patterns is slow."""

    NONE = 0
    CHANGE = auto()
    UNSURE = auto()
    OWN = auto()
    NEGATION = auto()
    ROMANCE = auto()


class Piece(NamedTuple):
    start: int
    end: int
    sort: Sort
    words: tuple[str, ...]
    contrasts: tuple[tuple[int, str], ...]
    signs: int


class _Told(NamedTuple):
    """What a token is, wherever it stands."""

    sort: Sort
    words: tuple[str, ...] = ()
    contrasts: tuple[tuple[int, str], ...] = ()
    signs: int = 0


def pieces_of(sentence: str) -> list[Piece]:
    """The pieces of a sentence behind what leads it in."""
    lead = patterns.LEAD.match(sentence)
    found = patterns.TOKEN.finditer(sentence, lead.end() if lead else 0)
    return [Piece(match.start(), match.end(), *_told(match[0])) for match in found]


_VALUES = (
    Sort.FIGURE,
    Sort.MONTH,
    Sort.DATE,
    Sort.TIME,
    Sort.COLOUR,
    Sort.CODE,
    Sort.OWNER,
    Sort.CAPITAL,
    Sort.ACRONYM,
)


def gives_value(sentence: str) -> bool:
    """Whether it may hold a value, in whatever way it is said; the word it begins with is none."""
    return any(piece.start and piece.sort in _VALUES for piece in pieces_of(sentence))


def words_in(text: str) -> Iterator[str]:
    """The words of a text as they are compared, without small ones."""
    for run in _RUN.findall(text):
        yield from plain_words(run)


@lru_cache(maxsize=65_536)
def plain_words(word: str) -> tuple[str, ...]:
    """A word as it is compared: without endings; of Chinese the pairs of characters; empty for small words."""
    if "\u3400" <= word[0] <= "\u9fff":
        runs = patterns.UNSPACED_STOP.sub(" ", word).split()
        return tuple(run[k : k + 2] for run in runs for k in range(max(1, len(run) - 1)))
    if word[0] > UNSPACED:
        return (word,)
    return () if word.casefold() in patterns.words("stop") or len(word) < 2 else (_plain(word),)


def without_tail(word: str) -> str:
    """A Korean word without its particle."""
    return _HANGUL_TAIL.sub("", word)


def _plain(word: str) -> str:
    folded = word.casefold()
    if folded.isascii():
        return stem(folded)[:7]
    if "\u0400" <= folded[0] <= "\u04ff":
        return folded[:5]
    if folded[0] > UNSPACED:
        return folded
    return stem("".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c)))[:7]


_RUN = lazy_regex(r"[^\W_]+")
_OPENING = '`"“„«「『'
_FULL_DATE = lazy_regex(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\Z|\d{1,2}[./]\d{1,2}[./](?:\d{2}|\d{4})\Z|\d{1,2}/\d{1,2}\Z")
_ORDINAL = lazy_regex(r"\d{1,2}(?:st|nd|rd|th)\Z")
_CLOCK = lazy_regex(r"\d{1,2}:\d{2}(?:[ap]m)?\Z|\d{1,2}[ap]m\Z|\d{1,2}h(?:\d{2})?\Z", re.IGNORECASE)
_FIGURE = lazy_regex(r"v?\d+(?:[.,:]\d+)*(?:[万億千百만억천]\d*){0,4}(?:\s?%|[A-Za-zµ°]{1,4})?\Z")
_HASH = lazy_regex(r"(?=[a-f]*\d)[0-9a-f]{7,40}\Z")
_CODE = lazy_regex(r"[A-Za-z-]*[\d_]|[a-z]+[A-Z]|\w+(?:\.\w{2,})+\Z|[./~@]")
_CONTRACTED = lazy_regex(r"(?:i|we|you|s?he|it|they|that|there|who|what|here|let)['’]\w+\Z|\w+n['’]t\Z", re.IGNORECASE)
_HANGUL_TAIL = lazy_regex(
    r"(?:으로|에서|부터|까지|에게|입니다|이에요|예요|은|는|이|가|을|를|에|의|로|도|와|과|만|님|씨)\Z"
)
_HANGUL_VERB = lazy_regex(r"(?:니다|세요|해요|어요|아요|하고|해서|하여|있는|하는|되는|해|된)\Z")
_HANGUL_NAMES = ("입니다", "이에요", "예요", "에게", "님", "씨")
_HANGUL_PARTICLES = ("에", "로", "까지", "부터")
_PARTS = lazy_regex(r"-(?:e-|et-|y-)?|(?<=\w)und(?=\w)")
_ONES = frozenset(("one", "un", "ein"))
_HOURS = ("点", "点半", "時", "時半", "时", "时半")
_LOWER_NO_MONTH = ("may", "mar", "mars")


@lru_cache(maxsize=65_536)
def _told(token: str) -> _Told:
    told = _figure(token) if token[0].isdigit() or token[0] in MONEY or token[0] == "v" else None
    told = told or _sign(token) or (_unspaced(token) if token[0] > UNSPACED else _word(token))
    if told.sort is Sort.PAUSE or (told.sort is Sort.CODE and not token.isalpha()):
        return told
    table = _contrasts()
    rows = tuple(row for word in dict.fromkeys((_plain(token), *told.words)) for row in table.get(word, ()))
    return told._replace(contrasts=rows, signs=_signs(token))


def _figure(token: str) -> _Told | None:
    if _CLOCK.match(token):
        return _Told(Sort.TIME)
    if _ORDINAL.match(token) or _FULL_DATE.match(token) or "월" in token or "月" in token:
        return _Told(Sort.DATE)
    return _Told(Sort.FIGURE) if token[0] in MONEY or _FIGURE.match(token) else None


def _sign(token: str) -> _Told | None:
    first = token[0]
    if first in ",;:.()，。；：、—" and len(token) == 1:
        return _Told(Sort.PAUSE)
    if first in _OPENING:
        inner = token[1:-1].strip()
        return _Told(Sort.CODE if len(inner.split()) < SHORT_QUOTATION else Sort.SMALL, tuple(words_in(inner)))
    return _Told(Sort.COLOUR) if first == "#" else None


def _word(token: str) -> _Told:
    first = token[0]
    if _CONTRACTED.match(token):
        return _Told(Sort.SMALL)
    if token.endswith(("'s", "’s")):
        return _Told(Sort.OWNER if first.isupper() else Sort.WORD, tuple(words_in(token[:-2])))
    folded = token.casefold().rstrip(".")
    known = _known().get(folded)
    if known is not None and not (first.islower() and folded in _LOWER_NO_MONTH):
        return known
    if ("-" in folded or "und" in folded) and _is_numeral(folded):
        return _Told(Sort.FIGURE)
    words = tuple(words_in(token))
    if _CODE.match(token) or "@" in token or ("/" in token and ("." in token or token.count("/") > 1)):
        return _Told(Sort.SMALL if _HASH.match(token) else Sort.CODE, words)
    if not words:
        return _Told(Sort.SMALL)
    if token.isupper() and len(token) < SHORT_ACRONYM:
        return _Told(Sort.ACRONYM, words)
    return _Told(Sort.CAPITAL if first.isupper() else Sort.WORD, words)


def _is_numeral(word: str) -> bool:
    """Whether a word is a number of several parts: "sixty-four", "vingt-cinq", "fünfundzwanzig"."""
    parts, numerals = _PARTS.split(word), patterns.words("numerals")
    return len(parts) > 1 and parts[0] in numerals | _ONES and parts[-1] in numerals | _ONES


def _unspaced(token: str) -> _Told:
    if patterns.UNSPACED_DAY.match(token):
        return _Told(Sort.DATE)
    if patterns.SPELT.fullmatch(token):
        return _Told(Sort.TIME if token.endswith(_HOURS) else Sort.FIGURE)
    if "\u3041" <= token[0] <= "\u309f":
        return _Told(Sort.LINK if token == "の" else Sort.SMALL)
    if "\uac00" <= token[0] <= "\ud7a3":
        bare = without_tail(token)
        verb = _HANGUL_VERB.search(token) and not token.endswith("입니다")
        if verb or not bare or token in _HANGUL_PARTICLES:
            return _Told(Sort.SMALL)
        return _Told(Sort.CAPITAL if token.endswith(_HANGUL_NAMES) else Sort.WORD, (bare,))
    return _Told(Sort.WORD, plain_words(token))


@cache
def _known() -> dict[str, _Told]:
    """Words that are values or say nothing of their own."""
    sorts = {
        "stop": Sort.SMALL,
        "links": Sort.LINK,
        "months": Sort.MONTH,
        "days": Sort.DATE,
        "numerals": Sort.FIGURE,
        "colours": Sort.COLOUR,
    }
    return {word: _Told(sort) for table, sort in sorts.items() for word in patterns.words(table)}


@cache
def _contrasts() -> dict[str, tuple[tuple[int, str], ...]]:
    """For each word its rows, with the first word of those that mean the same; rows with a `~` are negative."""
    table: dict[str, tuple[tuple[int, str], ...]] = {}
    for number, row in enumerate(patterns.contrasts(), 1):
        for alike in row.removeprefix("~").split():
            for word in map(_plain, alike.split("/")):
                entry = (-number if row.startswith("~") else number, _plain(alike.split("/")[0]))
                table[word] = (*table.get(word, ()), entry)
    return table


@cache
def _gates() -> dict[str, int]:
    """Signs by whole word (a blank behind it), and for change by the first letters of a word."""
    table: dict[str, int] = {word[:4]: Sign.CHANGE for word in patterns.words("change_gate")}
    tables = {"unsure_gate": Sign.UNSURE, "own": Sign.OWN, "negates": Sign.NEGATION, "romance": Sign.ROMANCE}
    for name, sign in tables.items():
        for word in patterns.words(name):
            table[word + " "] = table.get(word + " ", 0) | sign
    return table


def _signs(token: str) -> int:
    if token[0] > UNSPACED:
        own = Sign.OWN if patterns.UNSPACED_OWN.search(token) else 0
        negated = Sign.NEGATION if patterns.UNSPACED_NEGATES.search(token) else 0
        return int(Sign.CHANGE | Sign.UNSURE | own | negated)
    folded, table = token.casefold(), _gates()
    contracted = Sign.NEGATION if folded.endswith(("n't", "n’t")) and not folded.startswith("can") else 0
    return int(table.get(folded + " ", 0) | table.get(folded[:4], 0) | contracted)
