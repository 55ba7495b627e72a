"""Text, numbers and times as people read them; text from anywhere is made safe to show.

One table says which characters are dangerous: those that drive a terminal, hide text, turn the direction of a line or
are half of a character. Terminals show them as escapes (`\\x1b`), pages as signs (`␛`, `‹U+202E›`), JSON as `\\u001b`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from unicodedata import combining, east_asian_width

from leporello.errors import InputError
from leporello.lazy_regex import lazy_regex

ELLIPSIS = "…"

_DANGEROUS = lazy_regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
# Colours of a program's output say little without the rest of its screen: they are removed, not shown as escapes.
_COLOURS = lazy_regex(r"\x1b\[[0-9;:]*m")
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_AGE = lazy_regex(r"([0-9]{1,40})\s*([a-z]+)")
_DAY = 86_400.0
_UNITS = {"h": 3_600.0, "d": _DAY, "w": 7 * _DAY, "m": 30 * _DAY, "y": 365 * _DAY}
_LONGEST_AGE = 1_000_000 * _DAY
_UNREADABLE = (OverflowError, ValueError, OSError)  # a recorded session may carry any number as its time


def as_escape(character: str) -> str:
    """The escape of a Python string, for terminals."""
    number = ord(character)
    if character == "\r":
        return "\\r"
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def as_sign(character: str) -> str:
    """A visible sign, for pages; half of a character is shown as a replacement character."""
    number = ord(character)
    if number < 0x20:
        return chr(0x2400 + number)
    if number == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= number < 0xE000 else f"\u2039U+{number:04X}\u203a"


def as_json(character: str) -> str:
    """The escape of a JSON string."""
    return json.dumps(character)[1:-1]


def escaped(text: str, write: Callable[[str], str] = as_escape) -> str:
    """The text with every dangerous character written out; tabs and line feeds stay."""
    return _DANGEROUS.sub(lambda match: write(match.group()), text)


# -- for terminals


def safe(text: str) -> str:
    """One line: tabs and line feeds are escaped too."""
    return escaped(text).replace("\t", "\\t").replace("\n", "\\n")


def safe_block(text: str) -> str:
    """Several lines: tabs and line feeds stay."""
    return escaped(text.replace("\r\n", "\n"))


def clean(text: str) -> str:
    """Several lines of a program's output: `safe_block` without colour codes."""
    return safe_block(_COLOURS.sub("", text))


def one_line(text: str) -> str:
    """`clean`, with runs of white space as one space."""
    return clean(" ".join(text.split()))


def short(text: str, columns: int) -> str:
    """The beginning of a text as one safe line of at most `columns` columns."""
    # A little more than can be shown is enough to look at: titles may be megabytes.
    line = safe(text[: columns + 1])
    return line if breadth(line) <= columns and len(text) <= columns else _cut(line, columns)


def words_of(text: str, columns: int) -> str:
    """The beginning of a text of many lines as one safe line, with runs of white space as one space."""
    enough = columns * 8
    return short(" ".join(text[:enough].split()) + (ELLIPSIS if len(text) > enough else ""), columns)


def cut(text: str, columns: int) -> str:
    """A text in at most `columns` columns; an ellipsis marks what was cut off."""
    return text if breadth(text) <= columns else _cut(text, columns)


def cut_middle(text: str, letters: int) -> str:
    """A name in at most so many letters: its beginning and its end tell it from others."""
    if len(text) <= letters:
        return text
    front = letters // 2
    return text[:front] + ELLIPSIS + text[front + 1 - letters :]


def _cut(text: str, columns: int) -> str:
    text = text[: columns * 4]  # more letters than that are never shown, and each one is tried
    while text and breadth(text) >= columns:
        text = text[:-1]
    return text + ELLIPSIS


def breadth(text: str) -> int:
    """How many columns a text takes on a terminal: East Asian wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text if not combining(letter))


# -- for pages; the templates escape HTML


def visible(text: str) -> str:
    """Several lines: dangerous characters are shown as signs."""
    return escaped(text.replace("\r\n", "\n"), as_sign)


def visible_line(text: str, most: int) -> str:
    """The beginning of a text as one line of at most `most` characters, cut between words where possible."""
    line = " ".join(visible(text[: most * 4]).split())
    if len(line) <= most:
        return line
    whole = line[: most - 1].rpartition(" ")[0]
    return (whole if len(whole) > most // 2 else line[: most - 1]).rstrip(" .,;:") + ELLIPSIS


_MARKDOWN = lazy_regex(r"(?m)^[ \t]{0,8}(?:(?:[-*+>]|#{1,6}|\d{1,3}[.)]) )+|\*\*|`{1,3}")


def without_markdown(text: str) -> str:
    """A piece of Markdown as one reads it: without its list, heading, bold and code marks."""
    return _MARKDOWN.sub("", text)


# -- numbers, sizes and money


def count(number: float) -> str:
    """`1,234`."""
    return f"{number:,.0f}"


def plural(number: int, one: str) -> str:
    """`1 message`, `2,000 messages`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def short_count(number: float) -> str:
    """Three digits and a unit: `950`, `12.3K`, `4.41M`."""
    for unit_size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= unit_size * 0.9995:
            value = number / unit_size
            digits = 2 if value < 10 and unit != "K" else 1 if value < 100 else 0
            return f"{value:.{digits}f}".rstrip("0").rstrip(".") + unit if digits else f"{value:.0f}{unit}"
    return f"{number:.0f}"


def percent(share: float) -> str:
    """A share of one: `87%`, `2.4%`, `99.7%`; only all of it is `100%`."""
    if 0.995 <= share < 1:
        return f"{min(share, 0.999) * 100:.1f}%"
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
