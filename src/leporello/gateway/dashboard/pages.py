"""The pages one can look at, and the stream of events that keeps an open page up to date."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from importlib.resources import files

import orjson
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from leporello.errors import InputError, LeporelloError
from leporello.events import Span
from leporello.gateway.api_errors import json_body, refuse
from leporello.gateway.auth import BrowserCheck, Keys
from leporello.gateway.config import GatewayConfig
from leporello.gateway.dashboard.actions import DashboardService, actions, sign_routes
from leporello.gateway.dashboard.auth import DashboardAuth
from leporello.gateway.dashboard.charts import RANGES, report, settings_page
from leporello.gateway.dashboard.http import HEADERS, PageRequest, PageServer, slug, unslug, warm_up
from leporello.gateway.dashboard.reader import COUNTED_AT_ONCE, SEARCH_HITS, DashboardReader
from leporello.gateway.dashboard.view_models import SearchHit, digest, piece, texts_of
from leporello.gateway.metrics import Metrics
from leporello.gateway.sessions.sessions import Sessions
from leporello.present.records import api_message
from leporello.present.text import visible
from leporello.present.window import headline, rows
from leporello.store.records import ConversationFilter, ConversationRecord, SearchQuery
from leporello.text_features.words import query_words

STEP_SECONDS = 0.5
SELDOM_SECONDS = 2.0
"""Between two looks at a list that must be searched for what is its reader's own."""
STREAM_SECONDS = 6.0
AGAIN_MILLISECONDS = 400


def live_routes(server: PageServer) -> list[BaseRoute]:
    """`/live` for the list, `/c/…/live` for a conversation."""
    return [server.route("/live", _list_events), server.route("/c/{slug}/live", _conversation_events)]


async def _list_events(request: PageRequest) -> Response:
    stamp = partial(request.server.reader.list_stamp, request.user)
    return await _answer(request, stamp, STEP_SECONDS if request.user.operator else SELDOM_SECONDS)


async def _conversation_events(request: PageRequest) -> Response:
    record = await asyncio.to_thread(request.record)
    return await _answer(request, partial(request.server.reader.stamp, record.id), STEP_SECONDS)


async def _answer(request: PageRequest, stamp: Callable[[], str], pause: float) -> Response:
    if "once" in request.http.query_params:
        return Response(orjson.dumps({"stamp": await asyncio.to_thread(stamp)}), media_type="application/json")
    seen = request.http.headers.get("last-event-id") or request.query("seen")
    return StreamingResponse(_events(request.http, stamp, seen, pause), 200, HEADERS, "text/event-stream")


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
    server = PageServer(
        reader, DashboardAuth(keys, sessions.store, BrowserCheck(keys, config.origins)), metrics, config.body_timeout
    )
    service = DashboardService(reader, sessions)
    warm_up()
    one = "/c/{slug}"
    return [
        Route("/assets/{name}", _asset, methods=["GET"]),
        *sign_routes(server),
        server.route("/", _list),
        server.route("/search", _search),
        server.route("/insights", _insights),
        server.route("/settings", _settings),
        server.route(one, _conversation),
        server.route(f"{one}/window", _window),
        server.route(f"{one}/usage", _usage),
        server.route(f"{one}/fold/{{fold}}", _fold),
        server.route(f"{one}/messages", _messages),
        server.route(f"{one}/view", _view),
        server.route(f"{one}/view/{{place}}/text", _view_text),
        server.route(f"{one}/shown", _shown),
        server.route(f"{one}/m/{{number}}", _message),
        server.route(f"{one}/m/{{number}}/text", _text),
        server.route(f"{one}/compactions/{{number}}", _compaction),
        server.route(f"{one}/export", _export),
        *live_routes(server),
        *actions(server, service),
    ]


async def _asset(request: Request) -> Response:
    """Style, script and picture; the only files there are."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response("There is no such file.", 404, HEADERS, "text/plain")
    data = files("leporello.gateway.dashboard").joinpath("static", name).read_bytes()
    return Response(data, 200, {**HEADERS, **_KEPT}, ASSETS[name])


# -- many conversations


def _list(request: PageRequest) -> Response:
    where = ConversationFilter(platform=request.query("platform") or None, model=request.query("model") or None)
    cursor = request.query("after") or None
    try:
        listed, following = request.server.reader.page(request.user, where, cursor)
    except InputError:
        raise refuse(400, "invalid_request", "This is not a page of the list. Begin at its top.") from None
    return request.render(
        "list.html",
        listed=listed,
        following=following,
        where=where,
        first=cursor is None,
        stamp=digest(tuple(item.record for item in listed)),
        platforms=sorted({item.record.metadata.platform for item in listed} - {""}),
        models=sorted({item.record.metadata.model for item in listed} - {""}),
    )


def _search(request: PageRequest) -> Response:
    text = request.query("q")
    within = request.query("in")
    reader = request.server.reader
    record = reader.record(request.user, unslug(within)) if within else None
    found: list[SearchHit] = []
    pending = 0
    if text:
        query = SearchQuery(
            text,
            conversation=record.id if record else None,
            limit=SEARCH_HITS,
            platform=request.query("platform") or None,
            model=request.query("model") or None,
            owner=request.user.owner,
            catch_up=False,
        )
        found, pending = reader.search(request.user, query)
    return request.render(
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


def _insights(request: PageRequest) -> Response:
    days = request.number("days", 30)
    if days not in RANGES:
        days = 30
    reader = request.server.reader
    pending = reader.catch_up(COUNTED_AT_ONCE)
    made = report(reader.store, request.user, days, reader.clock())
    return request.render("insights.html", report=made, ranges=RANGES, pending=pending)


def _settings(request: PageRequest) -> Response:
    reader = request.server.reader
    page = settings_page(reader.settings, reader.store, request.user, request.query("model"))
    return request.render("settings.html", page=page)


# -- one conversation


def _conversation(request: PageRequest) -> Response:
    record = request.record()
    return request.render("conversation.html", it=request.server.reader.overview(record), record=record)


def _window(request: PageRequest) -> Response:
    record = request.record()
    use = request.server.reader.window(record)
    table = [(part.name.lower(), part.value, tokens, remark) for part, tokens, remark in rows(use)]
    return request.render("window.html", record=record, use=use, table=table, headline=headline(use))


def _usage(request: PageRequest) -> Response:
    record = request.record()
    return request.render("usage.html", record=record, charts=request.server.reader.usage(record))


def _fold(request: PageRequest) -> Response:
    record = request.record()
    opened = request.server.reader.opened(record, unslug(request.http.path_params["fold"]))
    return request.render("fold.html", record=record, it=opened, is_span=lambda source: isinstance(source, Span))


def _messages(request: PageRequest) -> Response:
    record = request.record()
    span = Span(request.number("first", 1), request.number("last", record.messages))
    stretch = request.server.reader.stretch(record, span, request.number("from", span.first))
    return request.render("messages.html", record=record, it=stretch, wanted=0)


def _shown(request: PageRequest) -> Response:
    """A span of messages as the model sees it."""
    record = request.record()
    span = Span(request.number("first", 1), request.number("last", record.messages))
    stretch = request.server.reader.shown(record, span, request.number("from", span.first))
    return request.render("messages.html", record=record, it=stretch, wanted=0)


def _view(request: PageRequest) -> Response:
    """Everything the model sees, word for word."""
    record = request.record()
    stretch = request.server.reader.view(record, request.number("from", 1))
    return request.render("view.html", record=record, it=stretch, wanted=0)


def _view_text(request: PageRequest) -> Response:
    """The next piece of a long text that the model sees."""
    record = request.record()
    place, generation = request.path_number("place"), request.number("generation", 0)
    message = request.server.reader.sent_message(record, generation, place)
    as_written = bool(request.query("as_written"))
    query = f"generation={generation}&" + ("as_written=1&" if as_written else "")
    return _piece(request, record, texts_of(message, as_written), f"view/{place}/text?{query}", f"Place {place}")


def _message(request: PageRequest) -> Response:
    """One message among its neighbours."""
    record = request.record()
    number = request.path_number("number")
    if not 1 <= number <= record.messages:
        raise refuse(404, "no_such_message", f"This conversation has no message m{number}.")
    alone = bool(request.query("alone"))
    span = Span(number, number) if alone else Span(1, record.messages)
    stretch = request.server.reader.stretch(record, span, number if alone else max(1, number - AROUND))
    return request.render("messages.html", record=record, it=stretch, wanted=number)


def _text(request: PageRequest) -> Response:
    """The next piece of a long text."""
    record = request.record()
    stored = request.server.reader.store.log.message(record.id, request.path_number("number"))
    return _piece(request, record, texts_of(stored.message), f"m/{stored.number}/text?", stored.id)


def _piece(
    request: PageRequest, record: ConversationRecord, texts: Sequence[tuple[str, str, str]], address: str, name: str
) -> Response:
    index = request.number("block", 0)
    if index >= len(texts):
        raise refuse(404, "no_such_part", "This message has no such part.")
    start = request.number("from", 0)
    shown = piece(texts[index][2], start)
    return request.render(
        "text.html", record=record, name=name, address=f"{address}block={index}&from=", start=start, shown=shown
    )


def _compaction(request: PageRequest) -> Response:
    record = request.record()
    it = request.server.reader.comparison(record, request.path_number("number"))
    return request.render("compaction.html", record=record, it=it, title=request.server.reader.title(record))


def _export(request: PageRequest) -> Response:
    """Every message with its id and time, one to a line, read while it is sent."""
    record = request.record()
    name = _ODD.sub("-", slug(record.id))[:80] or "conversation"
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}.jsonl"'}
    return StreamingResponse(_lines(request, record.id), 200, headers, "application/x-ndjson")


def _lines(request: PageRequest, id: str) -> Iterator[bytes]:
    batch: list[bytes] = []
    for stored in request.server.reader.store.log.iterate(id):
        batch.append(json_body(api_message(stored)) + b"\n")
        if len(batch) == _EXPORT_BATCH:
            yield b"".join(batch)
            batch.clear()
    yield b"".join(batch)
