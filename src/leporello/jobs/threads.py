"""A queue for one process: a few threads. What still waits when the process ends is forgotten, as a queue may."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from leporello.errors import LeporelloError
from leporello.jobs.base import Handler, Job

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

    def submit(self, job: Job) -> bool:
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

    def _do(self, job: Job) -> None:
        with self._guard:
            self._waiting.discard(job.key)
        try:
            self._handlers[job.kind](job.facts)
        except LeporelloError as error:
            log.warning('{"problem": "job", "job": "%s", "kind": "%s"}', job.kind, type(error).__name__)
