"""The way back: an answer to the client, whole or as it streams, and errors in the shape its library understands."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson
from starlette.types import Send

from leporello.dialects import Dialect
from leporello.dialects.base import Event, EventReader
from leporello.gateway.api_errors import ApiError, RequestRefused
from leporello.gateway.proxy.upstream import connection_error, read_reply, returned_headers
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import ErrorVerdict, is_refused
from leporello.usage import CanonicalUsage

HOLD_SECONDS = 5.0
"""How long the announcement of an answer is held back to see whether an error follows it."""

MOST_HELD = 4 * 1024 * 1024
GARBAGE = ApiError(502, "upstream_garbage", "The model's server sent something that is no answer.")
BROKEN = ApiError(502, "upstream_broken", "The model's server ended the answer before it was whole.")

STATUS_OF = {
    ErrorKind.PAYLOAD_TOO_LARGE: 413,
    ErrorKind.RATE_LIMIT: 429,
    ErrorKind.AUTH: 401,
    ErrorKind.QUOTA: 402,
    ErrorKind.TRANSIENT: 503,
    ErrorKind.UNKNOWN: 502,
}
"""The status that a refusal would have had; all other kinds are for the client to mend."""

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
        self._head, self._held = (status, headers), []

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
        if not self.finished:
            self.finished = True
            await self._body(b"", more=False)

    async def answer(self, status: int, headers: Headers, body: bytes) -> None:
        await self._start(status, [*headers, (b"content-length", str(len(body)).encode())])
        self.finished = True
        await self._body(body, more=False)

    async def whole(self, response: aiohttp.ClientResponse, body: bytes, dialect: Dialect, about: Headers) -> None:
        """An upstream's answer as it came; where it refused with a page or nothing, an error of ours."""
        headers = [*returned_headers(response.headers), *about]
        if response.status < 400 or _is_json(body):
            await self.answer(response.status, headers, body)
            return
        words = f"The model's server answered with status {response.status}."
        error = ApiError(response.status, "upstream_error", words)
        kept = [(name, value) for name, value in headers if name != b"content-type"]
        await self.answer(response.status, [*kept, *error.headers()], error.body(dialect))

    async def refusal(self, body: Mapping[str, Any], verdict: ErrorVerdict, dialect: Dialect) -> None:
        """A refusal that came with the status of a success and is held back. Where no client of the dialect would know
        it for one, it becomes an error; else it goes out as it came."""
        if not is_refused(body):
            await self.release()
            return
        status = STATUS_OF.get(verdict.kind, 400)
        words = verdict.message or "The model's server refused the request without a reason."
        about = [pair for pair in self._head[1] if pair[0].startswith(b"x-leporello")]
        error = ApiError(status, verdict.code or "upstream_error", words, verdict.retry_after)
        await self.answer(status, [*about, *error.headers()], error.body(dialect))

    async def fail(self, error: ApiError, dialect: Dialect) -> None:
        """An error of ours: as the answer, or as the last event of one that has begun."""
        if not self.started:
            await self.answer(error.status, error.headers(), error.body(dialect))
        elif not self.finished:
            await self.write(error.event(dialect))
            await self.finish()


def usage_of(body: Any) -> CanonicalUsage | None:
    usage = body.get("usage") if isinstance(body, Mapping) else None
    return CanonicalUsage.parse(usage) if isinstance(usage, Mapping) else None


class Tally:
    """What passes by in a stream of events: usage, errors, the end."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._rules = dialect.stream
        self._reader = EventReader()
        self._usage: dict[str, Any] = {}
        self.ended = False
        """Whether the answer's last event was seen."""
        self.opened = False
        """Whether anything of the answer itself was seen, not only its announcement."""
        self.error: Mapping[str, Any] | None = None
        """The body of an error that came instead of an answer."""
        self.failed = False
        """Whether the server itself told, anywhere in the stream, that it can't go on."""
        self.events = 0
        self.said = 0
        """Bytes of text in the answer so far."""
        self.settled = False
        """Whether it is known what becomes of its usage; else it was cut off."""

    def feed(self, data: bytes) -> list[Event]:
        """Take bytes of the stream; the events that are whole now."""
        found = list(self._reader.feed(data))
        self.events += len(found)
        for event in found:
            self._event(event)
        return found

    @property
    def comments(self) -> bytes:
        """The comments among the bytes that were fed last."""
        return self._reader.comments

    def _event(self, event: Event) -> None:
        if event.name == "error" or (b'"error"' in event.data and event.json().get("error")):
            self.failed = True
        if not self.opened:
            self._first(event)
        if b'"usage"' in event.data:
            self._count(event.json())
        if b'"delta"' in event.data:
            body = event.json()
            parts = body.get("choices")
            for part in parts if isinstance(parts, list) else [body]:
                self.said += _text_bytes(part.get("delta")) if isinstance(part, Mapping) else 0
        if self._rules.is_end(event):
            self.ended = True

    def _first(self, event: Event) -> None:
        body = event.json()
        kind = event.name or str(body.get("type") or "")
        if kind in self._rules.errors or (self._rules.bare_errors and body.get("error")) or is_refused(body):
            self.error = body
        self.opened = self.error is not None or kind not in self._rules.opening

    def _count(self, body: Mapping[str, Any]) -> None:
        # Anthropic's later counts are cumulative and leave out what did not change.
        for place in (body, body.get("message"), body.get("response")):
            usage = place.get("usage") if isinstance(place, Mapping) else None
            if isinstance(usage, Mapping):
                self._usage.update({key: value for key, value in usage.items() if value is not None})

    @property
    def usage(self) -> CanonicalUsage | None:
        """What the provider counted; None when it did not say."""
        return CanonicalUsage.parse(self._usage) if self._usage else None


def _text_bytes(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode("utf-8", "replace"))
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return sum(map(_text_bytes, inner))


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(orjson.loads(body), dict | list)
    except ValueError:
        return False


async def read_whole(response: aiohttp.ClientResponse) -> tuple[bytes, Any]:
    """An answer that does not stream: its bytes, and the JSON in them."""
    body = await read_reply(response)
    try:
        return body, orjson.loads(body)
    except ValueError:
        raise RequestRefused(GARBAGE) from None


def refusal_in(reply: Any, dialect: Dialect) -> Mapping[str, Any] | None:
    """The body, when it is a refusal in spite of its status."""
    if not isinstance(reply, Mapping) or isinstance(reply.get(dialect.fields.reply), list):
        return None
    return reply if reply.get("error") or is_refused(reply) else None


async def relay_stream(outlet: Outlet, response: aiohttp.ClientResponse, tally: Tally, about: Headers) -> None:
    """A stream, piece by piece. Returns early, with nothing sent, when an error stands where the answer should.

    The tally knows what came even when the client hangs up before this returns.
    """
    outlet.hold(response.status, [*returned_headers(response.headers), *about])
    whole = WholeEvents()
    content = response.content
    if not await _opened(outlet, content, tally, whole):
        return
    try:
        while piece := await content.readany():
            tally.feed(piece)
            await outlet.write(whole.feed(piece))
    except (aiohttp.ClientError, TimeoutError) as error:
        await outlet.fail(connection_error(error), tally.dialect)
        return
    # A server may leave out the blank line behind its last event.
    last = tally.feed(b"\n\n")
    is_whole = all(event.data.strip() == b"[DONE]" or event.json() for event in last)
    if not tally.failed and not (tally.ended and is_whole):
        await outlet.fail(BROKEN, tally.dialect)
        return
    await outlet.write(whole.rest + b"\n\n" if last and is_whole else b"")
    await outlet.finish()


class WholeEvents:
    """Holds back the piece of an event that is not whole yet: behind half a line no error could be told."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self._end = b""
        """The last bytes that are held: the end of an event may be cut. What came before was looked at already."""

    @property
    def rest(self) -> bytes:
        """What is held back."""
        return b"".join(self._held)

    def feed(self, data: bytes) -> bytes:
        seen = self._end + data
        end = max(seen.rfind(b"\n\n") + 2, seen.rfind(b"\r\r") + 2, seen.rfind(b"\n\r\n") + 3)
        if end <= 2 and not seen.startswith((b"\n\n", b"\r\r")):
            end = len(seen) if self._size + len(data) > MOST_HELD else 0
        whole = b""
        if end:
            # An end that stood in what is held would have been found before.
            cut = end - len(self._end)
            whole = self.rest + data[:cut]
            data, self._held, self._size, self._end = data[cut:], [], 0, b""
        if data:
            self._held.append(data)
            self._size += len(data)
            self._end = (self._end + data)[-2:]
        return whole


async def _opened(outlet: Outlet, content: aiohttp.StreamReader, tally: Tally, whole: WholeEvents) -> bool:
    """Hold the announcement back until the answer begins; False when an error came instead of it."""
    deadline = asyncio.get_running_loop().time() + HOLD_SECONDS
    heard = False
    while not tally.opened:
        # Comments keep the line of a client alive that waits for a slow model: they, too, are held back no longer.
        piece = await outlet.wait_for(content, deadline if heard else None)
        heard = True
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
