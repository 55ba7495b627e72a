"""HTTP of the dashboard: requests with their user, rendered pages, security headers, session cookies."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import parse_qsl, quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from leporello.errors import InputError, LeporelloError, NotFound
from leporello.gateway.api_errors import ApiError, RequestRefused, refuse
from leporello.gateway.auth import COOKIE, LIFE_SECONDS, Client, DashboardAuth, Key, User
from leporello.gateway.dashboard.reader import ConversationReader, DashboardReader
from leporello.gateway.limits import Gate, read_body
from leporello.gateway.metrics import Metrics, RequestLog
from leporello.lazy_regex import lazy_regex
from leporello.present.records import cost_text
from leporello.present.text import (
    clock,
    count,
    duration,
    iso,
    percent,
    short_count,
    visible,
    visible_line,
    without_markdown,
)
from leporello.tokens import TokenCounter
from leporello.usage import money

PART_HEADER = "x-leporello-part"  # sent by our script: it wants the part alone, without the page around it
MOST_FORM = 64 * 1024
MOST_FIELDS = 50
REQUESTS_A_MINUTE = 2_400
MOST_AT_ONCE = 64
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
STORE_ERROR = ApiError(503, "store_unavailable", "The store can't be read now. Try again in a moment.")

_PLAIN_ID = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._@:+=-]{0,199}")

Handler = Callable[["PageRequest"], Response] | Callable[["PageRequest"], Awaitable[Response]]


def slug(id: str) -> str:
    """An id as a part of an address; ids are any text, addresses are not."""
    if _PLAIN_ID.fullmatch(id):
        return id
    return "~" + base64.urlsafe_b64encode(id.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def unslug(part: str) -> str:
    """The id behind a part of an address; what is none of ours is taken as it stands, and will not be found."""
    if not part.startswith("~"):
        return part
    try:
        data = base64.urlsafe_b64decode(part[1:] + "=" * (-len(part[1:]) % 4))
        return data.decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return part


def whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 12 else None


@dataclass(slots=True)
class PageRequest:
    """One request of a user who is signed in, or needs no key."""

    http: Request
    user: User
    server: PageServer
    form: dict[str, str] = field(default_factory=dict)

    @property
    def part(self) -> bool:
        return PART_HEADER in self.http.headers

    def query(self, name: str) -> str:
        """A word of the address, short."""
        return self.http.query_params.get(name, "")[:1_000].strip()

    def number(self, name: str, default: int) -> int:
        found = whole_number(self.http.query_params.get(name, ""))
        return default if found is None else found

    def path_number(self, name: str) -> int:
        found = whole_number(self.http.path_params[name])
        if found is None:
            raise refuse(404, "not_found", "There is no such page.")
        return found

    def conversation(self) -> ConversationReader:
        """The conversation the path names, if this user may see it."""
        return self.server.reader.conversation(self.user, unslug(self.http.path_params["slug"]))

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        return self.server.render(template, self.user, status, part=self.part, **values)


@dataclass(slots=True)
class PageServer:
    reader: DashboardReader
    auth: DashboardAuth
    metrics: Metrics
    body_timeout: float
    gate: Gate = field(default_factory=lambda: Gate(REQUESTS_A_MINUTE, MOST_AT_ONCE, time.monotonic))

    def route(self, path: str, handler: Handler, *, change: bool = False) -> Route:
        """A path for users; one that changes something takes a form with the token of the session."""
        method = "POST" if change else "GET"

        async def endpoint(request: Request) -> Response:
            with RequestLog(f"{method} {path}", self.metrics) as entry:
                reply = await self._answer(request, handler, change, entry)
                entry.status = reply.status_code
                return reply

        return Route(path, endpoint, methods=[method])

    async def _answer(self, request: Request, handler: Handler, change: bool, entry: RequestLog) -> Response:
        user: User | None = None
        try:
            self.auth.browsers.check(request.headers)
            user = await asyncio.to_thread(self.auth.user, request.cookies)
            if user is None:
                return self.with_headers(request, self._to_sign_in(request, change), None)
            entry.key = user.name
            page_request = PageRequest(request, user, self)
            if change:
                page_request.form = await self.read_form(request)
                self.auth.check_change(request.headers, user, page_request.form.get("token", ""))
            with self.gate.passing(Client(Key(user.name, ""), user.name or "dashboard")):
                reply = await _run(handler, page_request)
        except RequestRefused as refused:
            entry.problem = refused.error.code
            reply = self.problem(request, user, refused.error)
        except NotFound:
            reply = self.problem(request, user, ApiError(404, "not_found", "It no longer exists."))
        except InputError as error:
            reply = self.problem(request, user, ApiError(400, "invalid_request", str(error)))
        except LeporelloError as error:
            entry.problem = type(error).__name__
            reply = self.problem(request, user, STORE_ERROR)
        return self.with_headers(request, reply, user)

    async def read_form(self, request: Request) -> dict[str, str]:
        try:
            data = await read_body(request.receive, MOST_FORM, self.body_timeout)
        except ConnectionResetError:
            raise refuse(499, "client_gone", "The form did not arrive whole.") from None
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise refuse(415, "not_a_form", "This takes a form.")
        try:
            return dict(parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError:
            raise refuse(400, "too_many_fields", f"A form has at most {MOST_FIELDS} fields.") from None

    def _to_sign_in(self, request: Request, change: bool) -> Response:
        if change or PART_HEADER in request.headers:
            error = ApiError(401, "signed_out", "You are signed out. Load the page again to sign in.")
            return self.problem(request, None, error)
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        target = "/login" if wanted == "/" else f"/login?next={quote(wanted, safe='')}"
        return RedirectResponse(target, 303)

    def problem(self, request: Request, user: User | None, error: ApiError) -> Response:
        """An error as a page, or as a line where only a part was wanted."""
        part = PART_HEADER in request.headers
        reply = self.render("problem.html", user, error.status, part=part, error=error)
        if error.retry_after is not None:
            reply.headers["retry-after"] = str(max(1, round(error.retry_after)))
        if error.status == 408:
            reply.headers["connection"] = "close"
        return reply

    def with_headers(self, request: Request, reply: Response, user: User | None) -> Response:
        """With the headers of every page, and the cookie of a session that has just begun."""
        for name, value in HEADERS.items():
            reply.headers.setdefault(name, value)
        if user is not None and user.fresh:
            set_session(request, reply, user.fresh)
        return reply

    def render(self, template: str, user: User | None, status: int = 200, **values: Any) -> Response:
        page = _environment().get_template(template)
        text = page.render(user=user, signed=bool(self.auth.keys), version=asset_version(), **values)
        return Response(text.encode("utf-8", "replace"), status, media_type="text/html; charset=utf-8")


@cache
def _environment() -> Environment:
    """The templates: everything that is put into a page is escaped, and an unknown name is an error."""
    loader = PackageLoader("leporello.gateway.dashboard")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters.update(count=count, short=short_count, money=money, percent=percent, duration=duration, cost=cost_text)
    made.filters.update(iso=iso, clock=clock, slug=slug, visible=visible, line=visible_line, plain=without_markdown)
    return made


@cache
def asset_version() -> str:
    """Part of the addresses of style and script: changes with the files that browsers keep."""
    digest = hashlib.blake2b(digest_size=6)
    for item in sorted(files("leporello.gateway.dashboard").joinpath("static").iterdir(), key=lambda it: it.name):
        digest.update(item.read_bytes())
    return digest.hexdigest()


@cache
def warm_up() -> None:
    """Prepare what the first page would wait for, once for the process and in the background."""

    def warm() -> None:
        for name in _environment().list_templates():
            _environment().get_template(name)
        TokenCounter.for_model(None).text("The vocabulary is read when the first words are counted.")

    threading.Thread(target=warm, daemon=True).start()


async def _run(handler: Handler, page_request: PageRequest) -> Response:
    if iscoroutinefunction(handler):
        made: Response = await handler(page_request)
        return made
    return await asyncio.to_thread(handler, page_request)  # type: ignore[arg-type]


def set_session(request: Request, reply: Response, value: str) -> None:
    """Keep a session in the browser: unseen by scripts, never sent from other sites."""
    reply.set_cookie(
        COOKIE, value, max_age=LIFE_SECONDS, path="/", httponly=True, samesite="strict", secure=_is_secure(request)
    )


def end_session(request: Request, reply: Response) -> None:
    reply.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=_is_secure(request))


def _is_secure(request: Request) -> bool:
    # Whoever makes this header up only makes their own cookie stricter.
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"
