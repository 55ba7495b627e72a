"""Agent sessions: opens workers for conversations, keeps clients apart, finishes what dead workers left behind."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from leporello.agent.agent import Agent
from leporello.agent.session import Chosen, choose_model, open_agent
from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.artifacts import StoredArchive
from leporello.conversation.compact import CompactionJob
from leporello.errors import ConfigError, LeporelloError, NotFound
from leporello.gateway.api_errors import refuse
from leporello.gateway.auth import Client
from leporello.gateway.sessions.worker import GONE, ConversationWorker, PendingMessage, WorkerServices
from leporello.plugins.host import PluginHost
from leporello.recall.base import DEFAULT_TOKENS, RecallQuery, Window
from leporello.store import Store
from leporello.store.records import ConversationFilter, ConversationRecord, Metadata, Page
from leporello.tools.terminal import BackgroundJobs

PLATFORM = "api"
MOST_OPEN = 200
MOST_ARCHIVES = 16
RESCUE_SECONDS = 2.0
GRACE_SECONDS = 25.0
TURN_THREADS = 64
QUERY_THREADS = 8

Chooser = Callable[[Settings, str | None], Chosen]
log = logging.getLogger("leporello.gateway")


class Sessions:
    """All agent conversations that this process has to do with."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        choose: Chooser = choose_model,
        *,
        plugins: PluginHost | None = None,
        later: Callable[[CompactionJob], bool] | None = None,
    ) -> None:
        """`later` takes foldings that can wait."""
        self.store = store
        self.settings = settings
        self.choose = choose
        self.plugins = plugins or PluginHost(settings)
        self._later = later
        self._desks: dict[str, ConversationWorker] = {}
        self._archives: dict[str, StoredArchive] = {}
        self._searching = threading.Lock()
        self.threads = ThreadPoolExecutor(TURN_THREADS, "leporello-agent")
        self._queries = ThreadPoolExecutor(QUERY_THREADS, "leporello-inbox")
        self._around = WorkerServices(store, self.threads, self._queries)

    # -- whose conversation

    def record(self, client: Client, id: str) -> ConversationRecord:
        """A conversation of this client; any other does not exist for it."""
        try:
            found = self.store.conversations.resolve(id)
        except NotFound:
            found = None
        if found is None or found.metadata.platform != PLATFORM or found.metadata.owner != owner(client):
            raise refuse(404, "no_such_conversation", "There is no conversation with this id.")
        return found

    def record_of(self, id: str) -> ConversationRecord:
        """A conversation by its id, whoever it belongs to; for callers inside this process."""
        return self.store.conversations.resolve(id)

    def page(self, client: Client, limit: int, cursor: str | None) -> Page:
        """Conversations of this client, newest activity first."""
        where = ConversationFilter(platform=PLATFORM, owner=owner(client))
        return self.store.conversations.page(where, limit, cursor)

    def create(self, client: Client, model: str = "", title: str = "", id: str | None = None) -> ConversationRecord:
        """A new conversation; without a model it is talked to with the configured one."""
        name = model or self.settings.model.default or ""
        about = Metadata(title=title, platform=PLATFORM, model=name, owner=owner(client))
        return self.store.conversations.create(id, about)

    def search(self, id: str, query: str) -> list[Window]:
        """Search a conversation; it waits for no turn."""
        with self._searching:
            archive = self._archives.pop(id, None) or StoredArchive(
                self.store, id, by_meaning=self.settings.get("recall.vectors")
            )
            self._archives[id] = archive
            if len(self._archives) > MOST_ARCHIVES:
                del self._archives[next(iter(self._archives))]
            return archive.search(RecallQuery(query, DEFAULT_TOKENS))

    # -- desks

    async def desk(self, record: ConversationRecord) -> ConversationWorker:
        """The desk of a conversation that can be talked to."""
        found = self._desks.get(record.id)
        if found is not None:
            return found
        loop = asyncio.get_running_loop()
        try:
            chosen = await loop.run_in_executor(self.threads, self._chosen, record)
        except ConfigError:
            raise refuse(
                409, "no_model", "No usable model is set for this conversation: the gateway's operator can set one."
            ) from None
        return await self._desk(record.id, chosen)

    async def post(self, record: ConversationRecord, text: str, id: str) -> PendingMessage:
        """Give a letter to a conversation; when this returns it is stored."""
        while True:
            worker = await self.desk(record)
            job = await worker.post(text, id)
            if job.outcome is not None or not worker.closed:
                return job
            # It was put down meanwhile; the next one takes the letter up.

    async def _desk(self, id: str, chosen: Chosen | None = None) -> ConversationWorker:
        found = self._desks.get(id)
        if found is None:
            found = self._desks[id] = ConversationWorker(id, self._around, partial(self._open, id, chosen))
            await self._make_room(found)
        return found

    def _chosen(self, record: ConversationRecord) -> Chosen:
        return self.choose(self.settings, record.metadata.model or None)

    def _open(self, id: str, chosen: Chosen | None, store: Store, jobs: BackgroundJobs) -> Agent:
        """The agent of a conversation; called in its turn, so that no other worker opens it at the same time."""
        agent = open_agent(
            self.settings,
            chosen or self._chosen(store.conversations.resolve(id)),
            store=store,
            id=id,
            workdir=self._workdir(id),
            platform=PLATFORM,
            plugins=self.plugins,
            jobs=jobs,
        )
        agent.talk.later = self._later
        return agent

    def _workdir(self, id: str) -> Path:
        """A folder of its own for each conversation: the tools of one don't see the files of another."""
        name = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        folder = self.settings.home.path / "workspaces" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    async def delete(self, record: ConversationRecord) -> None:
        """Remove a conversation with all it has. Whatever is under way, here or elsewhere, can't write any more."""
        worker = self._desks.pop(record.id, None)
        if worker is not None:
            await worker.close(GONE)
        await asyncio.to_thread(self.store.conversations.delete, record.id)

    # -- what others left behind

    async def watch(self) -> None:
        """Answer letters whose worker died, again and again."""
        while True:
            await asyncio.sleep(RESCUE_SECONDS)
            try:
                await self.rescue()
            except LeporelloError as error:
                log.warning('{"problem": "rescue", "kind": "%s"}', type(error).__name__)

    async def rescue(self) -> list[str]:
        """Take up conversations with letters that nobody answers; their ids."""
        found = await asyncio.get_running_loop().run_in_executor(self._queries, self.store.inbox.stranded)
        for id in found:
            (await self._desk(id)).rescue()
        return found

    # -- the end of sessions

    async def end(self, id: str, before: float, reason: str) -> bool:
        """End a session that was last used before a time: engine and plugins are told, once, whoever does it.

        Whether it was ended here. It can be taken up again.
        """
        worker = await self._desk(id)
        ended = bool(await worker.turn_if_free(lambda store: self._end(store, worker, before, reason)))
        if ended or worker.reader.agent is None:
            await self._put_down(worker)
        return ended

    def _end(self, store: Store, desk: ConversationWorker, before: float, reason: str) -> bool:
        # In the turn: whoever comes second sees that it is done, or that somebody wrote meanwhile.
        record = store.conversations.resolve(desk.id)
        if not record.open or record.updated_at >= before:
            return False
        agent = desk.reader.agent
        conversation = (
            agent.talk if agent else Conversation(store, record, self.settings, plugins=self.plugins, beside=True)
        )
        conversation.refresh()
        conversation.leave("expired")
        store.conversations.end(desk.id, reason)
        return True

    async def _make_room(self, wanted: ConversationWorker) -> None:
        """Put those down that were unused for longest, without ending them: they open again where they stood."""
        idle = sorted(
            (desk for desk in self._desks.values() if desk.idle and desk is not wanted), key=lambda desk: desk.used
        )
        for worker in idle[: max(0, len(self._desks) - MOST_OPEN)]:
            await self._put_down(worker)

    async def put_down_unused(self, seconds: float) -> None:
        """Put down what was not used here for a while."""
        limit = time.monotonic() - seconds
        for worker in [desk for desk in self._desks.values() if desk.idle and desk.used < limit]:
            await self._put_down(worker)

    async def _put_down(self, desk: ConversationWorker) -> None:
        if desk.idle:
            self._desks.pop(desk.id, None)
            await desk.close()

    async def close(self) -> None:
        """Let what was taken in be answered, for a while; other workers, or the next start, do the rest."""
        desks = list(self._desks.values())
        await asyncio.gather(*(desk.drain(GRACE_SECONDS) for desk in desks))
        await asyncio.gather(*(desk.close() for desk in desks))
        self._desks.clear()
        await asyncio.to_thread(self.threads.shutdown)
        self._queries.shutdown()


def owner(client: Client) -> str:
    """The name under which a client's conversations are kept."""
    return client.key.name
