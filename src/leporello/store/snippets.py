"""The part of a text that answers a query best, short enough for one line of a listing."""

from __future__ import annotations

import re

from leporello.text_features.words import index_words, query_words

LONGEST = 240
_LINE = re.compile(r"[^\n]+")


def snippet(text: str, query: str) -> str:
    """Around the query itself where the text has it, else around the line that shares most words with it."""
    place = text.casefold().find(query.casefold()) if query else 0
    if place < 0:
        place = _best_line(text, query)
    start = max(0, place - LONGEST // 4)
    piece = " ".join(text[start : start + LONGEST].split())
    return ("..." if start else "") + piece + ("..." if start + LONGEST < len(text) else "")


def _best_line(text: str, query: str) -> int:
    wanted = set(query_words(query))
    best, place = 0, 0
    for line in _LINE.finditer(text):
        shared = len(wanted.intersection(index_words(line.group())))
        if shared > best:
            best, place = shared, line.start()
    return place
