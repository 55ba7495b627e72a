"""Reading numbers in text: written in digits or as words, with their units and scales; and whether two are the same."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

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
_CLAIMED = re.compile(_ABOUT + _AMOUNT, re.IGNORECASE)
_GIVEN = re.compile(_AMOUNT.replace("(?P<sign>[$€])?", ""), re.IGNORECASE)
_NUMBER_WORD = re.compile(
    rf"\b(?:{'|'.join(_WORDS)})\b|(?<![\u3400-\u9fff])[一二三四五六七八九十两](?=[个次条行处项份天])", re.IGNORECASE
)
_SEPARATOR = re.compile(r"[^\d.]")
_MOST_ZEROS = 300  # as many as a float has room for
TOLERANCE = 0.06
ROUGHLY = 0.2
"""A small number may be rounded to its last digit when that is not more than this share of it."""


@dataclass(frozen=True, slots=True)
class Figure:
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
