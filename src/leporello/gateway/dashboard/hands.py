"""What the buttons do. The agent of an agent session does it itself, in its turn; any other conversation is opened
beside whoever talks in it, which the store allows: one compaction wins, and nobody waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from leporello.agent.agent import Agent
from leporello.conversation import Conversation
from leporello.conversation.artifacts import Pinboard
from leporello.events import CompactionReport
from leporello.gateway.dashboard.reader import Reader
from leporello.gateway.faults import Refused
from leporello.gateway.narrator import proxy_narrator
from leporello.gateway.sessions import PLATFORM, Sessions
from leporello.store.records import ConversationRecord


@dataclass(frozen=True, slots=True)
class Hands:
    """Changes conversations."""

    reader: Reader
    sessions: Sessions

    async def compress(self, record: ConversationRecord, focus: str) -> CompactionReport:
        """Fold now."""
        if record.metadata.platform == PLATFORM:
            try:
                desk = await self.sessions.desk(record)
            except Refused:
                # Its model can't be used here. Folding needs none.
                return await asyncio.to_thread(self._compress, record, focus)
            return await desk.run(lambda agent: _compact(agent, focus))
        return await asyncio.to_thread(self._compress, record, focus)

    def _compress(self, record: ConversationRecord, focus: str) -> CompactionReport:
        reader = self.reader
        with Conversation(
            reader.store,
            record,
            reader.settings,
            window=reader.measure(record).limits.window,
            summariser=proxy_narrator(reader.settings),
            plugins=self.sessions.plugins,
            beside=True,
        ) as talk:
            return talk.compact(focus)

    def undo(self, record: ConversationRecord) -> int:
        """Take the last folding back; how many messages are shown again."""
        return len(self.reader.store.views.undo(record.id).lines)

    def pin(self, record: ConversationRecord, number: int) -> int:
        """Keep a message word for word; its tokens."""
        return self._board(record).add(f"m{number}")

    def unpin(self, record: ConversationRecord, number: int) -> bool:
        """Let a pinned message go."""
        return self._board(record).remove(f"m{number}")

    def _board(self, record: ConversationRecord) -> Pinboard:
        measure = self.reader.measure(record)
        return Pinboard(self.reader.store, record.id, measure.counter, measure.limits.pin_tokens)


def _compact(agent: Agent, focus: str) -> CompactionReport:
    agent.measure()
    return agent.talk.compact(focus)
