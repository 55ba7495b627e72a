"""Texts from anywhere as they may stand on a page, and numbers as people read them.

Escaping is the templates' work. What is done here is for characters that are no letters: those that move a terminal's
cursor, end a string or turn the direction of a line are shown by name instead.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

FIRST_CHARACTERS = 1_500
"""How much of a text a page shows at first."""
PIECE_CHARACTERS = 20_000
"""How much more is fetched at a time."""
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+=-]{0,199}")
_TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)


def _shown_names() -> dict[int, str]:
    table = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
    table[0x7F] = "\u2421"
    for code in (*range(0x80, 0xA0), *_TURNING):
        table[code] = f"\u2039U+{code:04X}\u203a"
    return table


_TABLE = _shown_names()
_LONE = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    """A text with every control character shown by its sign or its number, and halves of characters replaced."""
    return _LONE.sub("\ufffd", text.replace("\r\n", "\n")).translate(_TABLE)


def one_line(text: str, most: int) -> str:
    """The beginning of a text in one line."""
    line = " ".join(visible(text[: most * 4]).split())
    if len(line) <= most:
        return line
    whole = line[: most - 1].rpartition(" ")[0]
    return (whole if len(whole) > most // 2 else line[: most - 1]).rstrip(" .,;:") + "…"


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A stretch of a long text."""

    text: str
    following: int
    """Where the next piece begins; 0 when this is the end."""
    left: int
    """Characters that are not shown yet."""


def piece(text: str, start: int = 0, most: int = PIECE_CHARACTERS) -> TextPiece:
    """A stretch of a text, as it is shown. A little more is not worth another click."""
    end = start + most
    if end + most // 10 >= len(text):
        end = len(text)
    left = len(text) - end
    return TextPiece(visible(text[start:end]), end if left else 0, left)


def digest(*values: object) -> str:
    """A short text that stands for values and changes with them."""
    return hashlib.blake2b(repr(values).encode("utf-8", "backslashreplace"), digest_size=9).hexdigest()


# -- addresses


def slug(id: str) -> str:
    """An id as a part of an address; ids are any text, addresses are not."""
    if _PLAIN_ID.fullmatch(id):
        return id
    return "~" + base64.urlsafe_b64encode(id.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def unslug(part: str) -> str:
    """The id behind a part of an address; what is none of ours is taken as it stands, and will not be found."""
    if not part.startswith("~"):
        return part
    try:
        data = base64.urlsafe_b64decode(part[1:] + "=" * (-len(part[1:]) % 4))
        return data.decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return part


# -- numbers and times


def count(number: float) -> str:
    """With thousands marked."""
    return f"{number:,.0f}"


def short_count(number: float) -> str:
    """Three digits and a unit: 950, 12.3K, 4.41M."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= size * 0.9995:
            value = number / size
            digits = 2 if value < 10 and unit != "K" else 1 if value < 100 else 0
            return f"{value:.{digits}f}".rstrip("0").rstrip(".") + unit if digits else f"{value:.0f}{unit}"
    return f"{number:.0f}"


def money(dollars: float) -> str:
    """US dollars with as many digits as say something."""
    if dollars >= 100:
        return f"${dollars:,.0f}"
    return f"${dollars:.2f}" if dollars >= 0.0995 or dollars == 0 else f"${dollars:.4f}".rstrip("0")


def percent(share: float) -> str:
    """A share of one."""
    return f"{share * 100:.0f}%" if share >= 0.0995 or share == 0 else f"{share * 100:.1f}%"


def byte_size(number: int) -> str:
    """Bytes or characters in a unit that fits."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.0f}K" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def iso(moment: float) -> str:
    """A time for machines."""
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""


def clock(moment: float) -> str:
    """A time for people; the page's script turns it into local time."""
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"
