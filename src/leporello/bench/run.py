"""Runs many exams: every session under every engine and search by name, over a few processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from leporello.bench.bank import load_bank, read_json_file, text_tokens
from leporello.bench.baselines import BASELINES, PlainSearch
from leporello.bench.exam import BankExam, Exam, Search, SessionScore, SummaryCost, bank_misses, bank_rates, report
from leporello.bench.memory import load_beam, load_locomo, memory_misses, memory_rates
from leporello.bench.states import StateExam, load_state, state_misses, state_rates
from leporello.engines import BUILTIN, make_builtin
from leporello.engines.base import ContextEngine
from leporello.errors import EngineError, InputError, LeporelloError
from leporello.messages import Message
from leporello.models import Limits
from leporello.policy.decision import MEMORY
from leporello.recall.memory import MemoryRecall
from leporello.recall.tools import FRAME_TOKENS, SHARE, passages_for
from leporello.summaries.base import Summariser, Summary, SummaryTask
from leporello.tokens import TokenCounter

BANK_WINDOW = 128_000


def _unasked(messages: Sequence[Message], window: int) -> Search:
    """What the agent would add by itself if the question were the user's next message."""
    recall, most = MemoryRecall(messages, text_tokens), int(window * SHARE) - FRAME_TOKENS
    return lambda query, max_tokens: passages_for(recall, query, min(most, max_tokens))


SEARCHES: dict[str, Callable[[Sequence[Message], int], Search]] = {
    "recall": lambda messages, _: MemoryRecall(messages, text_tokens).answer,
    "unasked": _unasked,
    "plain": lambda messages, _: PlainSearch(messages),
}


def make_engine(name: str, window: int, summariser: Summariser | None = None, policy: str = MEMORY) -> ContextEngine:
    if name in BASELINES:
        return BASELINES[name](window)
    if name in BUILTIN:
        return make_builtin(name, Limits.for_window(window), TokenCounter.for_model(None), summariser, policy=policy)
    raise InputError(f"there is no engine {name!r} (known: {', '.join([*BUILTIN, *BASELINES])})")


def make_search(name: str, messages: Sequence[Message], window: int = BANK_WINDOW) -> Search:
    """A search over one session, for a model with such a window."""
    if name not in SEARCHES:
        raise InputError(f"there is no search {name!r} (known: {', '.join(SEARCHES)})")
    return SEARCHES[name](messages, window)


@dataclass(frozen=True, slots=True)
class ExamFormat:
    """A kind of exam: how its files are read, the window it is sat at unless another is given, how it is scored."""

    name: str
    window: int
    load: Callable[[Path, Path], Sequence[Exam]]
    """From a path and the folder of sessions."""
    rates: Callable[[Sequence[Any]], dict[str, Any]]
    misses: Callable[[Sequence[Any]], list[dict[str, Any]]]
    kind_of: Callable[[Any], str] | None = None

    def report(self, scores: Sequence[SessionScore[Any]]) -> dict[str, Any]:
        return report(scores, self.rates, self.kind_of)


def _bank_files(path: Path) -> list[Path]:
    return sorted(path.glob("*.json")) if path.is_dir() else [path]


def _kind_of(answer: Any) -> str:
    return str(answer.question.kind)


BANK = ExamFormat(
    "bank",
    BANK_WINDOW,
    lambda path, sessions: [BankExam(load_bank(file), sessions) for file in _bank_files(path)],
    bank_rates,
    bank_misses,
    _kind_of,
)
STATE = ExamFormat(
    "state",
    128_000,
    lambda path, sessions: [StateExam(load_state(file), sessions) for file in _bank_files(path)],
    state_rates,
    state_misses,
)
LOCOMO = ExamFormat("locomo", 16_000, lambda path, _: load_locomo(path), memory_rates, memory_misses, _kind_of)
BEAM = ExamFormat("beam", 64_000, lambda path, _: load_beam(path), memory_rates, memory_misses, _kind_of)
FORMATS: Mapping[str, ExamFormat] = {known.name: known for known in (BANK, STATE, LOCOMO, BEAM)}


def recognise(path: Path) -> ExamFormat:
    """A question bank or a state bank, by what its first file holds."""
    first = next(iter(_bank_files(path)), None)
    value = read_json_file(first) if first is not None else None
    return STATE if isinstance(value, dict) and "questions" not in value and "lines" in value else BANK


@dataclass(frozen=True, slots=True)
class ExamRun:
    """Who is examined: an engine at a window, the search that answers its recovery calls, and who writes summaries."""

    engine: str
    window: int
    search: str
    summariser: Summariser | None = None
    policy: str = MEMORY
    """How much a compaction keeps; the exam judges what a fold says, so it may say much."""


@dataclass(slots=True)
class MeteredSummariser:
    """Passes tasks on, and keeps count of what the summaries cost."""

    summariser: Summariser
    spent: SummaryCost = field(default_factory=SummaryCost)

    def summarise(self, task: SummaryTask) -> Summary:
        made = self.summariser.summarise(task)
        self.spent += SummaryCost(1, int(made.handoff is not None), made.usage, made.cost, made.warnings)
        return made


def run_one(run: ExamRun, exam: Exam) -> SessionScore[Any]:
    meter = MeteredSummariser(run.summariser) if run.summariser else None
    engine = make_engine(run.engine, run.window, meter, run.policy)
    try:
        score = exam.sit(engine, partial(make_search, run.search, window=run.window))
    except InputError:
        raise
    except LeporelloError as error:
        # Named here, where it is known, and as one error that can travel between processes.
        raise EngineError(f"engine {run.engine!r} failed on {exam.session}: {error}") from None
    return replace(score, summaries=meter.spent) if meter else score


def run_all(pairs: Sequence[tuple[ExamRun, Exam]], processes: int = 2) -> Iterator[tuple[int, SessionScore[Any]]]:
    """Each pair's number and its score, as they finish."""
    if processes <= 1 or len(pairs) <= 1:
        for number, (run, exam) in enumerate(pairs):
            yield number, run_one(run, exam)
        return
    # A fresh interpreter per worker: forking a process that may have threads is not safe.
    with ProcessPoolExecutor(min(processes, len(pairs)), mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run_one, run, exam): number for number, (run, exam) in enumerate(pairs)}
        for done in as_completed(running):
            yield running[done], done.result()
