"""The facts of one message, extracted when it arrives; and lines of earlier summaries that nobody vouches for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.ledger.calls import UNKNOWN_CALL, CallFacts, describe, ended, looks_failed, result_text
from leporello.ledger.importance import Source, Vocabulary, score_units
from leporello.ledger.units import lines_of, placed_sentences
from leporello.ledger.user_text import strip_injected
from leporello.messages import Message, ToolCall, is_result, role_of, text_of

UNITS_PER_RESULT = 48
UNITS_PER_TEXT = 240
ROLES = ("user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """A piece of a message, where it stands among the others, and how much it tells for what it costs."""

    text: str
    position: int
    score: float


@dataclass(frozen=True, slots=True)
class MessageFacts:
    role: str
    """`user`, `assistant`, `tool`, or empty for messages that are never quoted (instructions, folds)."""
    units: tuple[UnitFacts, ...] = ()
    answers: CallFacts | None = None
    """For a result: the call it answers."""
    ended: str = ""
    failed: bool = False
    chars: int = 0


def extract(message: Message, vocabulary: Vocabulary, answers: ToolCall | None = None) -> MessageFacts:
    """The facts of a message without secrets (`redact.messages.masked`); `answers` is the call a result belongs to."""
    role = "tool" if is_result(message) else role_of(message)
    if role not in ROLES:
        return MessageFacts("")
    if role == "tool":
        return _result_facts(message, vocabulary, describe(answers) if answers else UNKNOWN_CALL)
    text = storable(text_of(message))
    if role == "user":
        text = strip_injected(text)
    units = placed_sentences(text)[:UNITS_PER_TEXT]
    source = Source(role, len(text), units[-1][1] + 1 if units else 0)
    return MessageFacts(role, scored_units(vocabulary, source, units), chars=len(text))


def _result_facts(message: Message, vocabulary: Vocabulary, call: CallFacts) -> MessageFacts:
    text = storable(result_text(message))
    lines = [(line.strip(), position) for line, position, _ in lines_of(text)]
    units = scored_units(vocabulary, Source("tool", len(text), len(lines), call.work), lines)
    return MessageFacts(
        role="tool",
        units=_best(units, UNITS_PER_RESULT),
        answers=call,
        ended=ended(message, text),
        failed=looks_failed(text),
        chars=len(text),
    )


def scored_units(vocabulary: Vocabulary, source: Source, units: Sequence[tuple[str, int]]) -> tuple[UnitFacts, ...]:
    """The pieces of one message with their scores; its words are counted into the vocabulary."""
    scores = score_units(vocabulary, source, units)
    return tuple(UnitFacts(text, position, score) for (text, position), score in zip(units, scores, strict=True))


def _best(units: tuple[UnitFacts, ...], most: int) -> tuple[UnitFacts, ...]:
    if len(units) <= most:
        return units
    best = sorted(units, key=lambda unit: (-unit.score, unit.position))[:most]
    return tuple(sorted(best, key=lambda unit: unit.position))


def storable(text: str) -> str:
    """The text with lone surrogates replaced: facts are kept as UTF-8; the message itself keeps its bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


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


def earlier_line(
    vocabulary: Vocabulary, section: str, role: str, text: str, position: int, *, is_rule: bool = False
) -> EarlierLine:
    """The line with its score among other quotations."""
    units = scored_units(vocabulary, Source(role, len(text), 1), [(text, 0)]) if role else ()
    return EarlierLine(section, role, UnitFacts(text, position, units[0].score if units else 0.0), is_rule)
