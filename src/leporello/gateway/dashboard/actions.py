"""Forms: signing in and out; compress, undo and pin, each with the session's token and a sentence as the answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from leporello.agent.agent import Agent
from leporello.conversation import Conversation
from leporello.conversation.artifacts import Pinboard
from leporello.errors import InputError, LeporelloError, NotFound
from leporello.events import CompactionReport
from leporello.gateway.api_errors import RequestRefused, refuse
from leporello.gateway.dashboard.http import STORE_FAULT, PageRequest, PageServer, end_session, set_session
from leporello.gateway.dashboard.reader import DashboardReader
from leporello.gateway.metrics import RequestLog
from leporello.gateway.proxy.rewrite import proxy_summariser
from leporello.gateway.sessions.sessions import PLATFORM, Sessions
from leporello.present.records import compaction_line
from leporello.redact import redact
from leporello.store.records import ConversationRecord


@dataclass(frozen=True, slots=True)
class DashboardService:
    reader: DashboardReader
    sessions: Sessions

    async def compress(self, record: ConversationRecord, focus: str) -> CompactionReport:
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
        return self._board(record).remove(f"m{number}")

    def _board(self, record: ConversationRecord) -> Pinboard:
        measure = self.reader.measure(record)
        return Pinboard(self.reader.store, record.id, measure.counter, measure.limits.pin_tokens)


def _compact(agent: Agent, focus: str) -> CompactionReport:
    agent.measure()
    return agent.conversation.compact(focus)


LONGEST_FOCUS = 500


def actions(server: PageServer, service: DashboardService) -> list[BaseRoute]:

    async def compress(request: PageRequest) -> Response:
        record = await _writable(request)
        report = await service.compress(record, redact(request.form.get("focus", "").strip())[:LONGEST_FOCUS])
        return _notice(request, record, redact(compaction_line(report)), good=report.committed)

    async def undo(request: PageRequest) -> Response:
        record = await _writable(request)
        try:
            shown = await asyncio.to_thread(service.undo, record)
        except NotFound:
            raise refuse(409, "nothing_to_undo", "There is no compaction to undo.") from None
        return _notice(request, record, f"The last compaction is undone; {shown:,} messages are shown again.")

    async def pin(request: PageRequest) -> Response:
        record = await _writable(request)
        number = _number(request, record)
        try:
            size = await asyncio.to_thread(service.pin, record, number)
        except InputError as error:
            return _notice(request, record, str(error), good=False)
        return _notice(request, record, f"m{number} is pinned ({size:,} tokens); every fold will quote it.")

    async def unpin(request: PageRequest) -> Response:
        record = await _writable(request)
        number = _number(request, record)
        was = await asyncio.to_thread(service.unpin, record, number)
        return _notice(request, record, f"m{number} is no longer pinned." if was else f"m{number} was not pinned.")

    one = "/c/{slug}"
    return [
        server.route(f"{one}/compress", compress, change=True),
        server.route(f"{one}/undo", undo, change=True),
        server.route(f"{one}/pin", pin, change=True),
        server.route(f"{one}/unpin", unpin, change=True),
    ]


async def _writable(request: PageRequest) -> ConversationRecord:
    if request.server.reader.store.read_only:
        raise refuse(409, "read_only", "This store can only be read.")
    return await asyncio.to_thread(request.record)


def _number(request: PageRequest, record: ConversationRecord) -> int:
    text = request.form.get("number", "")
    if not text.isascii() or not text.isdecimal() or len(text) > 12 or not 1 <= int(text) <= record.messages:
        raise refuse(404, "no_such_message", "This conversation has no such message.")
    return int(text)


def _notice(request: PageRequest, record: ConversationRecord, text: str, *, good: bool = True) -> Response:
    return request.render("notice.html", record=record, text=text, good=good)


# -- signing in and out


def sign_routes(server: PageServer) -> list[BaseRoute]:
    """`/login` and `/logout`."""

    async def show(request: Request) -> Response:
        try:
            server.auth.check_page(request.headers)
            user = await asyncio.to_thread(server.auth.user, request.cookies)
        except RequestRefused as refused:
            return server.with_headers(request, server.problem(request, None, refused.fault), None)
        except LeporelloError:
            return server.with_headers(request, server.problem(request, None, STORE_FAULT), None)
        following = request.query_params.get("next", "")
        reply = _form(server, following, "") if user is None else RedirectResponse(local(following), 303)
        return server.with_headers(request, reply, user)

    async def take(request: Request) -> Response:
        with RequestLog("POST /login", server.metrics) as entry:
            reply = await _sign_in(server, request)
            entry.status = reply.status_code
            return server.with_headers(request, reply, None)

    return [
        Route("/login", show, methods=["GET"]),
        Route("/login", take, methods=["POST"]),
        server.route("/logout", _sign_out, change=True),
    ]


async def _sign_in(server: PageServer, request: Request) -> Response:
    try:
        server.auth.check_page(request.headers)
        form = await server.read_form(request)
        # There is no session yet whose token could be asked for: that the page is ours is what counts.
        server.auth.check_change(request.headers, None, "")
        address = request.client.host if request.client else ""
        user = server.auth.sign_in(form.get("key", ""), address) if server.auth.keys else None
    except RequestRefused as refused:
        if refused.fault.status == 429:
            reply = _form(server, "", refused.fault.message, 429)
            reply.headers["retry-after"] = "60"
            return reply
        return server.problem(request, None, refused.fault)
    if user is None:
        return _form(server, form.get("next", ""), "This is not one of the gateway's keys.", 401)
    reply = RedirectResponse(local(form.get("next", "")), 303)
    set_session(request, reply, user.fresh)
    return reply


def _form(server: PageServer, following: str, problem: str, status: int = 200) -> Response:
    return server.render("login.html", None, status, part=False, following=local(following), problem=problem)


async def _sign_out(request: PageRequest) -> Response:
    await asyncio.to_thread(request.server.auth.sign_out, request.user)
    reply = RedirectResponse("/login" if request.server.auth.keys else "/", 303)
    end_session(request.http, reply)
    return reply


def local(target: str) -> str:
    """A place in the dashboard to go on to; anything that could lead elsewhere is the first page."""
    plain = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if plain and "\\" not in target and len(target) < 2_000 else "/"
