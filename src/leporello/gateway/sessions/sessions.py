"""Agent sessions: opens workers for conversations, separates clients, answers what dead processes left behind."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from leporello.agent.agent import Agent
from leporello.agent.endpoints import Chosen, choose_model, offered_models
from leporello.agent.session import open_agent
from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.artifacts import StoredArchive, delete_and_remember
from leporello.conversation.compact import CompactionJob
from leporello.errors import ConfigError, LeporelloError
from leporello.gateway.api_errors import ApiError, RequestRefused, refuse
from leporello.gateway.auth import Client
from leporello.gateway.conversation_cache import MOST_BYTES, ConversationCache
from leporello.gateway.limits import MOST_CLIENTS, DailyBudget
from leporello.gateway.sessions.worker import GONE, ConversationWorker, PendingMessage, WorkerServices
from leporello.plugins.host import PluginHost
from leporello.providers.scripted import DEMO_MODEL
from leporello.recall.base import DEFAULT_TOKENS, RecallQuery, Window
from leporello.store import Store
from leporello.store.records import ConversationFilter, ConversationRecord, Metadata, Page
from leporello.tools.terminal import BackgroundJobs

PLATFORM = "api"
MOST_ARCHIVES = 16
MOST_NAMED = 20
RESCUE_SECONDS = 4.0
GRACE_SECONDS = 25.0
TURN_THREADS = 64
QUERY_THREADS = 8
NO_SUCH_CONVERSATION = ApiError(404, "no_such_conversation", "There is no conversation with this id.")

Chooser = Callable[[Settings, str | None], Chosen]
log = logging.getLogger("leporello.gateway")


class Sessions:
    """The agent conversations that this process works on."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        choose: Chooser = choose_model,
        *,
        plugins: PluginHost | None = None,
        later: Callable[[CompactionJob], bool] | None = None,
        idle: float = math.inf,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`later` takes compactions that can wait; workers unused for `idle` seconds are closed."""
        self.store = store
        self.settings = settings
        self._choose = choose
        self.plugins = plugins or PluginHost(settings)
        self._later = later
        tokens, dollars = (settings.get(f"gateway.{name}_per_day") for name in ("tokens", "dollars"))
        self.budget = DailyBudget(store, tokens, dollars, models=settings.get("models"))
        self._workers = ConversationCache[ConversationWorker](idle, most_bytes)
        self._archives: dict[str, StoredArchive] = {}
        self._asking: dict[str, tuple[Client, str]] = {}  # by conversation: who asked last, and the model
        self._searching = threading.Lock()
        self._threads = ThreadPoolExecutor(TURN_THREADS, "leporello-agent")
        self._queries = ThreadPoolExecutor(QUERY_THREADS, "leporello-inbox")
        self._services = WorkerServices(store, self._threads, self._queries, self._spending)

    # -- whose conversation

    def record(self, client: Client, id: str) -> ConversationRecord:
        """A conversation of this client; any other does not exist for it."""
        found = self.store.conversations.find(id)
        if found is None or found.metadata.platform != PLATFORM or found.metadata.owner != owner(client):
            raise RequestRefused(NO_SUCH_CONVERSATION)
        return found

    def page(self, client: Client, limit: int, cursor: str | None) -> Page:
        """Conversations of this client, newest activity first."""
        where = ConversationFilter(platform=PLATFORM, owner=owner(client))
        return self.store.conversations.page(where, limit, cursor)

    def create(self, client: Client, model: str = "", title: str = "") -> ConversationRecord:
        """Create a conversation; without a model it uses the configured one."""
        return self.store.conversations.create(None, self.metadata(client, model, title))

    def check_model(self, name: str) -> None:
        """Raises `RequestRefused` (400) for a model that can't be had, and names those that can."""
        default = self.settings.model.default or ""
        if name == default:
            return
        try:
            self._choose(self.settings, name)
            offered = offered_models(self.settings, name)
        except ConfigError:
            offered = [name for name in (default, DEMO_MODEL) if name]
        if offered and name not in offered:
            names = ", ".join(offered[:MOST_NAMED]) + (", ..." if len(offered) > MOST_NAMED else "")
            raise refuse(400, "model_not_found", f"No model {name!r} is served here. There are: {names}.")

    def check_budget(self, record: ConversationRecord, client: Client) -> None:
        """Raises `RequestRefused` when a client's day is used up; looked at again when its message's turn has come."""
        self.budget.check(client, record.metadata.model)
        self._asking[record.id] = client, record.metadata.model
        while len(self._asking) > MOST_CLIENTS:
            del self._asking[next(iter(self._asking))]

    def _spending(self, id: str) -> AbstractContextManager[None]:
        return self.budget.turn(*self._asking[id]) if id in self._asking else nullcontext()

    def metadata(self, client: Client, model: str = "", title: str = "") -> Metadata:
        name = model or self.settings.model.default or ""
        return Metadata(title=title, platform=PLATFORM, model=name, owner=owner(client))

    def search(self, id: str, query: str) -> list[Window]:
        """Search a conversation, without waiting for its turn."""
        with self._searching:
            archive = self._archives.pop(id, None) or StoredArchive(
                self.store, id, by_meaning=self.settings.get("recall.vectors")
            )
            self._archives[id] = archive
            if len(self._archives) > MOST_ARCHIVES:
                del self._archives[next(iter(self._archives))]
            return archive.search(RecallQuery(query, DEFAULT_TOKENS))

    # -- workers

    async def worker(self, record: ConversationRecord) -> ConversationWorker:
        """The worker of a conversation that has a usable model."""
        found = self._workers.get(record.id)
        if found is not None:
            self._workers.touch(found)
            return found
        loop = asyncio.get_running_loop()
        try:
            chosen = await loop.run_in_executor(self._threads, self._chosen, record)
        except ConfigError:
            raise refuse(
                409, "no_model", "No usable model is set for this conversation: the gateway's operator can set one."
            ) from None
        return await self._worker(record.id, chosen)

    async def enqueue(self, record: ConversationRecord, text: str, id: str) -> PendingMessage:
        """Give a message to a conversation; when this returns it is stored."""
        while True:
            worker = await self.worker(record)
            pending = await worker.enqueue(text, id)
            if pending.outcome is not None or not worker.closed:
                return pending
            # The worker was closed meanwhile; the next one takes the message up.

    async def _worker(self, id: str, chosen: Chosen | None = None) -> ConversationWorker:
        found = self._workers.get(id)
        if found is None:
            found = ConversationWorker(id, self._services, partial(self._open, id, chosen))
            self._workers.add(found)
            await self.evict(found)
        return found

    def _chosen(self, record: ConversationRecord) -> Chosen:
        return self._choose(self.settings, record.metadata.model or None)

    def _open(self, id: str, chosen: Chosen | None, store: Store, jobs: BackgroundJobs) -> Agent:
        """The agent of a conversation; called in its turn, so that no other process opens it at the same time."""
        agent = open_agent(
            self.settings,
            chosen or self._chosen(store.conversations.resolve(id)),
            store=store,
            id=id,
            workdir=self._workdir(id),
            platform=PLATFORM,
            plugins=self.plugins,
            jobs=jobs,
            background=False,
        )
        agent.conversation.runtime.hooks.later = self._later
        return agent

    def _workdir(self, id: str) -> Path:
        """A folder of its own for each conversation: the tools of one don't see the files of another."""
        name = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        folder = self.settings.home.path / "workspaces" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    async def delete(self, record: ConversationRecord) -> None:
        """Delete a conversation. Whatever is under way, here or in another process, can't write any more."""
        worker = self._workers.get(record.id)
        if worker is not None:
            self._workers.remove(worker)
            await worker.close(GONE)
        await asyncio.to_thread(self._delete, record)

    def _delete(self, record: ConversationRecord) -> None:
        self.budget.set_aside_conversation(record.metadata.owner, record.id)
        delete_and_remember(self.store, self.settings.home, record.id)

    async def watch(self) -> None:
        """Answer messages whose process died, again and again."""
        while True:
            await asyncio.sleep(RESCUE_SECONDS)
            try:
                loop = asyncio.get_running_loop()
                for id in await loop.run_in_executor(self._queries, self.store.inbox.stranded):
                    (await self._worker(id)).rescue()
            except LeporelloError as error:
                log.warning('{"problem": "rescue", "kind": "%s"}', type(error).__name__)

    # -- the end of sessions

    async def end(self, id: str, before: float, reason: str) -> bool:
        """End a session that was last used before a time, unless another process did: engine and plugins are told once.

        Returns whether it was ended here. The next message reopens it.
        """
        worker = await self._worker(id)
        ended = bool(await worker.run_if_free(lambda store: self._end(store, worker, before, reason)))
        if not worker.in_use and (ended or worker.handler.agent is None):
            self._workers.remove(worker)
            await worker.close()
        return ended

    def _end(self, store: Store, worker: ConversationWorker, before: float, reason: str) -> bool:
        # In the turn: whoever comes second sees that it is done, or that somebody wrote meanwhile.
        record = store.conversations.resolve(worker.id)
        if not record.open or record.updated_at >= before:
            return False
        agent = worker.handler.agent
        if agent is not None:
            conversation = agent.conversation
        else:
            conversation = Conversation(store, record, self.settings, plugins=self.plugins, beside=True)
        conversation.runtime.log.refresh()
        conversation.runtime.leave("expired")
        store.conversations.end(worker.id, reason)
        return True

    async def evict(self, keep: ConversationWorker | None = None) -> None:
        """Close workers that were not used for long or weigh too much. Their sessions don't end."""
        for worker in self._workers.evict(keep):
            await worker.close()

    async def close(self) -> None:
        """Let accepted messages be answered, for a while; other processes, or the next start, answer the rest."""
        workers = list(self._workers)
        await asyncio.gather(*(worker.drain(GRACE_SECONDS) for worker in workers))
        await asyncio.gather(*(worker.close() for worker in workers))
        for worker in workers:
            self._workers.remove(worker)
        await asyncio.to_thread(self._threads.shutdown)
        self._queries.shutdown()


def owner(client: Client) -> str:
    """The name under which a client's conversations are stored."""
    return client.key.name
