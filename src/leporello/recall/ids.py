"""Ids as models write them: `m12`, `[m12]`, `m10-m20`, `f3`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leporello.errors import InputError
from leporello.events import Span
from leporello.recall.base import FoldRecord

_MESSAGES = re.compile(r"\[?\s*+m?(\d{1,12})\s*+(?:(?:-|–|\.\.|to)\s*+m?(\d{1,12}))?\s*+\]?", re.IGNORECASE)
_FOLD = re.compile(r"\[?\s*(f\w{1,64})\s*\]?", re.IGNORECASE)


def find(id: object, newest: int, folds: Sequence[FoldRecord]) -> tuple[Span, FoldRecord | None]:
    """The span an id stands for, and the fold when it is one; `InputError` says what is wrong and what exists."""
    text = str(id).strip() if isinstance(id, str | int) and not isinstance(id, bool) else ""
    messages = _MESSAGES.fullmatch(text)
    if messages:
        return _span(messages, text, newest), None
    named = _FOLD.fullmatch(text)
    if named is None:
        raise InputError(f"{id!r} is no id: give a message (m12), a span (m10-m20) or a fold (f3)")
    for fold in folds:
        if fold.id.lower() == named[1].lower():
            return fold.covered, fold
    known = ", ".join(fold.id for fold in folds[-10:])
    raise InputError(
        f"there is no fold {named[1]}" + (f"; the newest are {known}" if known else "; nothing is folded yet")
    )


def _span(found: re.Match[str], text: str, newest: int) -> Span:
    first = int(found[1])
    last = int(found[2]) if found[2] else first
    if first > last:
        raise InputError(f"{text} runs backwards: write m{last}-m{first}")
    if newest == 0:
        raise InputError("the conversation has no messages yet")
    if first < 1 or first > newest:
        raise InputError(f"there is no message m{first}; messages are m1 to m{newest}")
    return Span(first, min(last, newest))
