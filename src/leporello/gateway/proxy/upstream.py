"""Calls to the servers of models: one HTTP client, URLs from fixed templates, headers without what is private."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from leporello.gateway.api_errors import ApiError, RequestRefused, refuse
from leporello.gateway.auth import Client
from leporello.gateway.config import SCRIPTED_URL, GatewayConfig, Upstream
from leporello.lazy_regex import lazy_regex
from leporello.providers.errors import ErrorVerdict, classify

if TYPE_CHECKING:
    from leporello.gateway.proxy.scripted_upstream import ScriptedUpstream

_HOP = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    "upgrade".split()
)
_NOT_SENT = _HOP | frozenset(
    "host content-length content-encoding accept-encoding authorization x-api-key api-key cookie origin referer "
    "via expect".split()
)
_NOT_RETURNED = _HOP | frozenset(
    "content-length content-encoding set-cookie server date via alt-svc strict-transport-security www-authenticate "
    "access-control-allow-origin".split()
)
_OF_CLIENT = lazy_regex(r"^(?:x-leporello|sec-|access-control-|cf-)|forwarded|-ip$")
"""Headers between the client, the proxies before us, and us: where it is, what it asks of us."""
MOST_REPLY = 64 * 1024 * 1024
MOST_ERROR = 256 * 1024
MODELS_PATH = "/v1/models"
LONGEST_NAME = 500
_QUERY_SAFE = "!$&'()*+,;=:@/?-._~%"
"""Characters that may stand in a query as they are; all others are encoded."""
_DOTS = lazy_regex(r"(?:^|/)\.{1,2}(?:/|$)")
_LINE_OPTIONS = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
"""What makes the system notice within half a minute that a line is dead. A model may be silent for long, the machine it
runs on may not."""


def upstream_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for a connection to this address, as `getaddrinfo` names it."""
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _LINE_OPTIONS.items():
        # Not every system has each of them.
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


@dataclass(frozen=True, slots=True)
class UpstreamTarget:
    """Where a request goes: the server, the address there, and the headers that go along."""

    upstream: Upstream
    url: URL
    headers: Mapping[str, str]


def sent_headers(headers: Mapping[str, str], client: Client, upstream: Upstream, bearer: bool) -> dict[str, str]:
    """What goes on to the provider: everything but addresses, cookies and keys; then the one key that belongs there."""
    not_sent = _NOT_SENT.union(named.strip().lower() for named in headers.get("connection", "").split(","))
    kept = {name: value for name, value in headers.items() if name not in not_sent and not _OF_CLIENT.search(name)}
    kept["accept-encoding"] = "identity"
    key = client.upstream_key or upstream.key
    if client.upstream_key:
        bearer = client.upstream_scheme == "bearer"
    if key and bearer:
        kept["authorization"] = f"Bearer {key}"
    elif key:
        kept["x-api-key"] = key
    return kept


def returned_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """What comes back to the client: everything but what belongs to the connection or to the other server."""
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in headers.items()
        if name.lower() not in _NOT_RETURNED and not name.lower().startswith("cf-")
    ]


class Upstreams:
    """The HTTP client, open as long as the gateway runs."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._session: aiohttp.ClientSession | None = None
        self._scripted: asyncio.Task[ScriptedUpstream] | None = None

    async def __aenter__(self) -> Upstreams:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=60, keepalive_timeout=30, socket_factory=upstream_socket
            ),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=self._config.connect_timeout, sock_read=self._config.idle_timeout
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
            read_bufsize=2**16,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()
        if self._scripted is not None:
            await (await self._scripted).close()

    @asynccontextmanager
    async def call(self, target: UpstreamTarget, body: bytes | None) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer's head; its body is read inside the block. Failures are errors the client can read."""
        assert self._session is not None
        method = "GET" if body is None else "POST"
        url = (
            target.url if target.upstream.base_url != SCRIPTED_URL else (await self._scripted_upstream()).at(target.url)
        )
        try:
            async with self._session.request(
                method, url, headers=target.headers, data=body, allow_redirects=False
            ) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise RequestRefused(connection_error(error, target.upstream.name)) from error

    async def _scripted_upstream(self) -> ScriptedUpstream:
        """Started by the first request for it; a client that hangs up meanwhile stops nothing."""
        if self._scripted is None:
            from leporello.gateway.proxy.scripted_upstream import ScriptedUpstream  # noqa: PLC0415

            self._scripted = asyncio.create_task(ScriptedUpstream().start())
        return await asyncio.shield(self._scripted)


def connection_error(error: Exception, upstream: str = "") -> ApiError:
    """What a failed connection is called towards the client, by the upstream's name; neither address nor cause."""
    server = f"The model's server (upstream {upstream})" if upstream else "The model's server"
    if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
        return ApiError(504, "upstream_timeout", f"{server} did not answer in time.")
    if isinstance(error, aiohttp.ClientConnectorError):
        return ApiError(502, "upstream_unreachable", f"{server} can't be reached.")
    return ApiError(502, "upstream_broken", "The connection to the model's server broke before the answer was whole.")


async def read_reply(response: aiohttp.ClientResponse) -> bytes:
    """The whole body of an answer, within a cap."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > MOST_REPLY:
            raise refuse(502, "upstream_too_large", "The model's server sent more than any answer needs.")
        pieces.append(piece)
    return b"".join(pieces)


def verdict_on(response: aiohttp.ClientResponse, body: bytes) -> ErrorVerdict:
    return classify(response.status, body[:MOST_ERROR], dict(response.headers), now=time.time())


def upstream_url(upstream: Upstream, path: str, query: bytes = b"", model: str = "") -> URL:
    """The address of an API path at an upstream; with a model's name, that of the model below the path."""
    # Base addresses come with and without the version.
    address = upstream.base_url.removesuffix("/v1") + path
    if model:
        address += "/" + _segment(model)
    if query:
        address += "?" + quote(query, safe=_QUERY_SAFE)
    return URL(address, encoded=True)


def _segment(model: str) -> str:
    """A model's name as one segment of a path.

    Many servers decode a path before they resolve it, some twice. So names that would be another path then are refused,
    although they are encoded: those with dots for segments, with backslashes, or encoded once more.
    """
    if len(model) > LONGEST_NAME or not model.isprintable() or "\\" in model or "%" in model or _DOTS.search(model):
        raise refuse(400, "invalid_model", "This can't be the name of a model.")
    return quote(model, safe="")
