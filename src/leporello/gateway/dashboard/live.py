"""Telling an open page that something happened: a stream of events, cut short so that a server can stop.

A stream looks at the store now and then. It ends after a while and the browser opens another; where streams do
not get through, the same address answers at once with what is new (`?once`), and the page asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from leporello.errors import LeporelloError
from leporello.gateway.dashboard.frame import HEADERS, Frame, Visit

STEP_SECONDS = 0.5
SELDOM_SECONDS = 2.0
"""Between two looks at a list that must be searched for what is its reader's own."""
STREAM_SECONDS = 6.0
AGAIN_MILLISECONDS = 400


def live_routes(frame: Frame) -> list[BaseRoute]:
    """`/live` for the list, `/c/…/live` for a conversation."""
    return [frame.route("/live", _list), frame.route("/c/{slug}/live", _conversation)]


async def _list(visit: Visit) -> Response:
    stamp = partial(visit.frame.reader.list_stamp, visit.visitor)
    return await _answer(visit, stamp, STEP_SECONDS if visit.visitor.operator else SELDOM_SECONDS)


async def _conversation(visit: Visit) -> Response:
    record = await asyncio.to_thread(visit.record)
    return await _answer(visit, partial(visit.frame.reader.stamp, record.id), STEP_SECONDS)


async def _answer(visit: Visit, stamp: Callable[[], str], pause: float) -> Response:
    if "once" in visit.request.query_params:
        return Response(orjson.dumps({"stamp": await asyncio.to_thread(stamp)}), media_type="application/json")
    seen = visit.request.headers.get("last-event-id") or visit.query("seen")
    return StreamingResponse(_events(visit.request, stamp, seen, pause), 200, HEADERS, "text/event-stream")


async def _events(request: Request, stamp: Callable[[], str], seen: str, pause: float) -> AsyncIterator[bytes]:
    yield f"retry: {AGAIN_MILLISECONDS}\n\n".encode()
    for _ in range(round(STREAM_SECONDS / pause)):
        try:
            now = await asyncio.to_thread(stamp)
        except LeporelloError:
            # It was deleted, or the store is away: the page finds out when it asks for itself.
            yield b"event: gone\ndata: {}\n\n"
            return
        if now != seen:
            seen = now
            yield b"id: " + now.encode() + b"\ndata: " + orjson.dumps({"stamp": now}) + b"\n\n"
        if await request.is_disconnected():
            return
        await asyncio.sleep(pause)
