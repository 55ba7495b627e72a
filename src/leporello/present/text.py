"""Texts on their way to a terminal: nothing may move the cursor or change colours; times.

Sizes and numbers for people.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from leporello.errors import InputError
from leporello.present.output import breadth

# Colours of a program's output say little without the rest of its screen: they are taken out, not shown as escapes.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")


def clean(text: str) -> str:
    """Lines without anything a terminal would obey; what is taken out is shown as an escape."""
    return _IN_BLOCK.sub(_as_escape, _COLOURS.sub("", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """The same, with runs of blanks as one."""
    return clean(" ".join(text.split()))


def _as_escape(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


CUT = "..."

_DANGEROUS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
_IN_LINE = re.compile(f"[\t\n{_DANGEROUS}]")
_IN_BLOCK = re.compile(f"[{_DANGEROUS}]")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}

_AGE = re.compile(r"([0-9]{1,40})\s*([a-z]+)")
_DAY = 86_400.0
_UNITS = {"h": 3_600.0, "d": _DAY, "w": 7 * _DAY, "m": 30 * _DAY, "y": 365 * _DAY}
_LONGEST_AGE = 1_000_000 * _DAY


def safe(text: str) -> str:
    """One line without anything a terminal would obey."""
    return _IN_LINE.sub(_escaped, text)


def safe_block(text: str) -> str:
    """Several lines without anything a terminal would obey; tabs and line ends stay."""
    return _IN_BLOCK.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    inbox_message = match.group()
    number = ord(inbox_message)
    if inbox_message in _SHORT:
        return _SHORT[inbox_message]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def short(text: str, columns: int) -> str:
    """The beginning of a text as one safe line of at most so many columns."""
    # A little more than can be shown is enough to look at: titles may be megabytes.
    line = safe(text[: columns + 1])
    if breadth(line) <= columns and len(text) <= columns:
        return line
    while line and breadth(line) > columns - len(CUT):
        line = line[:-1]
    return line + CUT


def words_of(text: str, columns: int) -> str:
    """The beginning of a text of many lines as one safe line, blanks joined."""
    enough = columns * 8
    return short(" ".join(text[:enough].split()) + (CUT if len(text) > enough else ""), columns)


def moment(seconds: float) -> str:
    """A time for people, in their own time zone."""
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        # A recorded session may carry any number as its time.
        return f"{seconds:.0f}"


def iso(seconds: float) -> str:
    """A time for programs: UTC, to the millisecond."""
    try:
        text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.3f}"
    return text.replace("+00:00", "Z")


def parse_age(text: str) -> float:
    """`90d`, `12h`, `4w`, `6m` (months of 30 days) or `1y` as seconds."""
    match = _AGE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise InputError(f"{text!r} is no age. Write a number and one of h, d, w, m, y: 90d is ninety days.")
    return min(int(match[1]) * _UNITS[match[2]], _LONGEST_AGE)


def parse_moment(text: str) -> float:
    """A date, a date with a time (in the local zone unless it names one), or an age before now, as epoch seconds."""
    if _AGE.fullmatch(text.strip().lower()):
        return time.time() - parse_age(text)
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError) as error:
        raise InputError(f"{text!r} is no time. Write 2026-01-31, 2026-01-31T18:00 or an age such as 7d.") from error


def size(count: int) -> str:
    """Bytes in the unit that suits them."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{count:,} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def plural(count: int, one: str, many: str = "") -> str:
    """`1 message`, `2,000 messages`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
