"""Work that is done beside answering: a durable queue that all workers share, or threads of one process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from leporello.errors import InputError, LeporelloError

Handler: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Does a job, in a thread. A `LeporelloError` means that it did not work this time."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """Something to be done by whoever has time."""

    kind: str
    """Which handler does it."""
    key: str
    """What it is about: while one job of a key waits, another adds nothing."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for the handler."""


class JobQueue(Protocol):
    """Takes jobs, and does them while it is serving."""

    def submit(self, job: QueuedJob) -> bool:
        """Take a job in, or know it already; False when that is impossible now.

        Call it from a thread, not from the event loop: it may wait for a database.
        """

    def serving(self, handlers: Mapping[str, Handler]) -> AbstractAsyncContextManager[None]:
        """Do jobs while the block runs. At its end those under way are finished."""


THREADS = 2
log = logging.getLogger("leporello.jobs")


class ThreadQueue:
    """`Queue` of the port."""

    def __init__(self, threads: int = THREADS) -> None:
        self._size = threads
        self._guard = threading.Lock()
        self._waiting: set[str] = set()
        self._handlers: Mapping[str, Handler] = {}
        self._threads: ThreadPoolExecutor | None = None

    def submit(self, job: QueuedJob) -> bool:
        with self._guard:
            if self._threads is None:
                return False
            if job.key not in self._waiting:
                self._waiting.add(job.key)
                self._threads.submit(self._do, job)
        return True

    @asynccontextmanager
    async def serving(self, handlers: Mapping[str, Handler]) -> AsyncIterator[None]:
        threads = ThreadPoolExecutor(self._size, "leporello-jobs")
        with self._guard:
            self._handlers, self._threads = handlers, threads
        try:
            yield
        finally:
            with self._guard:
                self._threads = None
                self._waiting.clear()
            await asyncio.to_thread(threads.shutdown, wait=True, cancel_futures=True)

    def _do(self, job: QueuedJob) -> None:
        with self._guard:
            self._waiting.discard(job.key)
        try:
            self._handlers[job.kind](job.facts)
        except LeporelloError as error:
            log.warning('{"problem": "job", "job": "%s", "kind": "%s"}', job.kind, type(error).__name__)


def open_queue(url: str) -> JobQueue:
    """The queue that belongs to a store: PostgreSQL keeps one for all workers, anything else has threads."""
    if url.partition("://")[0] not in ("postgresql", "postgres"):
        return ThreadQueue()
    try:
        # An optional extra, and slow to import: only workers on PostgreSQL pay for it.
        from leporello.background.postgres import PostgresQueue  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"The queue needs more packages ({error.name}): pip install 'leporello[postgres]'") from None
    return PostgresQueue(url)
