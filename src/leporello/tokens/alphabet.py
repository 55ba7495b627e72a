"""What a text is made of: counts of a few kinds of characters, taken at memory speed.

Vocabularies disagree in a regular way: one charges more for capitals, one for indentation, one for Hangul. So the
count of a vocabulary that nobody has can be estimated from the o200k count plus a small charge per kind of character.
All charges are zero or more, which keeps the estimate additive and growing with the text, and there is no threshold at
which a text is suddenly "code" instead of "prose".
"""

from __future__ import annotations

# Some are neighbours: a capital after a small letter (camelCase), a small letter after a mark, two blanks.
ASCII_KINDS = ("upper", "digit", "mark", "newline", "camel", "mark_lower", "blanks", "lower")
_ASCII_PATTERNS = (b"U", b"D", b"p", b"n", b"lU", b"pl", b"ss", b"l")

# By the first byte of their UTF-8 form, which names the script well enough.
SCRIPTS = (
    "latin", "greek", "cyrillic", "semitic", "indic", "latin_more", "symbol", "kana", "han", "hangul", "wide", "emoji",
)  # fmt: skip
_SCRIPT_PATTERNS = (b"L", b"G", b"R", b"A", b"I", b"V", b"Y", b"J", b"H", b"K", b"F", b"E")

KINDS = ASCII_KINDS + SCRIPTS


def _table() -> bytes:
    classes = bytearray(b"x" * 256)
    for members, mark in (
        (range(0x41, 0x5B), b"U"),
        (range(0x61, 0x7B), b"l"),
        (range(0x30, 0x3A), b"D"),
        (b" ", b"s"),
        (b"\n", b"n"),
        (b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", b"p"),
        (range(0xC2, 0xCC), b"L"),
        (range(0xCE, 0xD0), b"G"),
        (range(0xD0, 0xD4), b"R"),
        ((0xCC, 0xCD, *range(0xD4, 0xDC)), b"A"),
        ((0xE0,), b"I"),
        ((0xE1,), b"V"),
        ((0xE2, 0xEE), b"Y"),
        ((0xE3,), b"J"),
        (range(0xE4, 0xEA), b"H"),
        (range(0xEA, 0xEE), b"K"),
        ((0xEF,), b"F"),
        (range(0xF0, 0xF5), b"E"),
    ):
        for member in members:
            classes[member] = mark[0]
    return bytes(classes)


_CLASSES = _table()


def kind_counts(text: str) -> list[int]:
    """How often each of KINDS occurs; the script entries are left out for plain ASCII."""
    ascii_only = text.isascii()
    classes = text.encode("utf-8", "replace").translate(_CLASSES)
    counts = [classes.count(pattern) for pattern in _ASCII_PATTERNS]
    if not ascii_only:
        counts += [classes.count(pattern) for pattern in _SCRIPT_PATTERNS]
    return counts
