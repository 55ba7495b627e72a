"""Checking a model's narrative against the turns it covers. Deterministic; what has no support goes.

A line stays when every identifier, path, number and quotation in it occurs in the turns (or in the handoff before), and
when a claim about what the user asked is backed by a user message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from leporello.ledger.calls import result_text
from leporello.messages import calls_of, is_result, role_of, text_of
from leporello.records import Verification
from leporello.summary.base import SummaryTask
from leporello.summary.handoff import Handoff, Line, Origin, render

_QUOTED = re.compile(r"“([^”]{3,})”|\"([^\"]{3,})\"|`([^`]{2,})`|「([^」]{2,})」")
_PATH = re.compile(r"[\w.~@-]*/[\w./@~-]*\w|\b[\w-]+\.(?:py|go|ts|tsx|js|json|md|ya?ml|toml|rs|sql|sh|txt|cfg)\b")
_SYMBOL = re.compile(r"\b[A-Za-z]\w*(?:_\w+)+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z]+(?:[A-Z]\w+)+\b|--[a-z][\w-]+")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)*(?:[kKmM](?![A-Za-z]))?")
_USER_CLAIM = re.compile(
    r"\b(?:the )?user (?:asked|wants?|wanted|requested|said|decided|prefers?|told|needs?)\b|用户(?:要求|希望|说)", re.I
)
_SPACE = re.compile(r"\s+")
SMALL_NUMBER = 12
"""Counts up to a dozen are words of the sentence more often than facts."""


def verify(handoff: Handoff, task: SummaryTask) -> tuple[Handoff, Verification]:
    """The handoff without unsupported lines, and the counts."""
    source = Source(task)
    kept: dict[object, list[Line]] = {}
    dropped: list[str] = []
    checked = 0
    for section, line in handoff.lines():
        checked += 1
        if source.supports(line):
            kept.setdefault(section, []).append(line)
        else:
            dropped.append(line.text)
    result = Handoff({section: tuple(lines) for section, lines in kept.items()})  # type: ignore[misc]
    return result, Verification(lines_checked=checked, lines_dropped=len(dropped), dropped=tuple(dropped))


class Source:
    """The covered turns, prepared for look-ups."""

    def __init__(self, task: SummaryTask) -> None:
        self.roles = {number: role_of(message) for number, message in task.messages}
        pieces = [text for _, message in task.messages for text in _texts(message)]
        if task.previous is not None:
            pieces.append(render(task.previous))
        self.text = fold("\n".join(pieces))
        self.user_text = fold("\n".join(text_of(m) for _, m in task.messages if role_of(m) == "user"))
        self.numbers = {plain_number(found) for found in _NUMBER.findall(self.text)}

    def supports(self, line: Line) -> bool:
        """Whether everything checkable in a line occurs in the turns."""
        text = line.text
        quotes = [next(group for group in match if group) for match in _QUOTED.findall(text)]
        if not all(self._has(quote) for quote in quotes):
            return False
        if not all(self._has(found) for found in self._names(text)):
            return False
        if not all(self._has_number(found) for found in _NUMBER.findall(_HASH.sub(" ", text))):
            return False
        return self._who_said_it(line, quotes)

    def _names(self, text: str) -> Iterable[str]:
        for pattern in (_PATH, _SYMBOL, _HASH):
            yield from pattern.findall(text)

    def _has(self, piece: str) -> bool:
        return fold(piece.strip(".,;:")) in self.text

    def _has_number(self, found: str) -> bool:
        value = plain_number(found)
        return value in self.numbers or (value.isdigit() and int(value) <= SMALL_NUMBER)

    def _who_said_it(self, line: Line, quotes: list[str]) -> bool:
        if not _USER_CLAIM.search(line.text):
            return True
        if any(fold(quote) in self.user_text for quote in quotes):
            return True
        return line.origin is not Origin.MODEL or any(self.roles.get(number) == "user" for number in line.sources)


def _texts(message: dict[str, object]) -> Iterable[str]:
    yield result_text(message) if is_result(message) else text_of(message)
    for call in calls_of(message):
        yield call.name
        yield call.arguments.replace("\\n", "\n").replace('\\"', '"')


def fold(text: str) -> str:
    """Case and white space folded."""
    return _SPACE.sub(" ", text).strip().casefold()


def plain_number(text: str) -> str:
    """A number without separators: 12,000 and 12k are 12000, 8.0 is 8."""
    value = text.replace(",", "")
    factor = {"k": 1_000, "m": 1_000_000}.get(value[-1:].casefold(), 0)
    if factor:
        try:
            return str(int(float(value[:-1]) * factor))
        except ValueError:
            return value
    return re.sub(r"\.0+$", "", value)
