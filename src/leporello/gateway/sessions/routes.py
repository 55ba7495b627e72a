"""The HTTP endpoints of agent sessions: JSON in, JSON or server-sent events out; `openapi.py` describes them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from leporello.dialects.base import Event
from leporello.errors import LeporelloError, NotFound
from leporello.gateway.api_errors import RequestRefused, json_body, refuse
from leporello.gateway.auth import Client, identify
from leporello.gateway.limits import read_body
from leporello.gateway.metrics import RequestLog
from leporello.gateway.proxy.endpoints import STORE_ERROR, Proxy
from leporello.gateway.sessions.openapi import Compress, NewConversation, NewMessage, Renamed
from leporello.gateway.sessions.sessions import NO_SUCH_CONVERSATION, Sessions
from leporello.gateway.sessions.worker import ConversationWorker, PendingMessage
from leporello.present.records import api_message
from leporello.redact import redact
from leporello.store.records import ConversationRecord

T = TypeVar("T")
LONGEST_PAGE = 200
MOST_MESSAGES = 500
MESSAGE_HEADER = "x-leporello-message"
BEAT_SECONDS = 15.0  # silence after which a comment is sent, so that no proxy on the way closes the connection as idle

Handler = Callable[["SessionRequest"], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """One request of an identified client."""

    http: Request
    client: Client
    sessions: Sessions
    data: bytes

    async def check_budget(self, record: ConversationRecord) -> None:
        await asyncio.to_thread(self.sessions.check_budget, record, self.client)

    def body(self, kind: type[T]) -> T:
        """The JSON body, checked. Raises RequestRefused (400) when it is of another form."""
        try:
            return msgspec.json.decode(self.data or b"{}", type=kind)
        except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            detail = str(error) if isinstance(error, msgspec.ValidationError) else "it is not JSON"
            raise refuse(400, "invalid_request", f"The body can't be used: {detail}.") from None

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number of the query string. Raises RequestRefused (400) when it is out of range."""
        text = self.http.query_params.get(name)
        if text is None:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 12 or not least <= int(text) <= most:
            raise refuse(400, "invalid_request", f"{name} must be a whole number from {least} to {most}.")
        return int(text)

    async def record(self) -> ConversationRecord:
        return await asyncio.to_thread(self.sessions.record, self.client, self.http.path_params["id"])

    async def worker(self) -> ConversationWorker:
        return await self.sessions.worker(await self.record())


def session_routes(sessions: Sessions, proxy: Proxy) -> list[BaseRoute]:
    def route(path: str, handler: Handler, method: str) -> Route:
        return Route(path, _endpoint(handler, sessions, proxy, f"{method} {path}"), methods=[method])

    one = "/api/conversations/{id}"
    return [
        route("/api/conversations", _create, "POST"),
        route("/api/conversations", _list, "GET"),
        route(one, _show, "GET"),
        route(one, _rename, "PATCH"),
        route(one, _delete, "DELETE"),
        route(f"{one}/messages", _post, "POST"),
        route(f"{one}/messages", _messages, "GET"),
        route(f"{one}/search", _search, "GET"),
        route(f"{one}/compress", _compress, "POST"),
        route(f"{one}/undo", _undo, "POST"),
        route(f"{one}/cancel", _cancel, "POST"),
        route(f"{one}/export", _export, "GET"),
    ]


class EventResponse(StreamingResponse):
    """A stream that holds the client's place in the rate limit until it ends."""

    held: ExitStack | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self.held is not None:
                self.held.close()


def _endpoint(
    handler: Handler, sessions: Sessions, proxy: Proxy, name: str
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        with RequestLog(name, proxy.metrics) as entry:
            try:
                proxy.browsers.check(request.headers)
                client = identify(request.headers, proxy.keys)
                entry.key = client.key.name
                with ExitStack() as held:
                    held.enter_context(proxy.gate.passing(client))
                    reply = await handler(await _read(request, client, sessions, proxy))
                    if isinstance(reply, EventResponse):
                        reply.held = held.pop_all()
            except RequestRefused as refused:
                entry.problem = refused.error.code
                reply = refused.error.response()
            except NotFound:
                # Deleted while the request was under way.
                entry.problem = "NotFound"
                reply = NO_SUCH_CONVERSATION.response()
            except LeporelloError as error:
                entry.problem = type(error).__name__
                reply = STORE_ERROR.response()
            except ConnectionResetError:
                # Nobody reads this; the log has the number.
                entry.problem = "client_gone"
                reply = Response(status_code=499)
            entry.status = reply.status_code
            return reply

    return endpoint


async def _read(request: Request, client: Client, sessions: Sessions, proxy: Proxy) -> SessionRequest:
    if not client.key.agent:
        raise refuse(403, "no_agent", "This key is for the proxy only.")
    data = b""
    if request.method in ("POST", "PATCH"):
        encoding = request.headers.get("content-encoding", "").strip().lower()
        announced, config = request.headers.get("content-length"), proxy.config
        data = await read_body(request.receive, config.max_body, config.body_timeout, encoding, announced)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if data and kind != "application/json":
            raise refuse(415, "not_json", "The body must be application/json.")
    return SessionRequest(request, client, sessions, data)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json_body(value), status, headers, media_type="application/json")


def _about(record: ConversationRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "title": record.metadata.title,
        "model": record.metadata.model,
        "messages": record.messages,
        "compactions": record.generation,
        "open": record.open,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


async def _create(request: SessionRequest) -> Response:
    wanted = request.body(NewConversation)
    if wanted.model:
        await asyncio.to_thread(request.sessions.check_model, wanted.model)
    record = await asyncio.to_thread(request.sessions.create, request.client, wanted.model, wanted.title)
    return _json(_about(record), 201)


async def _list(request: SessionRequest) -> Response:
    limit = request.number("limit", 50, 1, LONGEST_PAGE)
    cursor = request.http.query_params.get("cursor")
    try:
        page = await asyncio.to_thread(request.sessions.page, request.client, limit, cursor)
    except (LeporelloError, ValueError):
        if cursor is None:
            raise
        raise refuse(400, "invalid_request", "The cursor is not one that this API returned.") from None
    return _json({"conversations": [_about(record) for record in page.conversations], "cursor": page.cursor})


async def _show(request: SessionRequest) -> Response:
    record = await request.record()
    totals = await asyncio.to_thread(request.sessions.store.usage.totals, record.id)
    usage = {
        "calls": totals.calls,
        "prompt_tokens": totals.usage.prompt_tokens,
        "output_tokens": totals.usage.output_tokens,
        "cache_hit_rate": round(totals.cache_hit_rate, 4),
        "cost": round(totals.cost, 6),
    }
    return _json({**_about(record), "usage": usage})


async def _rename(request: SessionRequest) -> Response:
    wanted = request.body(Renamed)
    record = await request.record()
    store = request.sessions.store
    changed = await asyncio.to_thread(lambda: store.conversations.update(record.id, title=wanted.title))
    return _json(_about(changed))


async def _delete(request: SessionRequest) -> Response:
    await request.sessions.delete(await request.record())
    return Response(status_code=204)


async def _messages(request: SessionRequest) -> Response:
    record = await request.record()
    first = request.number("first", 1, 1, 10**9)
    count = request.number("count", 50, 1, MOST_MESSAGES)
    log = request.sessions.store.log
    found = await asyncio.to_thread(lambda: list(log.iterate(record.id, first, first + count - 1)))
    listed = [api_message(stored) for stored in found]
    return _json({"messages": listed, "total": record.messages})


async def _search(request: SessionRequest) -> Response:
    query = request.http.query_params.get("q", "").strip()
    if not query:
        raise refuse(400, "invalid_request", "The parameter q is missing: it holds the words to search for.")
    record = await request.record()
    windows = await asyncio.to_thread(request.sessions.search, record.id, query)
    return _json({"results": [str(window) for window in windows]})


async def _compress(request: SessionRequest) -> Response:
    wanted = request.body(Compress)
    await request.check_budget(await request.record())
    worker = await request.worker()
    report = await worker.compact(wanted.focus)
    return _json(
        {
            "outcome": report.outcome.value,
            "reason": redact(report.reason),
            "tokens_before": report.tokens_before,
            "tokens_after": report.tokens_after,
            "fold": report.fold,
        }
    )


async def _undo(request: SessionRequest) -> Response:
    request.body(dict[str, Any])
    worker = await request.worker()
    try:
        view = await worker.run(lambda agent: agent.conversation.undo())
    except NotFound:
        raise refuse(409, "nothing_to_undo", "This conversation has no compaction to undo.") from None
    return _json({"messages_shown": len(view.lines)})


async def _cancel(request: SessionRequest) -> Response:
    request.body(dict[str, Any])
    worker = await request.worker()
    return _json({"cancelled": await worker.cancel()})


async def _export(request: SessionRequest) -> Response:
    record = await request.record()
    log = request.sessions.store.log

    def lines() -> bytes:
        return b"".join(json_body(api_message(stored)) + b"\n" for stored in log.iterate(record.id))

    return Response(await asyncio.to_thread(lines), media_type="application/x-ndjson")


# -- a message to the agent


async def _post(request: SessionRequest) -> Response:
    wanted = request.body(NewMessage)
    if not wanted.text.strip():
        raise refuse(400, "invalid_request", "The message has no text.")
    record = await request.record()
    await request.check_budget(record)
    pending = await request.sessions.enqueue(record, wanted.text, wanted.id or uuid.uuid4().hex)
    # From here on the message is stored and will be answered, whatever happens to this worker or this connection.
    taken = {MESSAGE_HEADER: _plain(pending.id)}
    if "text/event-stream" in request.http.headers.get("accept", ""):
        return EventResponse(
            _events(pending), media_type="text/event-stream", headers=taken | {"cache-control": "no-store"}
        )
    if not wanted.wait and pending.outcome is None:
        return _json({"id": pending.id, "status": "waiting", "text": "", "reason": ""}, 202, taken)
    return _json(await _answer(pending), headers=taken)


def _plain(id: str) -> str:
    """An id as it can stand in a header."""
    return quote(id, safe=" !#$&'()*+,/:;=?@[]~")


async def _answer(pending: PendingMessage) -> dict[str, Any]:
    return {"id": pending.id, **asdict(await pending.ended())}


async def _events(pending: PendingMessage) -> AsyncIterator[bytes]:
    """Server-sent events of a message; the last one is `done` and holds the outcome, as the JSON answer does.

    It is `lost` when this process stops: another one answers, and the same id asks it.
    """
    async for event in pending.watch(BEAT_SECONDS):
        yield _event(str(event["event"]), event) if event is not None else b": still here\n\n"
    if pending.lost:
        yield _event("lost", {"event": "lost", "id": pending.id})
    else:
        yield _event("done", await _answer(pending))


def _event(name: str, value: Any) -> bytes:
    return Event(name, json_body(value)).encode()
