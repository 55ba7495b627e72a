"""Background work: deferred compactions, the end of idle sessions, indexing.

Each job decides by what the store says at the moment it runs, so that a job done twice, late or by two workers at once
changes nothing more.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from leporello.agent.endpoints import choose_model, summariser_for
from leporello.background import Handler, JobQueue, QueuedJob
from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.compact import CompactionJob
from leporello.errors import ConfigError, NotFound
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
MOST_REMEMBERED = 10_000
INDEX_SECONDS = 30.0
INDEX_BATCH = 100
ENDING_SECONDS = 60.0
PAGE = 100


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
        self._ordered: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def later(self, order: CompactionJob) -> bool:
        """Queue a compaction, once for each generation: when that brought nothing, the hard limit comes next."""
        with self._lock:
            if self._ordered.get(order.conversation) == order.generation:
                return True
        if not self._queue.submit(QueuedJob("fold", f"fold:{order.key}", order.as_dict())):
            return False
        with self._lock:
            self._ordered[order.conversation] = order.generation
            self._ordered.move_to_end(order.conversation)
            while len(self._ordered) > MOST_REMEMBERED:
                self._ordered.popitem(last=False)
        return True

    def do(self, facts: Mapping[str, Any]) -> None:
        """Run a queued compaction, unless somebody did so already."""
        order = CompactionJob.from_dict(facts)
        try:
            record = self._store.conversations.resolve(order.conversation)
        except NotFound:
            return
        if record.generation != order.generation:
            return
        conversation = Conversation(
            self._store,
            record,
            self._settings,
            model=order.model,
            window=order.window,
            summariser=self._summariser(record, order.model),
            plugins=self._plugins,
            beside=True,
        )
        try:
            conversation.runtime.compactor.do(order)
        finally:
            conversation.close()

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
    """All background jobs of a gateway."""

    def __init__(
        self,
        queue: JobQueue,
        folds: DeferredCompactions,
        sessions: Sessions,
        conversations: ProxiedConversations,
        idle: float,
    ) -> None:
        self._queue = queue
        self._folds = folds
        self._sessions = sessions
        self._conversations = conversations
        self._idle = idle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()

    @property
    def handlers(self) -> dict[str, Handler]:
        """The function for each kind of job."""
        return {"fold": self._folds.do, "expire": lambda _: self.expire(), "index": lambda _: self.index()}

    def attend(self) -> None:
        """Remember the running event loop: sessions live on it."""
        self._loop = asyncio.get_running_loop()

    async def sweep(self) -> None:
        """Queue the jobs that recur, and close what is not used in this process.

        Several workers queue them; of each kind at most one waits.
        """
        self.attend()
        due = {"index": INDEX_SECONDS, "expire": min(3600.0, max(1.0, self._idle / 10))}
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
        """Index what is not indexed yet, a batch at a time, so that searches have little left to do."""
        while not self._stopping.is_set() and self._sessions.store.index.catch_up(INDEX_BATCH) >= INDEX_BATCH:
            pass

    def expire(self) -> list[str]:
        """End all sessions that were not used for a while, whichever worker served them; returns their ids."""
        before = time.time() - self._idle
        ended: list[str] = []
        for platform in (agents.PLATFORM, proxied.PLATFORM):
            cursor: str | None = None
            where = ConversationFilter(platform=platform, active_before=before, open=True)
            while not self._stopping.is_set():
                page = self._sessions.store.conversations.page(where, PAGE, cursor)
                for record in page.conversations:
                    if not self._stopping.is_set() and self._end(record, before):
                        ended.append(record.id)
                cursor = page.cursor
                if cursor is None:
                    break
        return ended

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
