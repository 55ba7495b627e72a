"""The dashboard's routes: pages to look at, events that keep an open page up to date, and forms.

Forms sign in and out, compact, undo and pin; each has the session's token and is answered with a sentence.
"""

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
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from leporello.conversation import Conversation
from leporello.conversation.artifacts import Pinboard
from leporello.dialects.base import Event
from leporello.errors import InputError, LeporelloError, NotFound
from leporello.events import CompactionReport, Span
from leporello.gateway.api_errors import RequestRefused, json_body, refuse
from leporello.gateway.auth import BrowserCheck, DashboardAuth, Keys
from leporello.gateway.config import GatewayConfig, window_of
from leporello.gateway.dashboard.charts import MOST_DAYS, RANGES, report, settings_page
from leporello.gateway.dashboard.http import (
    HEADERS,
    STORE_ERROR,
    PageRequest,
    PageServer,
    end_session,
    set_session,
    slug,
    unslug,
    warm_up,
    whole_number,
)
from leporello.gateway.dashboard.reader import COUNTED_AT_ONCE, SEARCH_HITS, ConversationReader, DashboardReader
from leporello.gateway.dashboard.view_models import SearchHit, digest, piece, texts_of
from leporello.gateway.metrics import Metrics, RequestLog
from leporello.gateway.proxy.rewrite import proxy_summariser
from leporello.gateway.sessions.sessions import PLATFORM, Sessions
from leporello.lazy_regex import lazy_regex
from leporello.present.records import api_message, compaction_line, undo_line
from leporello.present.text import visible
from leporello.present.window import headline, rows
from leporello.redact import redact
from leporello.store.records import ConversationFilter, ConversationRecord, SearchQuery
from leporello.text_features.words import query_words

STEP_SECONDS = 0.5
SELDOM_SECONDS = 2.0  # between two looks at a list that must be searched for what is its reader's own
STREAM_SECONDS = 6.0
AGAIN_MILLISECONDS = 400
ASSETS = {
    "style.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "theme.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_KEPT = {"cache-control": "public, max-age=31536000, immutable"}
_EXPORT_BATCH = 200
_ODD = lazy_regex(r"[^A-Za-z0-9._-]+")
AROUND = 8  # messages shown before the one that was asked for

Values = Callable[[PageRequest, ConversationReader], dict[str, Any]]
"""What a page about a conversation shows, by the names its template uses."""


def dashboard(config: GatewayConfig, keys: Keys, sessions: Sessions, metrics: Metrics) -> list[BaseRoute]:
    reader = DashboardReader(sessions.store, sessions.settings, partial(window_of, config.upstreams))
    auth = DashboardAuth(keys, sessions.store, BrowserCheck(keys, config.origins))
    server = PageServer(reader, auth, metrics, config.body_timeout)
    warm_up()
    one = "/c/{slug}"

    def page(path: str, template: str, values: Values) -> BaseRoute:
        def show(request: PageRequest) -> Response:
            conversation = request.conversation()
            return request.render(template, record=conversation.record, **values(request, conversation))

        return server.route(one + path, show)

    return [
        Route("/assets/{name}", _asset, methods=["GET"]),
        *login_routes(server),
        server.route("/", _list),
        server.route("/search", _search),
        server.route("/insights", _insights),
        server.route("/settings", _settings),
        page("", "conversation.html", lambda _, conversation: {"it": conversation.overview()}),
        page("/window", "window.html", _window),
        page("/usage", "usage.html", lambda _, conversation: {"charts": conversation.usage()}),
        page("/fold/{fold}", "fold.html", _fold),
        page("/messages", "messages.html", lambda asked, it: {"it": it.messages(*_span(asked, it)), "wanted": 0}),
        page("/view", "view.html", lambda request, conversation: {"it": conversation.view(request.number("from", 1))}),
        page("/view/{place}/text", "text.html", _view_text),
        page("/shown", "messages.html", lambda asked, it: {"it": it.shown(*_span(asked, it)), "wanted": 0}),
        page("/m/{number}", "messages.html", _message),
        page("/m/{number}/text", "text.html", _text),
        page(
            "/compactions/{number}",
            "compaction.html",
            lambda asked, it: {"it": it.comparison(asked.path_number("number")), "title": it.title},
        ),
        server.route(f"{one}/export", _export),
        server.route("/live", _list_events),
        server.route(f"{one}/live", _conversation_events),
        *action_routes(server, sessions),
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
    record = reader.conversation(request.user, unslug(within)).record if within else None
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
        found, pending = reader.search(query)
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
    reader = request.server.reader
    pending = reader.catch_up(COUNTED_AT_ONCE)
    made = report(reader.store, request.user, max(1, min(days, MOST_DAYS)), reader.clock())
    return request.render("insights.html", report=made, ranges=RANGES, pending=pending)


def _settings(request: PageRequest) -> Response:
    reader = request.server.reader
    page = settings_page(reader.settings, reader.store, request.user, request.query("model"))
    return request.render("settings.html", page=page)


# -- one conversation


def _window(_: PageRequest, conversation: ConversationReader) -> dict[str, Any]:
    use = conversation.window()
    table = [(part.name.lower(), part.value, tokens, remark) for part, tokens, remark in rows(use)]
    return {"use": use, "table": table, "headline": headline(use)}


def _fold(request: PageRequest, conversation: ConversationReader) -> dict[str, Any]:
    opened = conversation.fold(unslug(request.http.path_params["fold"]))
    return {"it": opened, "is_span": lambda source: isinstance(source, Span)}


def _span(request: PageRequest, conversation: ConversationReader) -> tuple[Span, int]:
    """The span of messages that an address names, and where in it the page begins."""
    span = Span(request.number("first", 1), request.number("last", conversation.record.messages))
    return span, request.number("from", span.first)


def _message(request: PageRequest, conversation: ConversationReader) -> dict[str, Any]:
    """One message among its neighbours, or alone."""
    number, last = request.path_number("number"), conversation.record.messages
    if not 1 <= number <= last:
        raise refuse(404, "no_such_message", f"This conversation has no message m{number}.")
    if request.query("alone"):
        return {"it": conversation.messages(Span(number, number), number), "wanted": number}
    return {"it": conversation.messages(Span(1, last), max(1, number - AROUND)), "wanted": number}


def _view_text(request: PageRequest, conversation: ConversationReader) -> dict[str, Any]:
    """The next piece of a long text that the model sees."""
    place, generation = request.path_number("place"), request.number("generation", 0)
    as_written = bool(request.query("as_written"))
    texts = texts_of(conversation.sent_message(generation, place), as_written)
    query = f"generation={generation}&" + ("as_written=1&" if as_written else "")
    return _piece(request, texts, f"view/{place}/text?{query}", f"Place {place}")


def _text(request: PageRequest, conversation: ConversationReader) -> dict[str, Any]:
    store = request.server.reader.store
    stored = store.log.message(conversation.record.id, request.path_number("number"))
    return _piece(request, texts_of(stored.message), f"m/{stored.number}/text?", stored.id)


def _piece(request: PageRequest, texts: Sequence[tuple[str, str, str]], address: str, name: str) -> dict[str, Any]:
    index = request.number("block", 0)
    if index >= len(texts):
        raise refuse(404, "no_such_part", "This message has no such part.")
    start = request.number("from", 0)
    shown = piece(texts[index][2], start)
    return {"name": name, "address": f"{address}block={index}&from=", "start": start, "shown": shown}


def _export(request: PageRequest) -> Response:
    """Every message with its id and time, one to a line, read while it is sent."""
    id = request.conversation().record.id
    name = _ODD.sub("-", slug(id))[:80] or "conversation"
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}.jsonl"'}
    return StreamingResponse(_lines(request, id), 200, headers, "application/x-ndjson")


def _lines(request: PageRequest, id: str) -> Iterator[bytes]:
    batch: list[bytes] = []
    for stored in request.server.reader.store.log.iterate(id):
        batch.append(json_body(api_message(stored)) + b"\n")
        if len(batch) == _EXPORT_BATCH:
            yield b"".join(batch)
            batch.clear()
    yield b"".join(batch)


# -- events that tell an open page that there is something new


async def _list_events(request: PageRequest) -> Response:
    stamp = partial(request.server.reader.list_stamp, request.user)
    return await _follow(request, stamp, STEP_SECONDS if request.user.operator else SELDOM_SECONDS)


async def _conversation_events(request: PageRequest) -> Response:
    conversation = await asyncio.to_thread(request.conversation)
    return await _follow(request, conversation.stamp, STEP_SECONDS)


async def _follow(request: PageRequest, stamp: Callable[[], str], pause: float) -> Response:
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
            yield Event("gone", b"{}").encode()
            return
        if now != seen:
            seen = now
            yield b"id: " + now.encode() + b"\n" + Event("", orjson.dumps({"stamp": now})).encode()
        if await request.is_disconnected():
            return
        await asyncio.sleep(pause)


# -- forms that change a conversation

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
            before = await asyncio.to_thread(store.views.view, record.id)
            view = await asyncio.to_thread(store.views.undo, record.id)
        except NotFound:
            raise refuse(409, "nothing_to_undo", "There is no compaction to undo.") from None
        return _notice(request, record, undo_line(before, view))

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
