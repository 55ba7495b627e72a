"""Does a quotation carry what a true line said? Judged strictly, and without the verifier's own code.

Every identifier, number and quotation of the line must stand in the quotation, and it must come from the message (or
the call that the message answers) that the line was made from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from leporello.messages import Message, calls_of, is_result
from leporello.summaries.handoff import HandoffLine

_SAID = re.compile(r"“([^”]+)”|\"([^\"]+)\"|`([^`]+)`")
_NAME = re.compile(
    r"(?<!\w)--?[a-z][\w-]+|[\w.~-]*/[\w./-]*\w|\b[A-Za-z_]\w*(?:[._]\w+)+\b|\b\d+(?:\.\d+){2,}[\w.-]*|\b[a-z]+[A-Z]\w*|\b[A-Z]+-\d+\b"
    r"|\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}\b"
)
_NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)([kKM]?)(?!\w*[A-Za-z_]{3})")
_SCALE = {"k": 1e3, "K": 1e3, "M": 1e6, "": 1.0}
ROUNDING = 0.06


def carries(text: str, places: Collection[int], quotations: Sequence[HandoffLine], messages: Sequence[Message]) -> bool:
    """Whether quotations carry a line's identifiers, numbers and quoted words, and come from where it came from."""
    if not quotations or not any(number in _around(places, messages) for line in quotations for number in line.sources):
        return False
    said = _flat("\n".join(line.text for line in quotations))
    rest = text
    for match in _SAID.finditer(text):
        pieces = re.split(r"\s*…\s*", next(group for group in match.groups() if group))
        if not all(_flat(piece).rstrip(".!?") in said for piece in pieces):
            return False
        rest = rest.replace(match.group(), " ")
    names = [match.group().lstrip("…/").rstrip(".") for match in _NAME.finditer(rest)]
    bare = _NAME.sub(" ", rest)
    known = [_value(match) for match in _NUMBER.finditer(said)]
    numbers = [(_value(match), match) for match in _NUMBER.finditer(bare)]
    return all(_flat(name) in said for name in names) and all(
        any(_same(value, other, bare, match) for other in known) for value, match in numbers
    )


def _around(places: Collection[int], messages: Sequence[Message]) -> set[int]:
    """The messages themselves, and those that made the calls they answer."""
    found = set(places)
    for number in places:
        caller = number
        while caller > 1 and is_result(messages[caller - 1]):
            caller -= 1
        if calls_of(messages[caller - 1]):
            found.add(caller)
    return found


def _flat(text: str) -> str:
    return re.sub(r"[\s*`]+", " ", text.replace("’", "'")).strip().casefold()


def _value(match: re.Match[str]) -> float:
    return float(match[1].replace(",", "").rstrip(".")) * _SCALE[match[2]]


def _same(value: float, other: float, text: str, match: re.Match[str]) -> bool:
    if re.match(r" ?s\b", text[match.end() :]) and abs(1000 * value - other) <= 1e-6:
        # Seconds told as milliseconds.
        return True
    rounded = bool(match[2]) or bool(re.search(r"(?:about |~)$", text[: match.start()]))
    return abs(value - other) <= (ROUNDING * other if rounded else 1e-9)
