"""The facts of one message, extracted when it arrives; and lines of earlier summaries that nobody vouches for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from leporello.ledger import importance
from leporello.ledger.calls import UNKNOWN_CALL, CallFacts, describe, ended, looks_failed, result_text
from leporello.ledger.importance import worth
from leporello.ledger.line_features import IDENTIFIER, identifiers, lines_of, sentences_of
from leporello.messages import Message, ToolCall, calls_of, is_result, role_of, text_of

UNITS_PER_RESULT = 48
UNITS_PER_TEXT = 240
IDENTIFIERS_READ_CHARS = 200_000
ROLES = ("user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """A unit with the part of its importance that is known at once."""

    text: str
    position: int
    base: float
    identifiers: tuple[str, ...]
    most: float = math.inf
    """The highest worth it can ever have; unbounded when nobody worked it out."""


@dataclass(frozen=True, slots=True)
class MessageFacts:
    role: str
    """`user`, `assistant`, `tool`, or empty for messages that are never quoted (instructions, folds)."""
    units: tuple[UnitFacts, ...] = ()
    mentions: frozenset[str] = frozenset()
    """Identifiers in the text."""
    uses: frozenset[str] = frozenset()
    """Identifiers in the arguments of its calls."""
    calls: tuple[CallFacts, ...] = ()
    answers: CallFacts | None = None
    """For a result: the call it answers."""
    ended: str = ""
    failed: bool = False
    chars: int = 0


def extract(message: Message, answers: ToolCall | None = None) -> MessageFacts:
    """The facts of a message without secrets (`redact.messages.masked`); `answers` is the call a result belongs to."""
    role = "tool" if is_result(message) else role_of(message)
    if role not in ROLES:
        return MessageFacts("")
    if role == "tool":
        return _result_facts(message, describe(answers) if answers else UNKNOWN_CALL)
    text = storable(text_of(message))
    calls = tuple(calls_of(message))
    return MessageFacts(
        role=role,
        units=tuple(_prose_units(text, role)),
        mentions=_mentions(text),
        uses=frozenset().union(*(_mentions(call.arguments) for call in calls)),
        calls=tuple(describe(call) for call in calls),
        chars=len(text),
    )


def _result_facts(message: Message, call: CallFacts) -> MessageFacts:
    text = storable(result_text(message))
    return MessageFacts(
        role="tool",
        units=tuple(_best_lines(text, call.work)),
        mentions=_mentions(text),
        answers=call,
        ended=ended(message, text),
        failed=looks_failed(text),
        chars=len(text),
    )


def _prose_units(text: str, role: str) -> Iterator[UnitFacts]:
    sentences = sentences_of(text)
    total = len(sentences)
    for position, sentence in enumerate(sentences[:UNITS_PER_TEXT]):
        features = importance.text_features(sentence, role, position, total)
        yield _unit(sentence, position, importance.weigh(features), role)


def _best_lines(text: str, work: str) -> list[UnitFacts]:
    scored = []
    for line, position, total in lines_of(text):
        features = importance.text_features(line, "tool", position, total, work)
        scored.append((importance.weigh(features), position, line))
    scored.sort(key=lambda entry: (-entry[0], entry[1]))
    best = sorted(scored[:UNITS_PER_RESULT], key=lambda entry: entry[1])
    return [_unit(line, position, base, "tool") for base, position, line in best]


def _unit(text: str, position: int, base: float, role: str) -> UnitFacts:
    names = identifiers(text)
    # A trifle more, so that rounding never makes the bound smaller than what it bounds.
    most = worth(base + importance.most_later(role, len(names)), len(text.strip())) * 1.000_001
    return UnitFacts(text, position, base, names, most)


def storable(text: str) -> str:
    """The text with lone surrogates replaced: facts are kept as UTF-8; the message itself keeps its bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _mentions(text: str) -> frozenset[str]:
    return frozenset(IDENTIFIER.findall(text[:IDENTIFIERS_READ_CHARS]))


@dataclass(frozen=True, slots=True)
class EarlierLine:
    section: str
    role: str
    """Whose words it says it is, by which it is weighed against other quotations; empty for a plain statement."""
    unit: UnitFacts
    is_rule: bool = False
    """Whether it says it is a rule: what the user takes back is no longer carried on."""

    @property
    def text(self) -> str:
        return self.unit.text


def earlier_line(section: str, role: str, text: str, position: int, *, is_rule: bool = False) -> EarlierLine:
    """The line with its importance, as far as it is known at once."""
    odds = importance.weigh(importance.text_features(text, role, 0, 1)) if role else 0.0
    return EarlierLine(section, role, UnitFacts(text, position, odds, identifiers(text)), is_rule)
