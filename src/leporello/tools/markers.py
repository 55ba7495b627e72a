"""Marks that stand for text which is not there, and the check that none of them is written into a file.

A model that sees a shortened text may copy the mark as if it were content. So every mark has an unmistakable form, and
tools that write refuse text with a mark that the file does not hold already.
"""

from __future__ import annotations

import re
from collections import Counter

from leporello.errors import ToolError

_MARKS = (
    re.compile(r"\[REDACTED\b[^\]\n]{0,80}\]"),
    re.compile(r"\[… [^\]\n]{0,300} …\]"),
    re.compile(r"\[…\]"),
    re.compile(r"\[[^\[\]\n]{0,400}(?:output cleared here, kept as|same output as) m\d+\]"),
    re.compile(r"\[old tool output cleared\]|\[image of an earlier turn\]"),
    re.compile(r"</?persisted-output>"),
    re.compile(r"</?leporello-fold\b"),
)


def cut_mark(what: str) -> str:
    """The mark for text that was left out, such as `[… 1,200 characters not shown …]`."""
    return f"[… {what} …]"


def marks_in(text: str) -> Counter[str]:
    return Counter(match.group() for pattern in _MARKS for match in pattern.finditer(text))


def refuse_marks(new: str, old: str = "", *, where: str) -> None:
    """Raise `ToolError` when `new` has marks that `old` has not: they stand for text the model never saw."""
    surplus = marks_in(new) - marks_in(old)
    if not surplus:
        return
    example = next(iter(surplus))
    raise ToolError(
        f"the text for {where} contains {example!r}, which stands for text that was left out or masked in this "
        "conversation, so writing it would destroy the real content. Read the original and use its real text. "
        "If these very characters are meant, set literal_marks to true."
    )
