"""A few words to know a conversation by: the user's own, secrets masked."""

from __future__ import annotations

import re
from itertools import islice

from leporello.ledger.own_words import own_words
from leporello.redact import redact

TITLE_CHARS = 80
_LOOKED_AT = 20
_ENOUGH = 100_000
"""Characters of one message that are looked at: a title is at its beginning, or it has none."""
_TAG = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>\n]{0,200})?/?>")
_REQUEST = re.compile(r"^#+ My request\b[^\n]*\n", re.MULTILINE)
"""Editors put what they have open before the question, under headings."""
_WORD = re.compile(r"[^\W\d_]{2}")


def title_of(*texts: str, most: int = TITLE_CHARS) -> str:
    """The beginning of the first text in which somebody says something; the first text at all when nobody does.

    What a program put into a user message (its context, the output of commands) is no title, nor is a bare number.
    """
    fallback = ""
    for text in islice(filter(None, texts), _LOOKED_AT):
        begin = redact(text)[:_ENOUGH]
        fallback = fallback or begin
        words = _said(begin)
        if _WORD.search(words):
            return one_line(words, most)
    return one_line(fallback, most)


def _said(text: str) -> str:
    """What the user wrote, without blocks of programs and without tags around it."""
    words = own_words(text)
    while (less := own_words(words)) != words:  # blocks that stood in one line with another
        words = less
    asked = _REQUEST.search(words)
    return _TAG.sub(" ", words[asked.end() :] if asked else words)


def one_line(text: str, most: int) -> str:
    """The beginning of a text as one line, secrets masked."""
    # A secret is masked as a whole before anything is cut, and once more where line ends became blanks.
    line = redact(" ".join(redact(text)[: most * 20].split()))
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
