"""Work beside the answering: folds that were put off, sessions nobody uses any more, indexes that lag behind.

All of it is decided by what the store says at the moment it is done, so that a chore done twice, late or by two workers
at once changes nothing more.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from leporello.agent.session import choose_model, summariser_for
from leporello.background import Handler, JobQueue, QueuedJob
from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.compact import CompactionJob
from leporello.errors import ConfigError, NotFound
from leporello.gateway.proxy import conversations as proxied
from leporello.gateway.proxy.conversations import ConversationCache
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
    """Hands foldings that can wait to a queue, and does them."""

    def __init__(
        self, store: Store, settings: Settings, queue: JobQueue, plugins: PluginHost, choose: Chooser = choose_model
    ) -> None:
        self._store = store
        self._settings = settings
        self._queue = queue
        self._plugins = plugins
        self._choose = choose
        self._ordered: OrderedDict[str, int] = OrderedDict()
        self._book = threading.Lock()

    def later(self, order: CompactionJob) -> bool:
        """Take an order in. Once for each generation: when that brought nothing, the hard limit comes next."""
        with self._book:
            if self._ordered.get(order.conversation) == order.generation:
                return True
        if not self._queue.submit(QueuedJob("fold", f"fold:{order.key}", order.as_dict())):
            return False
        with self._book:
            self._ordered[order.conversation] = order.generation
            self._ordered.move_to_end(order.conversation)
            while len(self._ordered) > MOST_REMEMBERED:
                self._ordered.popitem(last=False)
        return True

    def do(self, facts: Mapping[str, Any]) -> None:
        """Fold as ordered, unless somebody did so already."""
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
            summariser=self._narrator(record, order.model),
            plugins=self._plugins,
            beside=True,
        )
        try:
            conversation.fold_as_ordered(order)
        finally:
            conversation.close()

    def _narrator(self, record: ConversationRecord, model: str) -> Summariser | None:
        """Who would have written the summary if it had not been put off."""
        if record.metadata.platform != agents.PLATFORM:
            return proxy_summariser(self._settings)
        try:
            chosen = self._choose(self._settings, model or None)
        except ConfigError:
            return None
        return summariser_for(self._settings, chosen, TokenCounter.for_model(model or None), self._plugins)


class BackgroundWork:
    """All chores of a gateway."""

    def __init__(
        self, queue: JobQueue, folds: DeferredCompactions, sessions: Sessions, talks: ConversationCache, idle: float
    ) -> None:
        self._queue = queue
        self._folds = folds
        self._sessions = sessions
        self._talks = talks
        self._idle = idle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()

    @property
    def handlers(self) -> dict[str, Handler]:
        """Who does which kind of job."""
        return {"fold": self._folds.do, "expire": lambda _: self.expire(), "index": lambda _: self.index()}

    def attend(self) -> None:
        """Sessions live on the event loop that is running now."""
        self._loop = asyncio.get_running_loop()

    async def sweep(self) -> None:
        """Give out the chores that come again and again. Several workers do so; one job of each kind waits at most."""
        self.attend()
        due = {"index": INDEX_SECONDS, "expire": min(3600.0, max(1.0, self._idle / 10))}
        last = dict.fromkeys(due, time.monotonic())
        while True:
            await asyncio.sleep(min(due.values()))
            for kind, seconds in due.items():
                if time.monotonic() - last[kind] >= seconds:
                    last[kind] = time.monotonic()
                    await asyncio.to_thread(self._queue.submit, QueuedJob(kind, kind))
            await self._sessions.put_down_unused(self._idle)

    def stop(self) -> None:
        """The process ends: what takes long leaves off after its next step. The store knows how far it came."""
        self._stopping.set()

    def index(self) -> None:
        """Catch up with indexing, a batch at a time, so that searches have little left to do."""
        while not self._stopping.is_set() and self._sessions.store.index.catch_up(INDEX_BATCH) >= INDEX_BATCH:
            pass

    def expire(self) -> list[str]:
        """End all sessions that were not used for a while, whichever worker served them; their ids."""
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
                return self._talks.end(record.id, before, EXPIRY)
            assert self._loop is not None, "sessions live on the event loop"
            asked = asyncio.run_coroutine_threadsafe(self._sessions.end(record.id, before, EXPIRY), self._loop)
            return asked.result(ENDING_SECONDS)
        except (NotFound, TimeoutError):
            # Gone, or busy after all: the next sweep sees it again.
            return False
