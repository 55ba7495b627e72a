"""Vendors' key formats, by the `redact-secret` library.

Its search for JSON web tokens takes quadratic time on a text full of their first letters. So it is given pieces of
bounded size, and pieces that would be slow have those letters blunted (our own rule finds such tokens).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import redact_secret

from leporello.redact.spans import SecretSpan

PIECE = 32_768
OVERLAP = 1_024
"""Longer than the vendors' keys: one that a cut between pieces goes through is seen whole in the next piece."""
_TOKEN_START = "eyJ"
_MANY_STARTS = 64
# Guesses by the name of a variable take ordinary code along; of a private key we keep the frame.
_OURS = ("contextual_secret", "private_key")
_SURROGATE = re.compile("[\ud800-\udfff]")


def library_spans(text: str) -> Iterator[SecretSpan]:
    """What the library would mask, without what our own rules do better."""
    for offset, piece in _pieces(text):
        for finding in redact_secret.scan(_scannable(piece)):
            if finding.action != "warn" and finding.type not in _OURS:
                yield SecretSpan(offset + finding.start, offset + finding.end, finding.type)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while True:
        end = start + PIECE
        if end >= len(text):
            yield start, text[start:]
            return
        line_end = text.rfind("\n", start + PIECE // 2, end)
        if line_end >= 0:
            yield start, text[start : line_end + 1]
            start = line_end + 1
        else:
            yield start, text[start:end]
            start = end - OVERLAP


def _scannable(piece: str) -> str:
    if piece.count(_TOKEN_START) > _MANY_STARTS:
        piece = piece.replace(_TOKEN_START, "eyX")
    try:
        piece.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", piece)
    return piece
