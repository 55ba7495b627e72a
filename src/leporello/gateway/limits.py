"""What one client may ask of the gateway: connections, requests at the same time, rate, size.

A connection is counted when it is made, before anything was read from it. Connections of a trusted proxy are not: they
carry the requests of many clients, and those are counted one by one, by the address that the proxy names.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import os
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import zstandard
from starlette.types import ASGIApp, Receive, Scope, Send

from leporello.gateway.api_errors import ApiError, RequestRefused, refuse
from leporello.gateway.auth import Client

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MOST_CLIENTS = 10_000
"""Clients whose rate is remembered; without keys anybody can make up names, and the oldest is forgotten."""

SLOWEST = 1_000
"""Bytes of a body a second, on average, that a client must manage to send."""

_V6_PREFIX = 64
"""Bits of an IPv6 address that belong to its network: whoever has one address there has them all."""


@dataclass(slots=True)
class ConnectionLimits:
    most: int
    """Connections of one address, and requests of one address behind a proxy."""
    proxies: Sequence[Network] = ()
    total: int | None = None
    """Connections of all clients together."""
    _open: Counter[str] = field(default_factory=Counter)
    _refused: Counter[str] = field(default_factory=Counter)

    def admit(self, host: str, others: int) -> ApiError | None:
        """Count a connection, or say why it is refused; `others` are open altogether."""
        address = client_address(host)
        if self.total is not None and others >= self.total:
            self._refused[address] += 1
            return ApiError(503, "too_many_connections", "This gateway has too many connections. Try again later.", 5)
        if self._open[address] >= self.most and not self.is_proxy(host):
            self._refused[address] += 1
            return _too_many(self.most)
        self._open[address] += 1
        return None

    def is_flood(self, host: str) -> bool:
        """Whether so many refused connections of an address are open that no further one gets an answer."""
        return self._refused[client_address(host)] > self.most

    def leave(self, host: str, *, refused: bool) -> None:
        _decrease(self._refused if refused else self._open, client_address(host))

    def is_proxy(self, host: str) -> bool:
        try:
            ip = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(ip in network for network in self.proxies)


class RequestsPerAddress:
    """Bounds the requests of one client address that are under way at once.

    A client without a proxy can't have more of them than connections. Behind a trusted proxy this is the only bound.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._active: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope.get("client"):
            await self._app(scope, receive, send)
            return
        address = client_address(scope["client"][0])
        if self._active[address] >= self._most:
            await _too_many(self._most).response()(scope, receive, send)
            return
        self._active[address] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            _decrease(self._active, address)


def client_address(host: str) -> str:
    """What counts as one client: an IPv4 address, or the network of an IPv6 address."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv4Address) or ip.is_loopback:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip.packed, _V6_PREFIX), strict=False).network_address)


def most_connections() -> int | None:
    """How many connections this process can serve: each may need another one to an upstream. None: any number."""
    files = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else -1
    return files // 2 if files > 0 else None


def _too_many(most: int) -> ApiError:
    return ApiError(429, "too_many_connections", f"This address has {most} connections open already.", 5)


def _decrease(counter: Counter[str], address: str) -> None:
    counter[address] -= 1
    if counter[address] <= 0:
        del counter[address]


# -- requests of one client


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float
    active: int = 0


class Gate:
    """Counts requests by client: a token bucket for the rate, a number for those under way."""

    def __init__(self, rate: int, streams: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._streams = streams
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    @contextmanager
    def passing(self, client: Client) -> Iterator[None]:
        """Let one request of a client pass, or refuse it; it counts until the block ends."""
        bucket = self._bucket(client)
        most = client.key.streams or self._streams
        if bucket.active >= most:
            raise refuse(429, "too_many_streams", f"This key has {most} requests under way already.", 1)
        rate, now = client.key.rate or self._rate, self._clock()
        bucket.tokens = min(float(rate), bucket.tokens + (now - bucket.at) * rate / 60)
        bucket.at = now
        if bucket.tokens < 1:
            wait = (1 - bucket.tokens) * 60 / rate
            raise refuse(429, "rate_limit_exceeded", f"This key may send {rate} requests a minute.", wait)
        bucket.tokens -= 1
        bucket.active += 1
        try:
            yield
        finally:
            bucket.active -= 1

    def _bucket(self, client: Client) -> _Bucket:
        found = self._buckets.get(client.owner)
        if found is None:
            rate = client.key.rate or self._rate
            found = self._buckets[client.owner] = _Bucket(float(rate), self._clock())
            while len(self._buckets) > MOST_CLIENTS:
                idle = next((name for name, bucket in self._buckets.items() if not bucket.active), None)
                if idle is None:
                    break
                del self._buckets[idle]
        self._buckets.move_to_end(client.owner)
        return found


async def read_body(receive: Receive, most: int, patience: float, encoding: str = "") -> bytes:
    """The whole body, unpacked; refused beyond `most` bytes before or after unpacking.

    A slow client may take as long as it needs while it sends; one that is silent for `patience` seconds, or falls that
    far behind `SLOWEST` bytes a second, is given up.
    """
    pieces: list[bytes] = []
    size = 0
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        async with asyncio.timeout(patience) as deadline:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionResetError
                piece = message.get("body", b"")
                size += len(piece)
                if size > most:
                    raise _too_large(most)
                pieces.append(piece)
                if not message.get("more_body", False):
                    break
                deadline.reschedule(min(clock(), began + size / SLOWEST) + patience)
    except TimeoutError:
        raise refuse(408, "request_timeout", "The body of the request did not arrive in time.") from None
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return unpack(data, encoding, most) if encoding and encoding != "identity" else data


def unpack(data: bytes, encoding: str, most: int) -> bytes:
    """The bytes behind a content encoding; never more than `most` are made, however small the packed form is."""
    try:
        if encoding == "zstd":
            found = zstandard.ZstdDecompressor().stream_reader(data).read(most + 1)
        elif encoding in ("gzip", "x-gzip", "deflate"):
            unpacker = zlib.decompressobj(31 if encoding != "deflate" else 15)
            found = unpacker.decompress(data, most + 1)
            if not unpacker.eof and len(found) <= most:
                raise gzip.BadGzipFile
        else:
            raise refuse(415, "unknown_encoding", "Bodies may be packed with gzip, deflate or zstd, or not at all.")
    except (zlib.error, zstandard.ZstdError, gzip.BadGzipFile):
        raise refuse(400, "bad_encoding", "The body can't be unpacked as its content-encoding says.") from None
    if len(found) > most:
        raise _too_large(most)
    return found


def _too_large(most: int) -> RequestRefused:
    return refuse(413, "request_too_large", f"The request is larger than {most:,} bytes, which is the most taken here.")
