"""The buttons: compress, undo, pin. Each is a form with the session's token and answers with a sentence."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from leporello.agent.agent import Agent
from leporello.agent.commands import describe_report
from leporello.conversation import Conversation
from leporello.conversation.artifacts import Pinboard
from leporello.errors import InputError, NotFound
from leporello.events import CompactionReport
from leporello.gateway.api_errors import RequestRefused, refuse
from leporello.gateway.dashboard.http import PageRequest, PageServer
from leporello.gateway.dashboard.reader import DashboardReader
from leporello.gateway.proxy.rewrite import proxy_summariser
from leporello.gateway.sessions.sessions import PLATFORM, Sessions
from leporello.redact import redact
from leporello.store.records import ConversationRecord


@dataclass(frozen=True, slots=True)
class DashboardService:
    """Changes conversations."""

    reader: DashboardReader
    sessions: Sessions

    async def compress(self, record: ConversationRecord, focus: str) -> CompactionReport:
        """Fold now."""
        if record.metadata.platform == PLATFORM:
            try:
                worker = await self.sessions.worker(record)
            except RequestRefused:
                # Its model can't be used here. Folding needs none.
                return await asyncio.to_thread(self._compress, record, focus)
            return await worker.run(lambda agent: _compact(agent, focus))
        return await asyncio.to_thread(self._compress, record, focus)

    def _compress(self, record: ConversationRecord, focus: str) -> CompactionReport:
        reader = self.reader
        with Conversation(
            reader.store,
            record,
            reader.settings,
            window=reader.measure(record).limits.window,
            summariser=proxy_summariser(reader.settings),
            plugins=self.sessions.plugins,
            beside=True,
        ) as conversation:
            return conversation.compact(focus)

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


LONGEST_FOCUS = 500


def actions(frame: PageServer, hands: DashboardService) -> list[BaseRoute]:
    """All paths that change something."""

    async def compress(visit: PageRequest) -> Response:
        record = await _writable(visit)
        report = await hands.compress(record, redact(visit.form.get("focus", "").strip())[:LONGEST_FOCUS])
        return _said(visit, record, redact(describe_report(report)), good=report.committed)

    async def undo(visit: PageRequest) -> Response:
        record = await _writable(visit)
        try:
            shown = await asyncio.to_thread(hands.undo, record)
        except NotFound:
            raise refuse(409, "nothing_to_undo", "There is no folding that could be taken back.") from None
        return _said(visit, record, f"The last folding is taken back; {shown:,} messages are shown again.")

    async def pin(visit: PageRequest) -> Response:
        record = await _writable(visit)
        number = _number(visit, record)
        try:
            size = await asyncio.to_thread(hands.pin, record, number)
        except InputError as error:
            return _said(visit, record, str(error), good=False)
        return _said(visit, record, f"m{number} is pinned ({size:,} tokens); every fold will quote it.")

    async def unpin(visit: PageRequest) -> Response:
        record = await _writable(visit)
        number = _number(visit, record)
        was = await asyncio.to_thread(hands.unpin, record, number)
        return _said(visit, record, f"m{number} is no longer pinned." if was else f"m{number} was not pinned.")

    one = "/c/{slug}"
    return [
        frame.route(f"{one}/compress", compress, change=True),
        frame.route(f"{one}/undo", undo, change=True),
        frame.route(f"{one}/pin", pin, change=True),
        frame.route(f"{one}/unpin", unpin, change=True),
    ]


async def _writable(visit: PageRequest) -> ConversationRecord:
    if visit.frame.reader.store.read_only:
        raise refuse(409, "read_only", "This store can only be read.")
    return await asyncio.to_thread(visit.record)


def _number(visit: PageRequest, record: ConversationRecord) -> int:
    text = visit.form.get("number", "")
    if not text.isascii() or not text.isdecimal() or len(text) > 12 or not 1 <= int(text) <= record.messages:
        raise refuse(404, "no_such_message", "This conversation has no such message.")
    return int(text)


def _said(visit: PageRequest, record: ConversationRecord, text: str, *, good: bool = True) -> Response:
    return visit.render("said.html", record=record, text=text, good=good)
