"""Agent sessions: opens desks for conversations, keeps clients apart, and ends what nobody uses any more."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from leporello.agent.agent import Agent
from leporello.agent.session import Chosen, choose_model, open_agent
from leporello.config import Settings
from leporello.errors import ConfigError, NotFound
from leporello.gateway.auth import Client
from leporello.gateway.desk import Desk
from leporello.gateway.faults import refuse
from leporello.store.base import Store
from leporello.store.records import ConversationFilter, ConversationRecord, Metadata, Page

PLATFORM = "api"
EXPIRY = "expiry"
MOST_OPEN = 200
SWEEP_SECONDS = 30.0

Chooser = Callable[[Settings, str | None], Chosen]


class Sessions:
    """All agent conversations of this process."""

    def __init__(self, store: Store, settings: Settings, idle: float, choose: Chooser = choose_model) -> None:
        self.store = store
        self.settings = settings
        self._idle = idle
        self._choose = choose
        self._desks: dict[str, Desk] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self.threads = ThreadPoolExecutor(32, "leporello-agent")

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

    # -- desks

    async def desk(self, record: ConversationRecord) -> Desk:
        """The conversation, opened."""
        async with self._opening.setdefault(record.id, asyncio.Lock()):
            found = self._desks.get(record.id)
            if found is not None:
                return found
            try:
                agent = await asyncio.get_running_loop().run_in_executor(self.threads, self._open, record)
            except ConfigError:
                raise refuse(
                    409, "no_model", "No usable model is set for this conversation: the gateway's operator can set one."
                ) from None
            desk = self._desks[record.id] = Desk(agent, self.threads)
            await self._make_room()
            return desk

    def _open(self, record: ConversationRecord) -> Agent:
        chosen = self._choose(self.settings, record.metadata.model or None)
        if not record.open:
            self.store.conversations.reopen(record.id)
        return open_agent(
            self.settings,
            chosen,
            store=self.store,
            id=record.id,
            workdir=self._workdir(record.id),
            platform=PLATFORM,
        )

    def _workdir(self, id: str) -> Path:
        """A folder of its own for each conversation: the tools of one don't see the files of another."""
        name = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        folder = self.settings.home.path / "workspaces" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    async def delete(self, record: ConversationRecord) -> None:
        """Remove a conversation with all it has; what is under way is stopped first."""
        desk = self._desks.pop(record.id, None)
        if desk is not None:
            desk.cancel()
            await desk.drain()
        await asyncio.to_thread(self.store.conversations.delete, record.id)
        self._opening.pop(record.id, None)

    # -- the end of sessions

    async def sweep(self) -> None:
        """End idle sessions, again and again."""
        while True:
            await asyncio.sleep(min(SWEEP_SECONDS, self._idle))
            await self.expire(time.monotonic() - self._idle)

    async def expire(self, before: float) -> list[str]:
        """End all sessions that were last used before a time; their ids."""
        ended = []
        for id, desk in list(self._desks.items()):
            if desk.idle and desk.used <= before:
                self._desks.pop(id, None)
                self._opening.pop(id, None)
                await asyncio.get_running_loop().run_in_executor(self.threads, self._end, desk.agent)
                ended.append(id)
        return ended

    def _end(self, agent: Agent) -> None:
        """A real end: the engine is told, and the conversation is marked. It can be taken up again."""
        talk = agent.talk
        talk.engine.on_session_end(talk.view.session, talk.messages)
        self.store.conversations.end(talk.id, EXPIRY)

    async def _make_room(self) -> None:
        """Close those unused for longest without ending them: they open again where they stood."""
        idle = sorted((desk for desk in self._desks.values() if desk.idle), key=lambda desk: desk.used)
        for desk in idle[: max(0, len(self._desks) - MOST_OPEN)]:
            self._desks.pop(desk.id, None)

    async def close(self) -> None:
        """Let every message that was taken in be answered, then stop."""
        for desk in list(self._desks.values()):
            await desk.drain()
        self.threads.shutdown(wait=True)


def owner(client: Client) -> str:
    """The name under which a client's conversations are kept."""
    return client.key.name
