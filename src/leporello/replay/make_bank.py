"""Writes a question bank for a session by rule: spread over its length, balanced over kinds, the same every time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from leporello.errors import InputError
from leporello.importers import load_session
from leporello.importers.source import SourceFile
from leporello.messages import Message, encode_json
from leporello.redact import redact
from leporello.replay.bank import KINDS, Bank, Question
from leporello.replay.candidates import Candidate, candidates
from leporello.replay.exam import without_thinking
from leporello.replay.scoring import fold, texts_of

MOST_QUESTIONS = 25
MOST_PLACES = 3
"""A fact that stands in more messages than this is no test of memory."""


def make_bank(path: Path, name: str = "", size: int = MOST_QUESTIONS) -> Bank:
    """A bank of at most `size` questions about the session in a file."""
    messages = without_thinking(load_session(path).messages)
    chosen = choose(_fair(candidates(messages), messages), len(messages), size)
    if not chosen:
        raise InputError("nothing could be asked about this session: no rules, errors, paths or ids in it", str(path))
    lines = SourceFile(path).text.split("\n")
    questions = tuple(
        Question(
            id=f"q{number:02}",
            kind=candidate.kind,
            question=candidate.question,
            gold=candidate.gold,
            line=_line_of(candidate, lines),
            position=round(candidate.index / max(1, len(messages) - 1), 4),
        )
        for number, candidate in enumerate(chosen, 1)
    )
    return Bank(name or path.name, questions)


def choose(pool: Sequence[Candidate], length: int, size: int) -> list[Candidate]:
    """Kinds in turn, and within a kind the one farthest from all chosen so far."""
    by_kind: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in pool:
        by_kind[candidate.kind].append(candidate)
    chosen: list[Candidate] = []
    while len(chosen) < size and any(by_kind.values()):
        for kind in KINDS:
            if by_kind[kind] and len(chosen) < size:
                best = max(by_kind[kind], key=lambda one: _distance(one, chosen, length))
                by_kind[kind].remove(best)
                chosen.append(best)
    return sorted(chosen, key=lambda candidate: candidate.index)


def _distance(candidate: Candidate, chosen: Iterable[Candidate], length: int) -> int:
    return min((abs(candidate.index - other.index) for other in chosen), default=length - candidate.index)


def _fair(found: Iterable[Candidate], messages: Sequence[Message]) -> list[Candidate]:
    """Questions with one right answer that is not in the question and stands in few places."""
    folded = [fold("\n".join(texts_of([message]))) for message in messages]
    answers: dict[str, set[str]] = defaultdict(set)
    pool = []
    golds = set()
    for candidate in found:
        gold = fold(candidate.gold)
        answers[candidate.question].add(gold)
        if gold in golds or gold in fold(candidate.question) or _tells_a_secret(candidate):
            continue
        golds.add(gold)
        pool.append(candidate)
    return [
        candidate
        for candidate in pool
        if len(answers[candidate.question]) == 1 and 0 < _places(fold(candidate.gold), folded) <= MOST_PLACES
    ]


def _tells_a_secret(candidate: Candidate) -> bool:
    words = f"{candidate.question}\n{candidate.gold}"
    return redact(words) != words


def _places(gold: str, folded: Iterable[str]) -> int:
    return sum(gold in text for text in folded)


def _line_of(candidate: Candidate, lines: Sequence[str]) -> int:
    """The line of the file where the answer first stands, counted from 1; 0 when it is spread over several."""
    written = encode_json(candidate.gold).decode()[1:-1]
    for number, line in enumerate(lines, 1):
        if candidate.gold in line or written in line:
            return number
    return 0
