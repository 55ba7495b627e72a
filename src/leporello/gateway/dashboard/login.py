"""Signing in with a key, and out again."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from leporello.errors import LeporelloError
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.dashboard.http import STORE_FAULT, PageRequest, PageServer, end_session, set_session
from leporello.gateway.metrics import RequestLog


def sign_routes(frame: PageServer) -> list[BaseRoute]:
    """`/login` and `/logout`."""

    async def show(request: Request) -> Response:
        try:
            frame.door.check_page(request.headers)
            visitor = await asyncio.to_thread(frame.door.visitor, request.cookies)
        except RequestRefused as refused:
            return frame.sealed(request, frame.problem(request, None, refused.fault), None)
        except LeporelloError:
            return frame.sealed(request, frame.problem(request, None, STORE_FAULT), None)
        if visitor is not None:
            return frame.sealed(request, RedirectResponse(local(request.query_params.get("next", "")), 303), visitor)
        return frame.sealed(request, _form(frame, request.query_params.get("next", ""), ""), None)

    async def take(request: Request) -> Response:
        with RequestLog("POST /login", frame.metrics) as entry:
            reply = await _sign_in(frame, request)
            entry.status = reply.status_code
            return frame.sealed(request, reply, None)

    return [
        Route("/login", show, methods=["GET"]),
        Route("/login", take, methods=["POST"]),
        frame.route("/logout", _sign_out, change=True),
    ]


async def _sign_in(frame: PageServer, request: Request) -> Response:
    try:
        frame.door.check_page(request.headers)
        form = await frame.read_form(request)
        # There is no session yet whose token could be asked for: that the page is ours is what counts.
        frame.door.check_change(request.headers, None, "")
        address = request.client.host if request.client else ""
        visitor = frame.door.sign_in(form.get("key", ""), address) if frame.door.keys else None
    except RequestRefused as refused:
        if refused.fault.status == 429:
            reply = _form(frame, "", refused.fault.message, 429)
            reply.headers["retry-after"] = "60"
            return reply
        return frame.problem(request, None, refused.fault)
    if visitor is None:
        return _form(frame, form.get("next", ""), "This is not one of the gateway's keys.", 401)
    reply = RedirectResponse(local(form.get("next", "")), 303)
    set_session(request, reply, visitor.fresh)
    return reply


def _form(frame: PageServer, following: str, problem: str, status: int = 200) -> Response:
    return frame.render("login.html", None, status, part=False, following=local(following), problem=problem)


async def _sign_out(visit: PageRequest) -> Response:
    await asyncio.to_thread(visit.frame.door.sign_out, visit.visitor)
    reply = RedirectResponse("/login" if visit.frame.door.keys else "/", 303)
    end_session(visit.request, reply)
    return reply


def local(target: str) -> str:
    """A place in the dashboard to go on to; anything that could lead elsewhere is the first page."""
    plain = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if plain and "\\" not in target and len(target) < 2_000 else "/"
