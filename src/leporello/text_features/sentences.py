"""Reading a sentence: its names, figures and quotations, the words that carry it, and which of them are denied.

Figures are numbers in digits or as words, with their units and scales; two may be the same in other spellings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.text_features.words import SHORT_HASH, STOP_WORDS, UNSPACED, is_hash, stem

_UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), ("time", 1e-9)),
    **dict.fromkeys(("us", "µs", "microsecond", "microseconds", "微秒"), ("time", 1e-6)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds", "毫秒"), ("time", 1e-3)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), ("time", 1.0)),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "分钟"), ("time", 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "小时"), ("time", 3600.0)),
    **dict.fromkeys(("d", "day", "days", "天"), ("time", 86_400.0)),
    **dict.fromkeys(("week", "weeks", "周"), ("time", 604_800.0)),
    **dict.fromkeys(("month", "months", "个月"), ("month", 1.0)),
    **dict.fromkeys(("year", "years", "年"), ("year", 1.0)),
    **dict.fromkeys(("b", "byte", "bytes", "字节"), ("size", 1.0)),
    **dict.fromkeys(("kb", "kib"), ("size", 1e3)),
    **dict.fromkeys(("mb", "mib"), ("size", 1e6)),
    **dict.fromkeys(("gb", "gib"), ("size", 1e9)),
    **dict.fromkeys(("tb", "tib"), ("size", 1e12)),
    **dict.fromkeys(("%", "percent", "％"), ("share", 0.01)),
    **dict.fromkeys(("px", "pixel", "pixels"), ("px", 1.0)),
    **dict.fromkeys(("hz",), ("hz", 1.0)),
    **dict.fromkeys(("khz",), ("hz", 1e3)),
    **dict.fromkeys(("mhz",), ("hz", 1e6)),
    **dict.fromkeys(("ghz",), ("hz", 1e9)),
    **dict.fromkeys(("$", "usd", "dollars"), ("usd", 1.0)),
    **dict.fromkeys(("€", "eur", "euros"), ("eur", 1.0)),
}
_SCALES = {"k": 1e3, "m": 1e6, "g": 1e9, "bn": 1e9, "万": 1e4, "亿": 1e8}
_WORDS = {
    word: float(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
    )
} | {"twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "hundred": 100.0, "thousand": 1000.0, "dozen": 12.0}
_HAN_DIGITS = {character: float(value) for value, character in enumerate("零一二三四五六七八九十")} | {"两": 2.0}

_UNIT_WORDS = "|".join(sorted((re.escape(unit) for unit in _UNITS if unit not in "$€"), key=len, reverse=True))
_ABOUT = (
    r"(?P<about>(?:\b(?:about|around|roughly|approximately|approx\.?|circa|some|nearly|almost|over|more than|under"
    r"|less than|up to|at least|at most)\s+|[~≈]|约|大约|将近|超过)\s?)?"
)
_AMOUNT = (
    r"(?P<sign>[$€])?(?<![\w.,/#:@-])(?P<body>\d{1,3}(?:[,_\u00a0\u202f]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.]*\.\d|-\d)"
    rf"(?:(?P<scale>[kKmMgG]|bn|万|亿)(?![A-Za-z])|\s?(?P<unit>{_UNIT_WORDS})(?![A-Za-z\d]))?(?![A-Za-z_\d])"
)
_CLAIMED = lazy_regex(_ABOUT + _AMOUNT, re.IGNORECASE)
_GIVEN = lazy_regex(_AMOUNT.replace("(?P<sign>[$€])?", ""), re.IGNORECASE)
_NUMBER_WORD = lazy_regex(
    rf"\b(?:{'|'.join(_WORDS)})\b|(?<![\u3400-\u9fff])[一二三四五六七八九十两](?=[个次条行处项份天])", re.IGNORECASE
)
_SEPARATOR = lazy_regex(r"[^\d.]")
_MOST_ZEROS = 300  # as many as a float has room for
TOLERANCE = 0.06
ROUGHLY = 0.2
"""A small number may be rounded to its last digit when that is not more than this share of it."""


class Figure(Struct, frozen=True):
    """One number. `amount` is in the base unit of its kind; `grain` is half of its last digit's worth."""

    bare: float
    amount: float
    kind: str
    grain: float
    rounded: bool
    about: bool
    start: int
    end: int
    word: bool = False


def amounts(text: str) -> list[Figure]:
    """The numbers of a long text that are written in digits; quicker than `figures`."""
    return [_figure(match) for match in _GIVEN.finditer(text)]


def figures(text: str) -> list[Figure]:
    """The numbers of a sentence, those in words as well, in order."""
    found = [_figure(match) for match in _CLAIMED.finditer(text)]
    taken = [(figure.start, figure.end) for figure in found]
    for match in _NUMBER_WORD.finditer(text):
        value = _WORDS.get(match.group().casefold(), _HAN_DIGITS.get(match.group(), -1.0))
        if all(match.end() <= start or match.start() >= end for start, end in taken):
            found.append(Figure(value, value, "", 0.5, False, False, match.start(), match.end(), word=True))
    return sorted(found, key=lambda figure: figure.start)


def _figure(match: re.Match[str]) -> Figure:
    body = match["body"]
    if not body.isdigit():
        body = _SEPARATOR.sub("", body)
    digits = len(body.partition(".")[2])
    scale = _SCALES.get((match["scale"] or "").casefold(), 1.0)
    parts = match.groupdict()
    unit = (match["unit"] or parts.get("sign") or "").casefold()
    kind, factor = _UNITS.get(unit, ("", 1.0))
    grain = 0.5 * 10.0**-digits * scale * factor
    if not digits and scale == 1.0:
        zeros = len(body) - len(body.rstrip("0"))
        grain *= 10.0 ** min(zeros, max(0, len(body) - 1), _MOST_ZEROS)
    bare = float(body) * scale
    return Figure(bare, bare * factor, kind, grain, scale != 1.0, bool(parts.get("about")), match.start(), match.end())


def same(claim: Figure, source: Figure) -> bool:
    if claim.kind and source.kind and claim.kind != source.kind:
        return False
    if claim.kind != source.kind:
        # One of them has no unit: the figures must agree as written; a share is never meant without its sign.
        return claim.bare == source.bare and not claim.about and "share" not in (claim.kind, source.kind)
    if math.isclose(claim.amount, source.amount):
        return True
    gap = abs(claim.amount - source.amount)
    most = max(abs(claim.amount), abs(source.amount))
    if claim.about:
        return gap <= TOLERANCE * most or (claim.bare % 10 != 0 and gap <= claim.grain <= ROUGHLY * most)
    return claim.rounded and gap <= claim.grain * (1 + 1e-9)


def any_same(claim: Figure, sources: Iterable[Figure]) -> bool:
    return any(same(claim, source) for source in sources)


QUOTED = lazy_regex(r"“([^”]{2,1000})”|\"([^\"]{2,})\"|(?<![\w`])`([^`]{1,})`|「([^」]{2,1000})」|『([^』]{2,1000})』")
TOKEN = lazy_regex(
    r"https?://[^\s<>\"'`)\]]+"
    r"|(?<![\w-])--?[A-Za-z][\w-]*(?:=[^\s,;)`\"']+)?"
    r"|[A-Za-z]+(?:n['’]t|['’](?:s|re|ve|ll|d|m))(?![\w-])"
    rf"|(?:[~.@#$\\/*-]{{0,64}}+[A-Za-z0-9_]++)++(?:(?:(?!{UNSPACED})[\w./:@#~+*\\-])*(?!{UNSPACED})[\w/*+])?"
    rf"|{UNSPACED}+|(?:(?!{UNSPACED})[^\W\d_])+(?:'[^\W\d_]+)?"
    r"|[.;:!?。；：！？，,、()\[\]{}→]|->|—|–|\n"
)
_PLAIN_WORD = lazy_regex(r"[A-Za-z\u00c0-\u024f\u0400-\u04ff]+(?:['’][A-Za-z]+)?\Z")
_HYPHENED = lazy_regex(r"[A-Za-z]+(?:-[A-Za-z]+)+\Z")
_HAN = lazy_regex(UNSPACED)
_PARTS = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
LINE_NUMBER = lazy_regex(r":\d+(?:[-:]\d+)?\Z")
_NUMERIC = lazy_regex(r"(\d[\d,_]*(?:\.\d+)?)(?:[kmg]|[kmgt]i?b|%|[nµu]?s|ms|min|h|d|px|x)?\Z")
ELLIPSIS = lazy_regex(r"\s{0,64}(?:\.\.\.|…|\[…\])\s*")
_LEFT_OUT = lazy_regex(r"(?:\.\.\.|…|\[…\])/")
_TRIM = ".,;:!?()[]{}<>\"'`*…"
_BOUNDARIES = frozenset(".;:!?。；：！？，,、()[]{}→—–\n") | {"->"}

NEGATORS = frozenset(
    """
    not no never without cannot nor neither nobody nothing none barely hardly unable non
    can't don't doesn't didn't isn't aren't wasn't weren't won't wouldn't shouldn't couldn't hasn't haven't hadn't
    mustn't needn't
    """.split()
)
_HAN_NEGATORS = lazy_regex("没有|尚未|还没|未能|并非|不是|不再|不能|不会|不要|不得|禁止|无法|没|未|不|无|勿|别")
_BEFORE_DENIED = frozenset(
    """
    the a an any be been being become becomes became to do does did have has had get gets yet longer ever more even all
    """.split()
)
"""Words between a negator and what it denies."""
_CONTRACTED = lazy_regex(r"(?:i|we|you|they|he|she|it|that|there|who|what|let|here)['’](?:s|re|ve|ll|d|m)$")
"""A pronoun with its verb."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, name or number; `keys` find it by its stem, `forms` compare it as it is written."""

    text: str
    start: int
    keys: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    name: bool = False
    """Whether it names something exactly: a path, symbol, flag, hash or version."""
    boundary: bool = False
    negated: bool = False
    content: bool = False
    """Whether it is a word that is neither a name nor grammar."""

    @property
    def lowered(self) -> str:
        return self.text.casefold().replace("’", "'").strip(_TRIM)


class Reading(Struct, frozen=True):
    text: str
    tokens: tuple[Token, ...]
    figures: tuple[Figure, ...]
    quotes: tuple[str, ...]

    @property
    def names(self) -> tuple[Token, ...]:
        return tuple(token for token in self.tokens if token.name)

    @property
    def content(self) -> tuple[Token, ...]:
        return tuple(token for token in self.tokens if token.content)

    def free_figures(self) -> list[Figure]:
        """The numbers that are no part of a name or a quotation."""
        inside = [(token.start, token.start + len(token.text)) for token in self.names]
        inside.extend(match.span() for match in QUOTED.finditer(self.text))
        return [figure for figure in self.figures if not any(start <= figure.start < end for start, end in inside)]


@lru_cache(maxsize=20_000)
def read(text: str) -> Reading:
    """Read a sentence; marks of emphasis are left out."""
    text = text.replace("**", "").replace("__", "") if "**" in text or text.startswith("__") else text
    text = _LEFT_OUT.sub("", text)
    numbers = tuple(figures(text))
    tokens = _with_negation([_outside(_token(match), numbers) for match in TOKEN.finditer(text)])
    quotes = tuple(next(group for group in match if group) for match in QUOTED.findall(text))
    return Reading(text, tokens, numbers, quotes)


def _token(match: re.Match[str]) -> Token:
    raw = match.group()
    if raw in _BOUNDARIES:
        return Token(raw, match.start(), boundary=True)
    keys = keys_of(raw)
    name = is_name(raw)
    lowered = raw.casefold().strip(_TRIM)
    grammar = lowered in STOP_WORDS or lowered in NEGATORS or _CONTRACTED.match(lowered)
    content = bool(keys) and not name and not grammar and not _NUMERIC.match(lowered)
    return Token(raw, match.start(), keys, _forms_of(raw), name, content=content)


def _outside(token: Token, numbers: Sequence[Figure]) -> Token:
    """A unit belongs to its number and is no word of its own."""
    if token.content and any(figure.start <= token.start < figure.end and not figure.word for figure in numbers):
        return replace(token, content=False)
    return token


def _with_negation(tokens: list[Token]) -> tuple[Token, ...]:
    """Mark the word that each negator bears on: the next one that says something, within the clause."""
    found: list[Token] = []
    waiting = 0
    for token in tokens:
        denied = False
        if token.boundary:
            waiting = 0
        elif token.lowered in NEGATORS:
            waiting = 4
        elif is_unspaced(token.text):
            denied = bool(_HAN_NEGATORS.search(token.text))
        elif waiting and token.lowered not in _BEFORE_DENIED:
            denied = token.content or token.name
            waiting = 0 if denied else waiting - 1
        found.append(replace(token, negated=True) if denied else token)
    return tuple(found)


@lru_cache(maxsize=200_000)
def keys_of(raw: str) -> tuple[str, ...]:
    """The keys under which a token is found: words by their stem."""
    return _pieces(raw, stem)


@lru_cache(maxsize=200_000)
def _forms_of(raw: str) -> tuple[str, ...]:
    """The forms under which a token is compared: singular and plural are one, all other endings count."""
    return _pieces(raw, _singular)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _pieces(raw: str, fold: Callable[[str], str]) -> tuple[str, ...]:
    """For a name the whole and its parts, for a number its value, for scripts without blanks pairs of characters."""
    if is_unspaced(raw):
        return (raw,) if len(raw) == 1 else tuple(raw[k : k + 2] for k in range(len(raw) - 1))
    text = _bare(raw)
    if not text:
        return ()
    if _PLAIN_WORD.match(text) and not _mixed_case(text):
        return (fold(text.casefold().replace("’", "'").removesuffix("'s")),)
    whole = text.casefold()
    if is_hash(whole):
        return tuple(dict.fromkeys((whole, whole[:SHORT_HASH])))
    number = _NUMERIC.match(whole)
    if number:
        value = float(number[1].replace(",", "").replace("_", ""))
        # Rounded as well, which is how a claim may tell it.
        return tuple(dict.fromkeys((f"{value:g}", f"{value:.0f}")))
    parts = (fold(part.casefold()) for part in _PARTS.findall(text) if len(part) > 1)
    return tuple(dict.fromkeys((whole, *_endings(whole), *parts)))


def _endings(path: str) -> Iterator[str]:
    """A path is also known by its last parts, and without its line."""
    bare = LINE_NUMBER.sub("", path)
    if bare != path:
        yield bare
    if "/" in bare and "://" not in bare:
        parts = bare.strip("/").split("/")
        yield from ("/".join(parts[-count:]) for count in range(min(4, len(parts)), 0, -1))


def _bare(raw: str) -> str:
    """A token without punctuation around it; a hidden file keeps its dot."""
    text = raw.strip(_TRIM)
    start = raw.find(text) if text else 0
    return "." + text if text and start and raw[start - 1] == "." and "/" in text else text


def is_name(raw: str) -> bool:
    """Whether a token names something exactly: a path, symbol, flag, hash, version or number with letters."""
    text = raw.strip(_TRIM)
    if len(text) < 2 or is_unspaced(text):
        return False
    if _PLAIN_WORD.match(text):
        return _mixed_case(text) and not text[1:].islower()
    if is_hash(text):
        return True
    if _HYPHENED.match(text) or _NUMERIC.match(text.casefold()):
        return False
    return (
        any(c.isalpha() for c in text) or text.count(".") > 1 or "/" in text or text.startswith("#") or "-" in text[1:]
    )


def _mixed_case(text: str) -> bool:
    return not text.islower() and not text.isupper() and not text.istitle()


def is_unspaced(text: str) -> bool:
    """Whether a token is of Han or another script without blanks between words."""
    return bool(_HAN.match(text))
