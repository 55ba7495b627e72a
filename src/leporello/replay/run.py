"""Runs many exams: every bank under every engine, over a few processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from leporello.replay.bank import Bank
from leporello.replay.contestants import make_engine, make_search
from leporello.replay.exam import SessionScore, examine


@dataclass(frozen=True, slots=True)
class Sitting:
    """One bank under one engine."""

    bank: Bank
    sessions: Path
    engine: str
    search: str
    window: int

    def run(self) -> SessionScore:
        """Sit the exam."""
        engine = make_engine(self.engine, self.window)
        return examine(self.bank, self.sessions, engine, partial(make_search, self.search))


def run_all(sittings: Sequence[Sitting], processes: int = 2) -> Iterator[tuple[int, SessionScore]]:
    """Every sitting's number and score, as they finish."""
    if processes <= 1 or len(sittings) <= 1:
        for number, sitting in enumerate(sittings):
            yield number, sitting.run()
        return
    # A fresh interpreter per worker: forking a process that may have threads is not safe.
    with ProcessPoolExecutor(min(processes, len(sittings)), mp_context=get_context("spawn")) as pool:
        running = {pool.submit(sitting.run): number for number, sitting in enumerate(sittings)}
        for done in as_completed(running):
            yield running[done], done.result()
