"""The exam: replay a session into an engine, let it compact as it grows, and ask what is still known.

A question counts *closed-book* when its gold text stands in the final context, *recovered* when it stands there or in
what one search call with the question as query brings back.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from leporello.bench.bank import (
    Bank,
    ExamQuestion,
    Haystack,
    RunningCount,
    clip_to_tokens,
    json_tokens,
    recovered_texts,
    session_file,
    texts_of,
)
from leporello.engines.base import ContextEngine
from leporello.importers import load_session
from leporello.messages import Message, PartKind, calls_of, parts_of, role_of
from leporello.turns import iter_groups
from leporello.usage import CanonicalUsage

RECOVERY_TOKENS = 4_000


Search: TypeAlias = Callable[[str, int], str]
"""One recovery call: what a query brings back, as text of at most so many tokens."""
SearchFactory: TypeAlias = Callable[[Sequence[Message]], Search]


A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class SummaryCost:
    """What a model's summaries took: how often it was asked, how many summaries came of it, and the bill."""

    asked: int = 0
    written: int = 0
    usage: CanonicalUsage = field(default_factory=CanonicalUsage)
    cost: float | None = None
    """None: the price is not known."""
    warnings: tuple[str, ...] = ()

    def __add__(self, other: SummaryCost) -> SummaryCost:
        """Both together; a price that is not known stays out of the sum."""
        prices = [price for price in (self.cost, other.cost) if price is not None]
        return SummaryCost(
            self.asked + other.asked,
            self.written + other.written,
            self.usage + other.usage,
            sum(prices) if prices else None,
            tuple(dict.fromkeys((*self.warnings, *other.warnings))),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "asked": self.asked,
            "written": self.written,
            "input_tokens": self.usage.prompt_tokens,
            "output_tokens": self.usage.output_tokens,
            "cost": self.cost,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class SessionScore(Generic[A]):
    """One session under one engine; what an answer is depends on the format of the exam."""

    session: str
    answers: tuple[A, ...]
    kept_tokens: int
    compactions: int
    seconds: float
    lines: Mapping[str, int] = field(default_factory=dict)
    """Lines of the handoff by section, in exams that look at sections."""
    summaries: SummaryCost | None = None
    """None: no model wrote summaries."""


class Exam(Protocol):
    """One session and what is asked about it."""

    @property
    def id(self) -> str:
        """What `--only` picks it by."""

    @property
    def session(self) -> str:
        """The name of its session in reports."""

    def sit(self, engine: ContextEngine, make_search: SearchFactory) -> SessionScore[Any]:
        """Replay the session into a fresh engine and ask."""


@dataclass(frozen=True, slots=True)
class ExamAnswer:
    question: ExamQuestion
    closed: bool
    recovered: bool


@dataclass(frozen=True, slots=True)
class Replayed:
    """The final context of a session, and what it took to get there; seconds are processor time."""

    messages: list[Message]
    compactions: int
    seconds: float

    def score(self, session: str, answers: tuple[A, ...], lines: Mapping[str, int] | None = None) -> SessionScore[A]:
        return SessionScore(
            session, answers, json_tokens(self.messages), self.compactions, self.seconds, dict(lines or {})
        )


def without_thinking(messages: Iterable[Message]) -> list[Message]:
    """The session as providers re-send it: recorded reasoning of earlier turns is not part of a request."""
    kept = []
    for message in messages:
        if isinstance(message.get("content"), list):
            parts = [part for part in parts_of(message) if part.kind is not PartKind.THINKING]
            message = {**message, "content": _joined([part.raw for part in parts])}
        if role_of(message) != "assistant" or message["content"] or calls_of(message):
            kept.append(message)
    return kept


def _joined(parts: list[Any]) -> Any:
    if not parts:
        return None
    if all(isinstance(part, dict) and part.get("type") == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def replay(messages: Sequence[Message], engine: ContextEngine) -> Replayed:
    """Feed a session group by group, compact when the engine says so, and once more at the end.

    An engine that takes messages in as they come (`observe`) gets them one by one, as a host would hand them over.
    """
    started = time.process_time()
    observe: Callable[[Message], None] = getattr(engine, "observe", lambda message: None)
    counter = RunningCount()
    live: list[Message] = []
    size = 0
    compactions = 0
    engine.on_session_start("exam", conversation_id="exam", platform="exam")
    for group in iter_groups(messages):
        new = messages[group.start : group.stop]
        live.extend(new)
        for message in new:
            observe(message)
        size += counter.of(new)
        engine.update_from_response(CanonicalUsage(input_tokens=size).as_engine_dict())
        if engine.should_compress(size):
            live = compress_list(engine, live, size)
            size = counter.of(live)
            compactions += 1
    live = compress_list(engine, live, size, force=True)
    return Replayed(live, compactions + 1, time.process_time() - started)


def compress_list(engine: ContextEngine, live: list[Message], size: int, *, force: bool = False) -> list[Message]:
    """What an engine makes of a list; `force` goes to engines that know it."""
    takes_force = force and "force" in inspect.signature(engine.compress).parameters
    extra: dict[str, Any] = {"force": True} if takes_force else {}
    return list(engine.compress(list(live), current_tokens=size, **extra))


def ask(bank: Bank, final: Sequence[Message], search: Search) -> tuple[ExamAnswer, ...]:
    """Every question of a bank against a final context and one search call each."""
    context = Haystack(texts_of(final))
    answers = []
    for question in bank.questions:
        closed = context.has(question.gold)
        found = closed or Haystack(search_texts(search, question.question)).has(question.gold)
        answers.append(ExamAnswer(question, closed, found))
    return tuple(answers)


def search_texts(search: Search, question: str) -> Iterator[str]:
    """What one recovery call brings back, cut off at its token limit."""
    return recovered_texts(clip_to_tokens(search(question, RECOVERY_TOKENS), RECOVERY_TOKENS))


@dataclass(frozen=True, slots=True)
class BankExam:
    """A question bank, and the folder its session stands in."""

    bank: Bank
    sessions: Path

    @property
    def id(self) -> str:
        return self.bank.path.stem if self.bank.path else self.session

    @property
    def session(self) -> str:
        return self.bank.session

    def sit(self, engine: ContextEngine, make_search: SearchFactory) -> SessionScore[ExamAnswer]:
        path = session_file(self.bank.session, self.sessions, self.bank.path)
        messages = without_thinking(load_session(path).messages)
        final = replay(messages, engine)
        return final.score(self.session, ask(self.bank, final.messages, make_search(messages)))


def bank_rates(answers: Sequence[ExamAnswer]) -> dict[str, Any]:
    return {
        "questions": len(answers),
        "closed": share(answer.closed for answer in answers),
        "recovered": share(answer.recovered for answer in answers),
    }


def bank_misses(answers: Sequence[ExamAnswer]) -> list[dict[str, Any]]:
    """Every question that was not answered from the context alone, and whether the search found it."""
    return [
        {
            "id": answer.question.id,
            "kind": answer.question.kind,
            "recovered": answer.recovered,
            "question": answer.question.question,
            "gold": answer.question.gold,
            "line": answer.question.line,
        }
        for answer in answers
        if not answer.closed
    ]


def share(found: Iterable[bool]) -> float:
    """How many of them are true, from 0 to 1."""
    marks = list(found)
    return round(sum(marks) / len(marks), 4) if marks else 0.0


def report(
    scores: Sequence[SessionScore[A]],
    rates: Callable[[Sequence[A]], dict[str, Any]],
    kind_of: Callable[[A], str] | None = None,
) -> dict[str, Any]:
    """The result of one engine over all sessions, as it is printed with `--json`."""
    answers = [answer for score in scores for answer in score.answers]
    total = {**rates(answers), "kept_tokens": round(_mean(score.kept_tokens for score in scores))}
    sections = dict.fromkeys(section for score in scores for section in score.lines)
    if sections:
        total["lines"] = {
            section: round(_mean(score.lines.get(section, 0) for score in scores), 1) for section in sections
        }
    spent = [score.summaries for score in scores if score.summaries is not None]
    if spent:
        total["summaries"] = sum(spent, SummaryCost()).as_dict()
    made: dict[str, Any] = {"total": total, "sessions": [_session_row(score, rates) for score in scores]}
    if kind_of is not None:
        kinds = dict.fromkeys(kind_of(answer) for answer in answers)
        made["kinds"] = {kind: rates([one for one in answers if kind_of(one) == kind]) for kind in kinds}
    return made


def _session_row(score: SessionScore[A], rates: Callable[[Sequence[A]], dict[str, Any]]) -> dict[str, Any]:
    return {
        "session": score.session,
        **rates(score.answers),
        "kept_tokens": score.kept_tokens,
        "compactions": score.compactions,
        "seconds": round(score.seconds, 3),
        **({"lines": dict(score.lines)} if score.lines else {}),
        **({"summaries": score.summaries.as_dict()} if score.summaries else {}),
    }


def _mean(numbers: Iterable[int]) -> float:
    given = list(numbers)
    return sum(given) / len(given) if given else 0.0
