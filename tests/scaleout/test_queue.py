"""Jobs: done once while they wait, tried again after a failure, taken over from a worker that was killed."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import psycopg
import pytest

from leporello.errors import StoreUnavailable
from leporello.gateway import postgres_queue
from leporello.gateway.background import JobQueue, QueuedJob, ThreadQueue, open_queue
from leporello.store.postgres.database import BoundedAsyncConnection
from tests.scaleout.dying import die_at_work
from tests.scaleout.plant import PATIENCE
from tests.store.server import Server

CONTEXT = multiprocessing.get_context("spawn")


@pytest.fixture(params=["threads", "postgres"])
async def queue(request: pytest.FixtureRequest) -> AsyncIterator[JobQueue]:
    if request.param == "threads":
        yield ThreadQueue(threads=1)
    else:
        yield open_queue(request.getfixturevalue("database"))


async def happens(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"never happened: {what}"
        await asyncio.sleep(0.01)


async def test_jobs_are_done(queue: JobQueue) -> None:
    """Each with its facts; and none is taken while nobody serves."""
    done: list[Mapping[str, Any]] = []
    enough = threading.Event()

    def note(facts: Mapping[str, Any]) -> None:
        done.append(dict(facts))
        if len(done) == 10:
            enough.set()

    assert not queue.submit(QueuedJob("note", "early"))
    async with queue.serving({"note": note}):
        for number in range(10):
            assert await asyncio.to_thread(
                queue.submit, QueuedJob("note", f"key-{number}", {"number": number, "to": "ä"})
            )
        await happens(enough.is_set, "all jobs are done")
    assert sorted(one["number"] for one in done) == list(range(10))
    assert {one["to"] for one in done} == {"ä"}
    assert not await asyncio.to_thread(queue.submit, QueuedJob("note", "late"))


async def test_of_one_key_one_job_waits(queue: JobQueue) -> None:
    """A second job of a key adds nothing while the first has not begun."""
    done: list[int] = []
    go = threading.Event()

    def block(_: Mapping[str, Any]) -> None:
        go.wait(60)

    async with queue.serving({"block": block, "note": lambda facts: done.append(facts["number"])}):
        # All hands are busy.
        for number in range(2):
            await asyncio.to_thread(queue.submit, QueuedJob("block", f"block-{number}"))
        for number in range(5):
            assert await asyncio.to_thread(queue.submit, QueuedJob("note", "the same", {"number": number}))
        go.set()
        while not done:
            await asyncio.sleep(0.01)
    assert len(done) < 5


async def test_what_fails_is_tried_again_on_postgres(database: str) -> None:
    """A store that is away for a moment is no reason to forget a job."""
    tries: list[float] = []
    worked = threading.Event()

    def fragile(_: Mapping[str, Any]) -> None:
        tries.append(time.monotonic())
        if len(tries) == 1:
            raise StoreUnavailable("gone for a moment")
        worked.set()

    queue = open_queue(database)
    async with queue.serving({"fragile": fragile}):
        await asyncio.to_thread(queue.submit, QueuedJob("fragile", "key"))
        await happens(worked.is_set, "the second try works")


async def test_a_killed_workers_job_is_taken_over(database: str) -> None:
    """kill -9 in the middle of a job: another worker does it."""
    began = CONTEXT.Event()
    child = CONTEXT.Process(target=die_at_work, args=(database, began), daemon=True)
    child.start()
    await happens(began.is_set, "the job is begun")
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    done = threading.Event()
    async with open_queue(database).serving({"work": lambda _: done.set()}):
        await happens(done.is_set, "the job is done by another worker")


async def test_the_queue_survives_a_restart_of_the_database(server: Server, database: str) -> None:
    """Jobs given out before and after a restart are done."""
    done: set[str] = set()
    enough = threading.Event()

    def note(facts: Mapping[str, Any]) -> None:
        done.add(facts["name"])
        if len(done) == 2:
            enough.set()

    queue = open_queue(database)
    async with queue.serving({"note": note}):
        assert await asyncio.to_thread(queue.submit, QueuedJob("note", "before", {"name": "before"}))
        await asyncio.to_thread(server.stop, "fast")
        await asyncio.to_thread(server.start)
        while not await asyncio.to_thread(queue.submit, QueuedJob("note", "after", {"name": "after"})):
            await asyncio.sleep(0.1)
        await happens(enough.is_set, "all jobs are done")


async def test_a_job_is_told_of_and_not_waited_for(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a while in which the server had nothing to tell, and after its line was cut.

    A worker that looked by the clock would find nothing before this test gives up.
    """
    monkeypatch.setattr(postgres_queue, "POLL_SECONDS", 10 * PATIENCE)
    monkeypatch.setattr(BoundedAsyncConnection, "answer_seconds", 0.5)
    done: list[int] = []

    def listeners() -> set[int]:
        with psycopg.connect(database, autocommit=True) as watcher:
            rows = watcher.execute("SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'").fetchall()
        return {pid for (pid,) in rows}

    queue = open_queue(database)
    async with queue.serving({"note": lambda facts: done.append(facts["number"])}):
        await happens(lambda: len(listeners()) == 1, "it listens")
        first = listeners()
        await asyncio.sleep(1.5)
        assert await asyncio.to_thread(queue.submit, QueuedJob("note", "a", {"number": 1}))
        await happens(lambda: done == [1], "it was told")
        assert listeners() == first
        with psycopg.connect(database, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (*first,))
        await happens(lambda: len(listeners() - first) == 1, "it listens again")
        assert await asyncio.to_thread(queue.submit, QueuedJob("note", "b", {"number": 2}))
        await happens(lambda: done == [1, 2], "it was told again")
