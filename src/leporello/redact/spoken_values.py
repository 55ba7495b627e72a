"""Whether a word is the value of what was named before it, and where such a value ends."""

from __future__ import annotations

import re

from leporello.lazy_regex import lazy_regex
from leporello.redact.spoken_names import Said, SpokenName
from leporello.redact.values import (
    is_chosen,
    is_code,
    is_dashed_phrase,
    is_file_name,
    is_label,
    is_literal,
    is_opaque_literal,
    is_pass_phrase,
    is_phrase_word,
    is_strange,
    is_worded,
)

TRIM = ".,;:!?)]}*"
SPOKEN_CODE = lazy_regex(
    r"(?=[A-Za-z-]*\d)[A-Za-z0-9]{3,12}(?:-[A-Za-z0-9]{3,12}){1,5}$|\d{4,12}$|(?=[a-z]*\d)[a-z0-9]{8,16}$"
    r"|\d{3,6}(?:[ ]\d{3,6}){1,3}$|(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,8}#?$"
)
_GROUPED = lazy_regex(r"\d{3,4}[ ]\d{3,4}(?:[ ]\d{3,4}){0,2}(?![\d%]|[.,]\d|[ ][A-Za-z]{3})")
"""`493 027`: digits as a telephone shows them."""
_BASE32 = lazy_regex(r"[A-Z2-7]{16,128}=*$")
_CARD_CODE = lazy_regex(r"\d{3,4}$")
PIN = lazy_regex(r"(?:[A-Z]{1,3}-)?\d{4,12}#?$|\d{2,4}(?:-\d{2,4}){1,3}$")
_GENERATED_PART = lazy_regex(r"(?<![A-Za-z0-9])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8,}")
_NEXT_PIECE = lazy_regex(r"""[ ]([^\s"'`<>\\,;:=()\[\]{}/-][^\s"'`<>\\,;:=()\[\]{}]{1,64}+)(?=[\s.,;]|$)""")
_NEXT_WORD = lazy_regex(r"[ ]?([^\W\d_]{2,24}+)(?=[\s.,;]|$)")
CALL = lazy_regex(r"[(\[{]")
_DESCRIBES = lazy_regex(
    r"(?:ed|ing|ive|able|ible|al|ory|ent|ect|ong|eak|ort|er|able|word|phrase|key|text|hash)$", re.IGNORECASE
)
_MOST_PIECES, _PHRASE_WORDS = 8, 3


def is_typed(value: str) -> bool:
    """Nothing but the verb says that it is one: more than a name with a number at its end."""
    digits = sum(map(str.isdigit, value))
    return is_chosen(value) and not is_file_name(value) and (digits > 1 or is_strange(value)) and not CALL.search(value)


def end_of_several(text: str, start: int, name: SpokenName, linked: bool, *, first: bool) -> int | None:
    """Where a pass phrase ends, or digits that are set apart in groups."""
    if linked and "phrase" in name.word and (end := _phrase_end(text, start)) is not None:
        return end
    if name.said is Said.KEY or not (linked or (first and name.said is Said.PIN)):
        return None
    code = _GROUPED.match(text, start)
    return code.end() if code is not None else None


def is_said_quoted(value: str, name: SpokenName) -> bool:
    if " " in value:
        return name.said is Said.PASSWORD and is_pass_phrase(value)
    return is_said(value, name, linked=True) or _is_quoted_word(value, name)


def _is_quoted_word(value: str, name: SpokenName) -> bool:
    """A plain word in quotes is a password when it neither describes one nor names a field."""
    return (
        name.said is Said.PASSWORD
        and name.word != "pass"
        and value.isalpha()
        and value.islower()
        and value.isascii()
        and is_literal(value)
        and not is_label(value)
        and is_phrase_word(value.lower(), first=True)
        and _DESCRIBES.search(value) is None
    )


def is_said(value: str, name: SpokenName, *, linked: bool) -> bool:
    if name.word in ("cvc", "cvv"):
        return _CARD_CODE.match(value) is not None
    if name.said is Said.PIN:
        return (PIN.match(value) is not None and (linked or not name.word.endswith("s"))) or (
            linked and SPOKEN_CODE.match(value) is not None
        )
    if name.word == "seed" and _BASE32.match(value):
        return linked
    if name.said is Said.KEY:
        return (
            is_opaque_literal(value)
            and not (CALL.search(value) or is_code(value))
            and (linked or _GENERATED_PART.search(value) is not None)
        )
    if name.word == "pass":
        return "_" not in value and "/" not in value and is_chosen(value)
    if linked:
        return is_chosen(value) or is_dashed_phrase(value) or is_worded(value)
    return is_literal(value) and is_strange(value) and value[0] not in ")]}"  # expect(password).toBe(...)


def run_end(text: str, end: int) -> int:
    """Where a password of several pieces ends: `p@ss w0rd` is one."""
    for _ in range(_MOST_PIECES):
        token = _NEXT_PIECE.match(text, end)
        if token is None or not is_chosen(token[1].rstrip(TRIM)):
            break
        end = token.start(1) + len(token[1].rstrip(TRIM))
    return end


def _phrase_end(text: str, start: int) -> int | None:
    """Where a pass phrase ends that stands without quotes: several words that no sentence is made of."""
    end, count = start, 0
    while count < _MOST_PIECES * 3:
        word = _NEXT_WORD.match(text, end)
        if word is None or not is_phrase_word(word[1], first=count == 0):
            break
        end, count = word.end(1), count + 1
    return end if count >= _PHRASE_WORDS else None
