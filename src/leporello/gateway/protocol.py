"""The HTTP protocol of one connection: uvicorn's, with deadlines and a bound for whoever holds connections open.

uvicorn waits without end for a head that was begun, or never begun, and for a client that does not read its answer.
Here the head has a deadline and a largest size, an answer that nobody reads is given up, and so is a body that goes on
after the answer. Bodies that are read have a deadline of their own (`limits.read_body`). An answer that takes long is
not cut as long as the client reads it.
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from leporello.gateway.api_errors import ApiError
from leporello.gateway.config import GatewayConfig
from leporello.gateway.limits import ConnectionLimits

MOST_HEAD = 64 * 1024
REFUSED_SECONDS = 2.0
"""How long a refused connection may take to read why."""
HEAD_TIMEOUT = ApiError(408, "request_timeout", "The head of the request did not arrive in time.")
HEAD_TOO_LARGE = ApiError(431, "head_too_large", f"The head of the request is larger than {MOST_HEAD:,} bytes.")


class BoundedProtocol(HttpToolsProtocol):
    """One connection of a client. `protocol_class` makes the class that a server uses."""

    limits: ConnectionLimits
    head_timeout: float
    write_timeout: float

    _address = ""
    _refusal: ApiError | None = None
    _in_head = False
    """A request has begun, and its head is not whole."""
    _in_body = False
    """The head of a request was whole, and its body is not."""
    _head_size = 0
    _unread = 0
    """Bytes the client had not read when that was last looked at."""
    _deadline: TimerHandle | None = None
    _write_deadline: TimerHandle | None = None

    # -- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit a client, or prepare to refuse it."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._refusal = self.limits.admit(self._address, len(self.connections) - 1)
        self._arm(self.head_timeout if self._refusal is None else REFUSED_SECONDS)
        if self._refusal is not None and self.limits.is_flood(self._address):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._cancel_write_deadline()
        self.limits.leave(self._address, refused=self._refusal is not None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; the time for a head runs from its first byte."""
        if self._refusal is not None:
            self._refuse(self._refusal)
            return
        was_in_head = self._in_head
        super().data_received(data)
        if self.transport.is_closing():
            return
        if was_in_head and self._in_head:
            self._head_size += len(data)
            if self._head_size > MOST_HEAD:
                self._end(HEAD_TOO_LARGE)
                return
        if self._deadline is None and not self._in_body and self._is_answered():
            self._arm(self.head_timeout)

    def _refuse(self, error: ApiError) -> None:
        """Answer the first bytes; what follows is thrown away, so that the client can read the answer."""
        if not self._in_head:
            self._in_head = True
            self.transport.write(_response(error))
            self.transport.write_eof()

    def on_message_begin(self) -> None:
        self._in_head, self._head_size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole; it may have come in one piece that is too large."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MOST_HEAD:
            self._end(HEAD_TOO_LARGE)
            raise ValueError
        self._in_head, self._in_body = False, True
        self._disarm()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """The parser gave up: on what is no HTTP, or on what was refused already."""
        if not self.transport.is_closing():
            self._end(ApiError(400, "bad_request", msg))

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is sent; a client that goes on with the body it belongs to gets some time to end it."""
        super().on_response_complete()
        if self._in_body and self._is_answered():
            self._arm(self.head_timeout)

    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    # -- deadlines

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        """Too late. A client that has not even begun is not answered: it did not ask."""
        self._deadline = None
        if self._in_head and self._refusal is None:
            self._end(HEAD_TIMEOUT)
        else:
            self.transport.close()

    def _end(self, error: ApiError) -> None:
        self._disarm()
        self.transport.write(_response(error))
        self.transport.close()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._write_deadline = self.loop.call_later(self.write_timeout, self._look_whether_it_reads)

    def resume_writing(self) -> None:
        self._cancel_write_deadline()
        super().resume_writing()

    def _look_whether_it_reads(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread >= self._unread:
            self.transport.abort()
            return
        self._unread = unread
        self._write_deadline = self.loop.call_later(self.write_timeout, self._look_whether_it_reads)

    def _cancel_write_deadline(self) -> None:
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None


def protocol_class(config: GatewayConfig, limits: ConnectionLimits) -> type[BoundedProtocol]:
    """The protocol of a server with these limits."""

    class ServerProtocol(BoundedProtocol):
        """Shares its limits with all connections of the server."""

        head_timeout = config.head_timeout
        write_timeout = config.idle_timeout

    ServerProtocol.limits = limits
    return ServerProtocol


def _response(error: ApiError) -> bytes:
    """A whole answer that ends the connection."""
    body = error.body()
    headers = [*error.headers(), (b"content-length", str(len(body)).encode())]
    if not any(name == b"connection" for name, _ in headers):
        headers.append((b"connection", b"close"))
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
