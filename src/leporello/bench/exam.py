"""The exam: replay a session into an engine, let it compact as it grows, and ask what is still known.

A question counts *closed-book* when its gold text stands in the final context, *recovered* when it stands there or in
what one search call with the question as query brings back.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

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


class Search(Protocol):
    """One recovery call."""

    def __call__(self, query: str, max_tokens: int, /) -> str:
        """What it brings back, as text of at most so many tokens."""


SearchFactory: TypeAlias = Callable[[Sequence[Message]], Search]


@dataclass(frozen=True, slots=True)
class ExamAnswer:
    """How one question came out."""

    question: ExamQuestion
    closed: bool
    recovered: bool


@dataclass(frozen=True, slots=True)
class SessionScore:
    """One session under one engine."""

    session: str
    answers: tuple[ExamAnswer, ...]
    kept_tokens: int
    compactions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """The final context of a session, and what it took to get there; seconds are processor time."""

    messages: list[Message]
    compactions: int
    seconds: float


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
    observe: Callable[[Message], None] = getattr(engine, "observe", _ignore)
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
            live = _compress(engine, live, size, force=False)
            size = counter.of(live)
            compactions += 1
    live = _compress(engine, live, size, force=True)
    return Replayed(live, compactions + 1, time.process_time() - started)


def _ignore(message: Message) -> None:
    """For engines that look at messages only when they compress."""


def _compress(engine: ContextEngine, live: list[Message], size: int, *, force: bool) -> list[Message]:
    extra: dict[str, Any] = (
        {"force": True} if force and "force" in inspect.signature(engine.compress).parameters else {}
    )
    return list(engine.compress(list(live), current_tokens=size, **extra))


def ask(bank: Bank, final: Sequence[Message], search: Search) -> tuple[ExamAnswer, ...]:
    """Every question of a bank against a final context and one search call each."""
    context = Haystack(texts_of(final))
    answers = []
    for question in bank.questions:
        closed = context.has(question.gold)
        found = closed or _recovers(question, search)
        answers.append(ExamAnswer(question, closed, found))
    return tuple(answers)


def _recovers(question: ExamQuestion, search: Search) -> bool:
    answer = clip_to_tokens(search(question.question, RECOVERY_TOKENS), RECOVERY_TOKENS)
    return Haystack(recovered_texts(answer)).has(question.gold)


def examine(bank: Bank, folder: Path, engine: ContextEngine, make_search: SearchFactory) -> SessionScore:
    """One bank under one engine."""
    messages = without_thinking(load_session(session_file(bank, folder)).messages)
    final = replay(messages, engine)
    answers = ask(bank, final.messages, make_search(messages))
    return SessionScore(bank.session, answers, json_tokens(final.messages), final.compactions, final.seconds)


def report(scores: Sequence[SessionScore]) -> dict[str, Any]:
    """The result of one engine over all banks, as it is printed with `--json`."""
    answers = [answer for score in scores for answer in score.answers]
    kinds = dict.fromkeys(answer.question.kind for answer in answers)
    kept = sum(score.kept_tokens for score in scores) / len(scores) if scores else 0.0
    return {
        "total": {**_rates(answers), "kept_tokens": round(kept)},
        "sessions": [
            {
                "session": score.session,
                **_rates(score.answers),
                "kept_tokens": score.kept_tokens,
                "compactions": score.compactions,
                "seconds": round(score.seconds, 3),
            }
            for score in scores
        ],
        "kinds": {kind: _rates([a for a in answers if a.question.kind == kind]) for kind in kinds},
    }


def _rates(answers: Sequence[ExamAnswer]) -> dict[str, Any]:
    total = len(answers) or 1
    return {
        "questions": len(answers),
        "closed": round(sum(answer.closed for answer in answers) / total, 4),
        "recovered": round(sum(answer.recovered for answer in answers) / total, 4),
    }
