"""Stretches of text that hold a secret."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PLACEHOLDER = "[REDACTED]"


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """One secret: code points start..end of the text, and what kind it is. Never the secret itself."""

    start: int
    end: int
    kind: str


def merge(text: str, spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """In order and without overlap; what is a placeholder already, or nothing, is left out."""
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not text[span.start : span.end].replace(PLACEHOLDER, "").strip():
            continue
        last = merged[-1] if merged else None
        if last is not None and span.start < last.end:
            merged[-1] = SecretSpan(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged
