"""The way back: an answer to the client, whole or as it streams, and errors in the shape its library understands."""

from __future__ import annotations

import asyncio

import aiohttp
import orjson
from starlette.types import Send

from leporello.dialects import Dialect
from leporello.gateway.api_errors import ApiError, RequestRefused
from leporello.gateway.proxy.streams import Tally, usage_of
from leporello.gateway.proxy.upstream import fault_of, read_reply, returned_headers
from leporello.usage import CanonicalUsage

HOLD_SECONDS = 5.0
"""How long the announcement of an answer is held back to see whether an error follows it."""

MOST_HELD = 4 * 1024 * 1024
GARBAGE = ApiError(502, "upstream_garbage", "The model's server sent something that is no answer.")
BROKEN = ApiError(502, "upstream_broken", "The model's server ended the answer before it was whole.")

Headers = list[tuple[bytes, bytes]]


class ClientGone(Exception):
    """The client hung up, or does not read what it asked for."""


class Outlet:
    """The connection to one client. What is held back can still be taken back."""

    def __init__(self, send: Send, patience: float) -> None:
        self._send = send
        self._patience = patience
        self._held: list[bytes] = []
        self._head: tuple[int, Headers] = (0, [])
        self.status = 0
        self.started = False
        self.finished = False

    def hold(self, status: int, headers: Headers) -> None:
        """Begin an answer that may still be taken back."""
        self._head = status, headers
        self._held = []

    async def give(self, data: bytes) -> None:
        """A piece of the answer: sent when it has begun, else held back."""
        if self.started:
            await self.write(data)
        else:
            self._held.append(data)

    async def wait_for(self, content: aiohttp.StreamReader, deadline: float | None) -> bytes:
        """The next bytes from upstream. While nothing is sent an error can still be told by its status, but only until
        the deadline."""
        if self.started or deadline is None:
            return await content.readany()
        pending = asyncio.ensure_future(content.readany())
        try:
            await asyncio.wait((pending,), timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
            if not pending.done():
                await self.release(more=True)
            return await pending
        finally:
            pending.cancel()

    async def release(self, *, more: bool = False) -> None:
        """Send what was held back."""
        await self._start(*self._head)
        await self.write(b"".join(self._held))
        self._held = []
        if not more:
            await self.finish()

    async def _start(self, status: int, headers: Headers) -> None:
        self.started, self.status = True, status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        """A piece of the answer; a client that does not read it in time is given up."""
        if data:
            await self._body(data, more=True)

    async def _body(self, data: bytes, *, more: bool) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except (TimeoutError, OSError) as error:
            raise ClientGone from error

    async def finish(self) -> None:
        """The end of the answer."""
        if not self.finished:
            self.finished = True
            await self._body(b"", more=False)

    async def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole answer at once."""
        await self._start(status, [*headers, (b"content-length", str(len(body)).encode())])
        self.finished = True
        await self._body(body, more=False)

    async def whole(self, response: aiohttp.ClientResponse, body: bytes, dialect: Dialect, about: Headers) -> None:
        """An upstream's answer as it came; where it refused with a page or nothing, an error of ours."""
        headers = [*returned_headers(response.headers), *about]
        if response.status < 400 or _is_json(body):
            await self.answer(response.status, headers, body)
            return
        fault = ApiError(
            response.status, "upstream_error", f"The model's server answered with status {response.status}."
        )
        kept = [(name, value) for name, value in headers if name != b"content-type"]
        await self.answer(response.status, [*kept, *fault.headers()], fault.body(dialect))

    async def fail(self, fault: ApiError, dialect: Dialect) -> None:
        """An error of ours: as the answer, or as the last event of one that has begun."""
        if not self.started:
            await self.answer(fault.status, fault.headers(), fault.body(dialect))
        elif not self.finished:
            await self.write(fault.event(dialect))
            await self.finish()


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(orjson.loads(body), dict | list)
    except ValueError:
        return False


async def relay_whole(
    outlet: Outlet, response: aiohttp.ClientResponse, dialect: Dialect, about: Headers
) -> CanonicalUsage | None:
    """An answer that does not stream, and its usage."""
    body = await read_reply(response)
    try:
        usage = usage_of(orjson.loads(body))
    except ValueError:
        raise RequestRefused(GARBAGE) from None
    await outlet.whole(response, body, dialect, about)
    return usage


async def relay_stream(
    outlet: Outlet, response: aiohttp.ClientResponse, dialect: Dialect, about: Headers, tally: Tally | None = None
) -> Tally:
    """A stream, piece by piece. Returns early, with nothing sent, when an error stands where the answer should.

    A tally that is given knows what came even when the client hangs up before this returns.
    """
    tally = tally or Tally(dialect)
    outlet.hold(response.status, [*returned_headers(response.headers), *about])
    whole = WholeEvents()
    content = response.content
    if not await _opened(outlet, content, tally, whole):
        return tally
    try:
        while piece := await content.readany():
            tally.feed(piece)
            await outlet.write(whole.feed(piece))
    except (aiohttp.ClientError, TimeoutError) as error:
        await outlet.fail(fault_of(error), dialect)
        return tally
    if tally.failed:
        await outlet.finish()
        return tally
    if not tally.ended or whole.rest.strip() not in (b"", b"data: [DONE]"):
        await outlet.fail(BROKEN, dialect)
        return tally
    await outlet.write(whole.rest)
    await outlet.finish()
    return tally


class WholeEvents:
    """Holds back the piece of an event that is not whole yet: behind half a line no error could be told."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """What is whole now."""
        data = self.rest + data
        end = max(data.rfind(b"\n\n") + 2, data.rfind(b"\r\r") + 2, data.rfind(b"\n\r\n") + 3)
        if end <= 2 and not data.startswith((b"\n\n", b"\r\r")):
            end = len(data) if len(data) > MOST_HELD else 0
        self.rest = data[end:]
        return data[:end]


async def _opened(outlet: Outlet, content: aiohttp.StreamReader, tally: Tally, whole: WholeEvents) -> bool:
    """Hold the announcement back until the answer begins; False when an error came instead of it."""
    deadline = asyncio.get_running_loop().time() + HOLD_SECONDS
    while not tally.opened:
        piece = await outlet.wait_for(content, deadline if tally.events else None)
        if not piece:
            if not outlet.started and not tally.events:
                raise RequestRefused(GARBAGE)
            break
        tally.feed(piece)
        await outlet.give(whole.feed(piece))
    if tally.error is not None and not outlet.started:
        return False
    if not outlet.started:
        await outlet.release(more=True)
    return True
