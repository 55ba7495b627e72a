"""Forms: signing in and out; compress, undo and pin, each with the session's token and a sentence as the answer."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from leporello.conversation import Conversation
from leporello.conversation.artifacts import Pinboard
from leporello.errors import InputError, LeporelloError, NotFound
from leporello.events import CompactionReport
from leporello.gateway.api_errors import RequestRefused, refuse
from leporello.gateway.dashboard.http import (
    STORE_ERROR,
    PageRequest,
    PageServer,
    end_session,
    set_session,
    whole_number,
)
from leporello.gateway.dashboard.reader import ConversationReader
from leporello.gateway.metrics import RequestLog
from leporello.gateway.proxy.rewrite import proxy_summariser
from leporello.gateway.sessions.sessions import PLATFORM, Sessions
from leporello.present.records import compaction_line
from leporello.redact import redact
from leporello.store.records import ConversationRecord

LONGEST_FOCUS = 500


def action_routes(server: PageServer, sessions: Sessions) -> list[BaseRoute]:
    store = sessions.store

    async def writable(request: PageRequest) -> ConversationReader:
        if store.read_only:
            raise refuse(409, "read_only", "This store can only be read.")
        return await asyncio.to_thread(request.conversation)

    async def compress(request: PageRequest) -> Response:
        conversation = await writable(request)
        focus = redact(request.form.get("focus", "").strip())[:LONGEST_FOCUS]
        report = await _compact(conversation, sessions, focus)
        return _notice(request, conversation.record, redact(compaction_line(report)), good=report.committed)

    async def undo(request: PageRequest) -> Response:
        record = (await writable(request)).record
        try:
            view = await asyncio.to_thread(store.views.undo, record.id)
        except NotFound:
            raise refuse(409, "nothing_to_undo", "There is no compaction to undo.") from None
        shown = f"{len(view.lines):,} messages are shown again"
        return _notice(request, record, f"The last compaction is undone; {shown}.")

    def pinboard(conversation: ConversationReader) -> Pinboard:
        sizes = conversation.measure.sizes
        return Pinboard(store, conversation.record.id, sizes.counter, sizes.limits.pin_tokens)

    async def pin(request: PageRequest) -> Response:
        conversation = await writable(request)
        name = _message_id(request, conversation.record)
        try:
            size = await asyncio.to_thread(lambda: pinboard(conversation).add(name))
        except InputError as error:
            return _notice(request, conversation.record, str(error), good=False)
        return _notice(request, conversation.record, f"{name} is pinned ({size:,} tokens); every fold will quote it.")

    async def unpin(request: PageRequest) -> Response:
        conversation = await writable(request)
        name = _message_id(request, conversation.record)
        was = await asyncio.to_thread(lambda: pinboard(conversation).remove(name))
        return _notice(request, conversation.record, f"{name} {'is no longer' if was else 'was not'} pinned.")

    handlers = {"compress": compress, "undo": undo, "pin": pin, "unpin": unpin}
    return [server.route(f"/c/{{slug}}/{name}", handler, change=True) for name, handler in handlers.items()]


async def _compact(conversation: ConversationReader, sessions: Sessions, focus: str) -> CompactionReport:
    if conversation.record.metadata.platform == PLATFORM:
        try:
            worker = await sessions.worker(conversation.record)
        except RequestRefused:
            # Its model can't be used here. Folding needs none.
            pass
        else:
            return await worker.compact(focus)

    def compact() -> CompactionReport:
        with Conversation(
            sessions.store,
            conversation.record,
            sessions.settings,
            window=conversation.measure.sizes.limits.window,
            summariser=proxy_summariser(sessions.settings),
            plugins=sessions.plugins,
            beside=True,
        ) as opened:
            return opened.compact(focus)

    return await asyncio.to_thread(compact)


def _message_id(request: PageRequest, record: ConversationRecord) -> str:
    number = whole_number(request.form.get("number", ""))
    if number is None or not 1 <= number <= record.messages:
        raise refuse(404, "no_such_message", "This conversation has no such message.")
    return f"m{number}"


def _notice(request: PageRequest, record: ConversationRecord, text: str, *, good: bool = True) -> Response:
    return request.render("notice.html", record=record, text=text, good=good)


# -- signing in and out


def login_routes(server: PageServer) -> list[BaseRoute]:
    async def show(request: Request) -> Response:
        user = None
        try:
            server.auth.browsers.check(request.headers)
            user = await asyncio.to_thread(server.auth.user, request.cookies)
        except RequestRefused as refused:
            reply = server.problem(request, None, refused.error)
        except LeporelloError:
            reply = server.problem(request, None, STORE_ERROR)
        else:
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
        server.auth.browsers.check(request.headers)
        form = await server.read_form(request)
        # There is no session yet whose token could be asked for: that the page is ours is what counts.
        server.auth.check_change(request.headers, None, "")
        address = request.client.host if request.client else ""
        user = server.auth.sign_in(form.get("key", ""), address) if server.auth.keys else None
    except RequestRefused as refused:
        if refused.error.status == 429:
            reply = _form(server, "", refused.error.message, 429)
            reply.headers["retry-after"] = "60"
            return reply
        return server.problem(request, None, refused.error)
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
