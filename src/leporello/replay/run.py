"""Runs many exams: every bank under every engine, over a few processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from leporello.errors import EngineError, InputError, LeporelloError
from leporello.replay.bank import Bank
from leporello.replay.contestants import make_engine, make_search
from leporello.replay.exam import SessionScore, examine


@dataclass(frozen=True, slots=True)
class Contest:
    """Who is examined: an engine at a window, and the search that answers its recovery calls."""

    engine: str
    window: int
    search: str


@dataclass(frozen=True, slots=True)
class Sitting:
    """What is asked: a bank, and the folder its session stands in."""

    bank: Bank
    sessions: Path


def sit(contest: Contest, sitting: Sitting) -> SessionScore:
    """One engine on one bank."""
    engine = make_engine(contest.engine, contest.window)
    try:
        return examine(sitting.bank, sitting.sessions, engine, partial(make_search, contest.search))
    except InputError:
        raise
    except LeporelloError as error:
        # Named here, where it is known, and as one error that can travel between processes.
        raise EngineError(f"engine {contest.engine!r} failed on {sitting.bank.session}: {error}") from None


def run_all(pairs: Sequence[tuple[Contest, Sitting]], processes: int = 2) -> Iterator[tuple[int, SessionScore]]:
    """Each pair's number and its score, as they finish."""
    if processes <= 1 or len(pairs) <= 1:
        for number, (contest, sitting) in enumerate(pairs):
            yield number, sit(contest, sitting)
        return
    # A fresh interpreter per worker: forking a process that may have threads is not safe.
    with ProcessPoolExecutor(min(processes, len(pairs)), mp_context=get_context("spawn")) as pool:
        running = {pool.submit(sit, contest, sitting): number for number, (contest, sitting) in enumerate(pairs)}
        for done in as_completed(running):
            yield running[done], done.result()
