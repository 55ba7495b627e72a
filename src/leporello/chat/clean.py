"""Text on its way to a terminal: nothing that a model, a tool or a file says may move the cursor or change colours."""

from __future__ import annotations

import re

_DANGEROUS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
_IN_BLOCK = re.compile(f"[{_DANGEROUS}]")
# Colours of a program's output say little without the rest of its screen: they are taken out, not shown as escapes.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")


def clean(text: str) -> str:
    """Lines without anything a terminal would obey; what is taken out is shown as an escape."""
    return _IN_BLOCK.sub(_escaped, _COLOURS.sub("", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """The same, with runs of blanks as one."""
    return clean(" ".join(text.split()))


def _escaped(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
