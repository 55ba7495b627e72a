"""Text from anywhere, made safe to show.

One table says which characters are dangerous: those that drive a terminal, hide text, turn the direction of a line or
are half of a character. Terminals show them as escapes (`\\x1b`), pages as signs (`␛`, `‹U+202E›`), JSON as `\\u001b`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from unicodedata import combining, east_asian_width

ELLIPSIS = "…"

_DANGEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
# Colours of a program's output say little without the rest of its screen: they are removed, not shown as escapes.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")


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


def _cut(text: str, columns: int) -> str:
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
