"""Background work: deferred compactions, the end of idle sessions, indexing, and the queue in which it waits.

Each job decides by what the store says at the moment it runs, so that a job done twice, late or by two workers at once
changes nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from leporello.agent.endpoints import choose_model, summariser_for
from leporello.config import Settings
from leporello.conversation.artifacts import overwrite_deleted, prune_conversations
from leporello.conversation.background import run_job
from leporello.conversation.compact import CompactionJob
from leporello.errors import ConfigError, InputError, LeporelloError, NotFound, how_to_install
from leporello.gateway.proxy import conversations as proxied
from leporello.gateway.proxy.conversations import ProxiedConversations
from leporello.gateway.proxy.rewrite import proxy_summariser
from leporello.gateway.sessions import sessions as agents
from leporello.gateway.sessions.sessions import Chooser, Sessions
from leporello.plugins.host import PluginHost
from leporello.store import Store
from leporello.store.records import ConversationFilter, ConversationRecord
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter

EXPIRY = "expiry"
INDEX_SECONDS = 30.0
DAY_SECONDS = 86_400.0
RETAIN_SECONDS = DAY_SECONDS / 4
INDEX_BATCH = 100
ENDING_SECONDS = 60.0
PAGE = 100
THREADS = 2
log = logging.getLogger("leporello.jobs")

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


class ThreadQueue:
    """A `JobQueue` in threads of this process."""

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
        from leporello.gateway.postgres_queue import PostgresQueue  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"The queue needs more packages ({error.name}): {how_to_install('postgres')}") from None
    return PostgresQueue(url)


class DeferredCompactions:
    """Puts compactions that can wait into a queue, and runs them."""

    def __init__(
        self, store: Store, settings: Settings, queue: JobQueue, plugins: PluginHost, choose: Chooser = choose_model
    ) -> None:
        self._store = store
        self._settings = settings
        self._queue = queue
        self._plugins = plugins
        self._choose = choose

    def later(self, job: CompactionJob) -> bool:
        """Queue a compaction; False when that is impossible now."""
        return self._queue.submit(QueuedJob("fold", f"fold:{job.key}", job.as_dict()))

    def do(self, facts: Mapping[str, Any]) -> None:
        """Run a queued compaction, unless somebody did so already."""
        job = CompactionJob.from_dict(facts)
        run_job(self._store, self._settings, job, lambda record: self._summariser(record, job.model), self._plugins)

    def _summariser(self, record: ConversationRecord, model: str) -> Summariser | None:
        """The one that would have written the summary if the compaction had not been deferred."""
        if record.metadata.platform != agents.PLATFORM:
            return proxy_summariser(self._settings)
        try:
            chosen = self._choose(self._settings, model or None)
        except ConfigError:
            return None
        return summariser_for(self._settings, chosen, TokenCounter.for_model(model or None), self._plugins)


class BackgroundWork:
    def __init__(
        self,
        queue: JobQueue,
        deferred: DeferredCompactions,
        sessions: Sessions,
        conversations: ProxiedConversations,
        idle: float,
    ) -> None:
        self._queue = queue
        self._sessions = sessions
        self._conversations = conversations
        self._idle = idle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self.handlers: dict[str, Handler] = {
            "fold": deferred.do,
            "expire": lambda _: self.expire(),
            "index": lambda _: self.index(),
            "retain": lambda _: self.retain(),
        }

    def attend(self) -> None:
        """Remember the running event loop: sessions live on it."""
        self._loop = asyncio.get_running_loop()

    async def sweep(self) -> None:
        """Queue the jobs that recur, and close what is not used in this process.

        Several workers queue them; of each kind at most one waits.
        """
        self.attend()
        due = {
            "index": INDEX_SECONDS,
            "expire": min(3600.0, max(1.0, self._idle / 10)),
            "retain": RETAIN_SECONDS,
        }
        last = dict.fromkeys(due, time.monotonic())
        while True:
            await asyncio.sleep(min(due.values()))
            for kind, seconds in due.items():
                if time.monotonic() - last[kind] >= seconds:
                    last[kind] = time.monotonic()
                    await asyncio.to_thread(self._queue.submit, QueuedJob(kind, kind))
            await self.evict()

    async def evict(self) -> None:
        """Close conversations that this process has not used for a while, whichever worker ended their sessions."""
        await self._sessions.evict()
        await asyncio.to_thread(self._conversations.evict)

    def stop(self) -> None:
        """The process ends: long jobs stop after their next step. The store knows how far they came."""
        self._stopping.set()

    def index(self) -> None:
        """Index what is not indexed yet, a batch at a time, so that searches have little left to do; then overwrite
        what was deleted."""
        store = self._sessions.store
        while not self._stopping.is_set() and store.index.catch_up(INDEX_BATCH) >= INDEX_BATCH:
            pass
        if not self._stopping.is_set():
            overwrite_deleted(store)

    def retain(self) -> list[str]:
        """Delete what is older than the settings keep; returns the ids. Open conversations and pins stay."""
        days = self._sessions.settings.get("store.retention_days")
        if not days:
            return []
        before = time.time() - days * DAY_SECONDS
        return prune_conversations(self._sessions.store, self._sessions.settings.home, before)

    def expire(self) -> list[str]:
        """End all sessions that were not used for a while, whichever worker served them; returns their ids."""
        before = time.time() - self._idle
        return [record.id for record in self._idle_since(before) if self._end(record, before)]

    def _idle_since(self, before: float) -> Iterator[ConversationRecord]:
        for platform in (agents.PLATFORM, proxied.PLATFORM):
            where = ConversationFilter(platform=platform, active_before=before, open=True)
            for record in self._sessions.store.conversations.each(where, PAGE):
                if self._stopping.is_set():
                    return
                yield record

    def _end(self, record: ConversationRecord, before: float) -> bool:
        try:
            if record.metadata.platform == proxied.PLATFORM:
                return self._conversations.end(record.id, before, EXPIRY)
            assert self._loop is not None, "sessions live on the event loop"
            asked = asyncio.run_coroutine_threadsafe(self._sessions.end(record.id, before, EXPIRY), self._loop)
            return asked.result(ENDING_SECONDS)
        except (NotFound, TimeoutError):
            # Deleted, or in use after all: the next sweep sees it again.
            return False
