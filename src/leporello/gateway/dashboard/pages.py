"""The pages one can look at, and the stream of events that keeps an open page up to date."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import orjson
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from leporello.agent.commands_context import headline, rows
from leporello.errors import InputError, LeporelloError
from leporello.events import Span
from leporello.gateway.api_errors import json_body, refuse
from leporello.gateway.auth import BrowserCheck, Keys
from leporello.gateway.config import GatewayConfig
from leporello.gateway.dashboard.actions import DashboardService, actions
from leporello.gateway.dashboard.auth import DashboardAuth
from leporello.gateway.dashboard.charts import RANGES, report, settings_page
from leporello.gateway.dashboard.formatting import digest, piece, slug, unslug, visible
from leporello.gateway.dashboard.http import HEADERS, PageRequest, PageServer, warm_up
from leporello.gateway.dashboard.login import sign_routes
from leporello.gateway.dashboard.reader import COUNTED_AT_ONCE, SEARCH_HITS, DashboardReader
from leporello.gateway.dashboard.view_models import SearchHit, texts_of
from leporello.gateway.metrics import Metrics
from leporello.gateway.sessions.sessions import Sessions
from leporello.store.records import ConversationFilter, ConversationRecord, SearchQuery
from leporello.text_features.words import query_words

STEP_SECONDS = 0.5
SELDOM_SECONDS = 2.0
"""Between two looks at a list that must be searched for what is its reader's own."""
STREAM_SECONDS = 6.0
AGAIN_MILLISECONDS = 400


def live_routes(frame: PageServer) -> list[BaseRoute]:
    """`/live` for the list, `/c/…/live` for a conversation."""
    return [frame.route("/live", _list_events), frame.route("/c/{slug}/live", _conversation_events)]


async def _list_events(visit: PageRequest) -> Response:
    stamp = partial(visit.frame.reader.list_stamp, visit.visitor)
    return await _answer(visit, stamp, STEP_SECONDS if visit.visitor.operator else SELDOM_SECONDS)


async def _conversation_events(visit: PageRequest) -> Response:
    record = await asyncio.to_thread(visit.record)
    return await _answer(visit, partial(visit.frame.reader.stamp, record.id), STEP_SECONDS)


async def _answer(visit: PageRequest, stamp: Callable[[], str], pause: float) -> Response:
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


ASSETS = {
    "style.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "theme.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_KEPT = {"cache-control": "public, max-age=31536000, immutable"}
_EXPORT_BATCH = 200
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
AROUND = 8
"""Messages shown before the one that was asked for."""


def dashboard(config: GatewayConfig, keys: Keys, sessions: Sessions, metrics: Metrics) -> list[BaseRoute]:
    """All paths of the dashboard, about the store of these sessions."""
    reader = DashboardReader(sessions.store, sessions.settings, config.window)
    context = PageServer(
        reader, DashboardAuth(keys, sessions.store, BrowserCheck(keys, config.origins)), metrics, config.body_timeout
    )
    hands = DashboardService(reader, sessions)
    warm_up()
    one = "/c/{slug}"
    return [
        Route("/assets/{name}", _asset, methods=["GET"]),
        *sign_routes(context),
        context.route("/", _list),
        context.route("/search", _search),
        context.route("/insights", _insights),
        context.route("/settings", _settings),
        context.route(one, _conversation),
        context.route(f"{one}/window", _window),
        context.route(f"{one}/usage", _usage),
        context.route(f"{one}/fold/{{fold}}", _fold),
        context.route(f"{one}/messages", _messages),
        context.route(f"{one}/view", _view),
        context.route(f"{one}/view/{{place}}/text", _view_text),
        context.route(f"{one}/shown", _shown),
        context.route(f"{one}/m/{{number}}", _message),
        context.route(f"{one}/m/{{number}}/text", _text),
        context.route(f"{one}/compactions/{{number}}", _compaction),
        context.route(f"{one}/export", _export),
        *live_routes(context),
        *actions(context, hands),
    ]


async def _asset(request: Request) -> Response:
    """Style, script and picture; the only files there are."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response("There is no such file.", 404, HEADERS, "text/plain")
    data = files("leporello.gateway.dashboard").joinpath("static", name).read_bytes()
    return Response(data, 200, {**HEADERS, **_KEPT}, ASSETS[name])


# -- many conversations


def _list(visit: PageRequest) -> Response:
    where = ConversationFilter(platform=visit.query("platform") or None, model=visit.query("model") or None)
    cursor = visit.query("after") or None
    try:
        listed, following = visit.frame.reader.page(visit.visitor, where, cursor)
    except InputError:
        raise refuse(400, "invalid_request", "This is not a page of the list. Begin at its top.") from None
    return visit.render(
        "list.html",
        listed=listed,
        following=following,
        where=where,
        first=cursor is None,
        stamp=digest(tuple(item.record for item in listed)),
        platforms=sorted({item.record.metadata.platform for item in listed} - {""}),
        models=sorted({item.record.metadata.model for item in listed} - {""}),
    )


def _search(visit: PageRequest) -> Response:
    text = visit.query("q")
    within = visit.query("in")
    reader = visit.frame.reader
    record = reader.record(visit.visitor, unslug(within)) if within else None
    found: list[SearchHit] = []
    pending = 0
    if text:
        query = SearchQuery(
            text,
            conversation=record.id if record else None,
            limit=SEARCH_HITS,
            platform=visit.query("platform") or None,
            model=visit.query("model") or None,
            owner=visit.visitor.owner,
            catch_up=False,
        )
        found, pending = reader.search(visit.visitor, query)
    return visit.render(
        "search.html", text=text, found=found, pending=pending, record=record, marked=lambda line: marked(line, text)
    )


def marked(line: str, query: str) -> Markup:
    """A line with the words of the query marked. Everything else is escaped."""
    spoken = sorted({*query_words(query), *query.split()}, key=len, reverse=True)
    shown = visible(line)
    words = "|".join(re.escape(word) for word in spoken if word)
    if not words:
        return escape(shown)
    pattern = re.compile(rf"(?<!\w)(?:{words})", re.IGNORECASE)
    if not pattern.search(shown):
        pattern = re.compile(words, re.IGNORECASE)
    out: list[Markup] = []
    place = 0
    for match in pattern.finditer(shown):
        out += [escape(shown[place : match.start()]), Markup("<mark>{}</mark>").format(match.group())]
        place = match.end()
    return Markup("").join([*out, escape(shown[place:])])


def _insights(visit: PageRequest) -> Response:
    days = visit.number("days", 30)
    if days not in RANGES:
        days = 30
    reader = visit.frame.reader
    pending = reader.catch_up(COUNTED_AT_ONCE)
    made = report(reader.store, visit.visitor, days, reader.clock())
    return visit.render("insights.html", report=made, ranges=RANGES, pending=pending)


def _settings(visit: PageRequest) -> Response:
    reader = visit.frame.reader
    page = settings_page(reader.settings, reader.store, visit.visitor, visit.query("model"))
    return visit.render("settings.html", page=page)


# -- one conversation


def _conversation(visit: PageRequest) -> Response:
    record = visit.record()
    return visit.render("conversation.html", it=visit.frame.reader.overview(record), record=record)


def _window(visit: PageRequest) -> Response:
    record = visit.record()
    use = visit.frame.reader.window(record)
    table = [(part.name.lower(), part.value, tokens, remark) for part, tokens, remark in rows(use)]
    return visit.render("window.html", record=record, use=use, table=table, headline=headline(use))


def _usage(visit: PageRequest) -> Response:
    record = visit.record()
    return visit.render("usage.html", record=record, charts=visit.frame.reader.usage(record))


def _fold(visit: PageRequest) -> Response:
    record = visit.record()
    opened = visit.frame.reader.opened(record, unslug(visit.request.path_params["fold"]))
    return visit.render("fold.html", record=record, it=opened, is_span=lambda source: isinstance(source, Span))


def _messages(visit: PageRequest) -> Response:
    record = visit.record()
    span = Span(visit.number("first", 1), visit.number("last", record.messages))
    stretch = visit.frame.reader.stretch(record, span, visit.number("from", span.first))
    return visit.render("messages.html", record=record, it=stretch, wanted=0)


def _shown(visit: PageRequest) -> Response:
    """A span of messages as the model sees it."""
    record = visit.record()
    span = Span(visit.number("first", 1), visit.number("last", record.messages))
    stretch = visit.frame.reader.shown(record, span, visit.number("from", span.first))
    return visit.render("messages.html", record=record, it=stretch, wanted=0)


def _view(visit: PageRequest) -> Response:
    """Everything the model sees, word for word."""
    record = visit.record()
    stretch = visit.frame.reader.view(record, visit.number("from", 1))
    return visit.render("view.html", record=record, it=stretch, wanted=0)


def _view_text(visit: PageRequest) -> Response:
    """The next piece of a long text that the model sees."""
    record = visit.record()
    place, generation = visit.path_number("place"), visit.number("generation", 0)
    message = visit.frame.reader.sent_message(record, generation, place)
    as_written = bool(visit.query("as_written"))
    query = f"generation={generation}&" + ("as_written=1&" if as_written else "")
    return _piece(visit, record, texts_of(message, as_written), f"view/{place}/text?{query}", f"Place {place}")


def _message(visit: PageRequest) -> Response:
    """One message among its neighbours."""
    record = visit.record()
    number = visit.path_number("number")
    if not 1 <= number <= record.messages:
        raise refuse(404, "no_such_message", f"This conversation has no message m{number}.")
    alone = bool(visit.query("alone"))
    span = Span(number, number) if alone else Span(1, record.messages)
    stretch = visit.frame.reader.stretch(record, span, number if alone else max(1, number - AROUND))
    return visit.render("messages.html", record=record, it=stretch, wanted=number)


def _text(visit: PageRequest) -> Response:
    """The next piece of a long text."""
    record = visit.record()
    stored = visit.frame.reader.store.log.message(record.id, visit.path_number("number"))
    return _piece(visit, record, texts_of(stored.message), f"m/{stored.number}/text?", stored.id)


def _piece(
    visit: PageRequest, record: ConversationRecord, texts: Sequence[tuple[str, str, str]], address: str, name: str
) -> Response:
    index = visit.number("block", 0)
    if index >= len(texts):
        raise refuse(404, "no_such_part", "This message has no such part.")
    start = visit.number("from", 0)
    shown = piece(texts[index][2], start)
    return visit.render(
        "text.html", record=record, name=name, address=f"{address}block={index}&from=", start=start, shown=shown
    )


def _compaction(visit: PageRequest) -> Response:
    record = visit.record()
    it = visit.frame.reader.comparison(record, visit.path_number("number"))
    return visit.render("compaction.html", record=record, it=it, title=visit.frame.reader.title(record))


def _export(visit: PageRequest) -> Response:
    """Every message with its id and time, one to a line, read while it is sent."""
    record = visit.record()
    name = _ODD.sub("-", slug(record.id))[:80] or "conversation"
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}.jsonl"'}
    return StreamingResponse(_lines(visit, record.id), 200, headers, "application/x-ndjson")


def _lines(visit: PageRequest, id: str) -> Iterator[bytes]:
    batch: list[bytes] = []
    for stored in visit.frame.reader.store.log.iterate(id):
        line: dict[str, Any] = {"id": stored.id, "created_at": stored.created_at, "message": stored.message}
        batch.append(json_body(line) + b"\n")
        if len(batch) == _EXPORT_BATCH:
            yield b"".join(batch)
            batch.clear()
    yield b"".join(batch)
