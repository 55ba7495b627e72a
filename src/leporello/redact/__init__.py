"""Keeps secrets out of derived text: summaries, indexes, logs.

    redact('DB_PASSWORD=hunter2 make deploy')   ->   'DB_PASSWORD=[REDACTED] make deploy'

A library knows the vendors' key formats; our own rules add what it leaves to others: assignments in code, config files
and command lines, passwords in addresses and in sentences, key blocks. Ordinary code that only *mentions* a password is
left alone. Live tool arguments and results are never passed through here.
"""

from __future__ import annotations

from dataclasses import dataclass

from leporello.redact.assignments import assignment_spans
from leporello.redact.patterns import SecretSpan, library_spans, lowered_of, merge, shape_spans
from leporello.redact.prose import spoken_spans
from leporello.redact.values import PLACEHOLDER

__all__ = ["PLACEHOLDER", "Redaction", "SecretSpan", "redact", "redact_counted", "redact_spans"]


@dataclass(frozen=True, slots=True)
class Redaction:
    text: str
    count: int


def redact(text: str) -> str:
    """The text with every secret replaced by `[REDACTED]`. Doing it twice changes nothing more."""
    return redact_counted(text).text


def redact_counted(text: str) -> Redaction:
    count = 0
    # Taking one secret out can bring the words around it into a pattern of their own, so look again until nothing is
    # found. Each round turns text into placeholders for good, so this ends; a text without secrets is read once.
    while spans := redact_spans(text):
        count += len(spans)
        text = _replace(text, spans)
    return Redaction(text, count)


def redact_spans(text: str) -> list[SecretSpan]:
    """Where the secrets are: in order, not overlapping, placeholders excluded."""
    lowered = lowered_of(text)
    ours = (*shape_spans(text, lowered), *assignment_spans(text, lowered), *spoken_spans(text, lowered))
    return merge(text, [*ours, *library_spans(text)])


def _replace(text: str, spans: list[SecretSpan]) -> str:
    pieces = []
    position = 0
    for span in spans:
        pieces += [text[position : span.start], PLACEHOLDER]
        position = span.end
    pieces.append(text[position:])
    return "".join(pieces)
