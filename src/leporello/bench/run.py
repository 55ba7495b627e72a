"""Runs many exams: every bank under every engine and search by name, over a few processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from leporello.bench.bank import Bank, text_tokens
from leporello.bench.baselines import ClearToolsEngine, PlainSearch, WholeEngine
from leporello.bench.exam import Search, SessionScore, examine
from leporello.engines import BUILTIN, make_builtin
from leporello.engines.base import ContextEngine
from leporello.errors import EngineError, InputError, LeporelloError
from leporello.messages import Message
from leporello.models import Limits
from leporello.recall.memory import MemoryRecall
from leporello.tokens import TokenCounter

BASELINES: dict[str, Callable[[int], ContextEngine]] = {"whole": WholeEngine, "clear-tools": ClearToolsEngine}


def _recall(messages: Sequence[Message]) -> Search:
    return MemoryRecall(messages, text_tokens).answer


SEARCHES: dict[str, Callable[[Sequence[Message]], Search]] = {"recall": _recall, "plain": PlainSearch}


def make_engine(name: str, window: int) -> ContextEngine:
    """A fresh engine without a summary model, for one conversation."""
    if name in BASELINES:
        return BASELINES[name](window)
    if name in BUILTIN:
        return make_builtin(name, Limits.for_window(window), TokenCounter.for_model(None), None)
    raise InputError(f"there is no engine {name!r} (known: {', '.join([*BUILTIN, *BASELINES])})")


def make_search(name: str, messages: Sequence[Message]) -> Search:
    """A search over one session."""
    if name not in SEARCHES:
        raise InputError(f"there is no search {name!r} (known: {', '.join(SEARCHES)})")
    return SEARCHES[name](messages)


@dataclass(frozen=True, slots=True)
class ExamRun:
    """Who is examined: an engine at a window, and the search that answers its recovery calls."""

    engine: str
    window: int
    search: str


@dataclass(frozen=True, slots=True)
class ExamResult:
    """What is asked: a bank, and the folder its session stands in."""

    bank: Bank
    sessions: Path


def run_one(contest: ExamRun, sitting: ExamResult) -> SessionScore:
    """One engine on one bank."""
    engine = make_engine(contest.engine, contest.window)
    try:
        return examine(sitting.bank, sitting.sessions, engine, partial(make_search, contest.search))
    except InputError:
        raise
    except LeporelloError as error:
        # Named here, where it is known, and as one error that can travel between processes.
        raise EngineError(f"engine {contest.engine!r} failed on {sitting.bank.session}: {error}") from None


def run_all(pairs: Sequence[tuple[ExamRun, ExamResult]], processes: int = 2) -> Iterator[tuple[int, SessionScore]]:
    """Each pair's number and its score, as they finish."""
    if processes <= 1 or len(pairs) <= 1:
        for number, (contest, sitting) in enumerate(pairs):
            yield number, run_one(contest, sitting)
        return
    # A fresh interpreter per worker: forking a process that may have threads is not safe.
    with ProcessPoolExecutor(min(processes, len(pairs)), mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run_one, contest, sitting): number for number, (contest, sitting) in enumerate(pairs)}
        for done in as_completed(running):
            yield running[done], done.result()
