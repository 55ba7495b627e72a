"""Numbers, sizes, money and times as people and programs read them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from leporello.errors import InputError

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_AGE = re.compile(r"([0-9]{1,40})\s*([a-z]+)")
_DAY = 86_400.0
_UNITS = {"h": 3_600.0, "d": _DAY, "w": 7 * _DAY, "m": 30 * _DAY, "y": 365 * _DAY}
_LONGEST_AGE = 1_000_000 * _DAY
_UNREADABLE = (OverflowError, ValueError, OSError)
"""A recorded session may carry any number as its time."""


def count(number: float) -> str:
    """`1,234`."""
    return f"{number:,.0f}"


def plural(number: int, one: str, many: str = "") -> str:
    """`1 message`, `2,000 messages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def short_count(number: float) -> str:
    """Three digits and a unit: `950`, `12.3K`, `4.41M`."""
    for unit_size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= unit_size * 0.9995:
            value = number / unit_size
            digits = 2 if value < 10 and unit != "K" else 1 if value < 100 else 0
            return f"{value:.{digits}f}".rstrip("0").rstrip(".") + unit if digits else f"{value:.0f}{unit}"
    return f"{number:.0f}"


def money(dollars: float) -> str:
    """US dollars with as many digits as matter: `$0.0022`, `$4.02`, `$1,234`."""
    if dollars >= 100:
        return f"${dollars:,.0f}"
    return f"${dollars:.2f}" if dollars >= 0.0995 or dollars == 0 else f"${dollars:.4f}".rstrip("0")


def percent(share: float) -> str:
    """A share of one: `87%`, `2.4%`."""
    return f"{share * 100:.0f}%" if share >= 0.0995 or share == 0 else f"{share * 100:.1f}%"


def size(number: int) -> str:
    """Bytes: `812 B`, `1.2 MB`."""
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{number:,} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def bar(share: float, columns: int) -> str:
    """A bar in eighths of a column; any share above 0 is visible."""
    if share <= 0:
        return ""
    eighths = max(1, round(min(1.0, share) * columns * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def duration(seconds: float) -> str:
    """`0.3 s`, `12 s`, `2 m 5 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} m {int(seconds) % 60} s"


# -- times, given in seconds since the epoch


def moment(seconds: float) -> str:
    """Date and time in the local time zone, for a terminal."""
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
    except _UNREADABLE:
        return f"{seconds:.0f}"


def clock(seconds: float) -> str:
    """Date and time in UTC, for a page, whose script shows local time."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except _UNREADABLE:
        return "at an unknown time"


def iso(seconds: float) -> str:
    """UTC, to the millisecond, for programs."""
    try:
        text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except _UNREADABLE:
        return f"{seconds:.3f}"
    return text.replace("+00:00", "Z")


def parse_age(text: str) -> float:
    """`90d`, `12h`, `4w`, `6m` (months of 30 days) or `1y` in seconds."""
    match = _AGE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise InputError(f"{text!r} is not an age. Write a number and one of h, d, w, m, y: 90d means ninety days.")
    return min(int(match[1]) * _UNITS[match[2]], _LONGEST_AGE)


def parse_moment(text: str) -> float:
    """A date, a date with a time (in the local zone unless it names one), or an age before now, as epoch seconds."""
    if _AGE.fullmatch(text.strip().lower()):
        return time.time() - parse_age(text)
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError) as error:
        raise InputError(f"{text!r} is not a time. Write 2026-01-31, 2026-01-31T18:00 or an age such as 7d.") from error
