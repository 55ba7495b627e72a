"""The port for chat services (Telegram- or Slack-like): the agent answers messages of their chats.

A platform is given an `Inbox` and runs until it is cancelled. For each message that arrives it calls

    reply = await inbox.message(chat="room-7", text="What changed today?", id="their-message-id")

and sends `reply.text` to the chat. One chat is one conversation. Services deliver a message again when they are not
sure that it arrived: the id makes sure that it is answered once.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Protocol

from leporello.gateway.auth import Client, Key
from leporello.gateway.sessions.message_handler import MessageOutcome
from leporello.gateway.sessions.sessions import Sessions
from leporello.store import find_or_create
from leporello.store.records import ConversationRecord


class Platform(Protocol):
    """A chat service."""

    @property
    def name(self) -> str:
        """Short, and never changed: conversations are stored under it."""

    async def run(self, inbox: PlatformInbox) -> None:
        """Take messages from the service and give answers back, until cancelled."""


@dataclass(frozen=True, slots=True)
class PlatformInbox:
    """Accepts the messages of one platform."""

    platform: str
    sessions: Sessions

    async def message(self, chat: str, text: str, id: str) -> MessageOutcome:
        """The agent's answer to a message of a chat. Messages of one chat are answered one after the other."""
        record = await asyncio.to_thread(self._conversation, chat)
        pending = await self.sessions.enqueue(record, text, id)
        return await pending.ended()

    def _conversation(self, chat: str) -> ConversationRecord:
        digest = hashlib.blake2b(chat.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        id = f"{self.platform}-{digest}"
        # Under the platform's own name: no API key sees the conversations of a chat service.
        client = Client(Key(f"platform:{self.platform}", ""), "")
        return find_or_create(self.sessions.store.conversations, id, self.sessions.metadata(client, title=chat[:200]))


@dataclass(slots=True)
class InProcessPlatform:
    """A chat service inside this process: the smallest complete example, also for tests.

    `await chat.say("room", "Hello")` gives the answer.
    """

    name: str = "in-process"
    _arrived: asyncio.Queue[tuple[str, str, str, asyncio.Future[MessageOutcome]]] = field(default_factory=asyncio.Queue)
    _count: int = 0

    async def run(self, inbox: PlatformInbox) -> None:
        """Answer messages; chats don't wait for each other."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                chat, text, id, answer = await self._arrived.get()
                tasks.create_task(self._answer(inbox, chat, text, id, answer))

    @staticmethod
    async def _answer(
        inbox: PlatformInbox, chat: str, text: str, id: str, answer: asyncio.Future[MessageOutcome]
    ) -> None:
        outcome = await inbox.message(chat, text, id)
        if not answer.done():
            answer.set_result(outcome)

    async def say(self, chat: str, text: str, id: str = "") -> MessageOutcome:
        """Write to a chat and wait for the answer."""
        self._count += 1
        answer: asyncio.Future[MessageOutcome] = asyncio.get_running_loop().create_future()
        await self._arrived.put((chat, text, id or f"{chat}-{self._count}", answer))
        return await answer
