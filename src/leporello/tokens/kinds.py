"""What kind of text this is, as far as vocabularies differ on it: prose, code, JSON, logs, or CJK."""

from __future__ import annotations

from enum import StrEnum

SAMPLE = 4_096


class Kind(StrEnum):
    """Kinds of text on which the ratio between two vocabularies differs."""

    PROSE = "prose"
    CODE = "code"
    JSON = "json"
    LOG = "log"
    CJK = "cjk"


def kind_of(text: str) -> Kind:
    """The kind of a text, judged by a sample; constant work for any length."""
    sample = text if len(text) <= SAMPLE else text[: SAMPLE // 2] + text[len(text) // 2 : len(text) // 2 + SAMPLE // 2]
    if not sample:
        return Kind.PROSE
    length = len(sample)
    if not sample.isascii():
        wide = sum(1 for char in sample if char > "\u2e7f")
        if wide * 5 > length:
            return Kind.CJK
    stripped = sample.lstrip()
    if stripped[:1] in "{[" and sample.count('"') * 25 > length:
        return Kind.JSON
    digits = sum(map(sample.count, "0123456789"))
    if digits * 8 > length:
        return Kind.LOG
    marks = sum(map(sample.count, "{}()[];=<>/_\\|#*`$&"))
    if marks * 25 > length or sample.count("\n    ") * 60 > length:
        return Kind.CODE
    return Kind.PROSE
