"""What one client may ask of the gateway: size, rate, requests at the same time. Bodies are read within caps."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import zstandard
from starlette.types import Receive

from leporello.gateway.api_errors import refuse
from leporello.gateway.auth import Client

MOST_CLIENTS = 10_000
"""Clients whose rate is remembered; without keys anybody can make up names, and the oldest is forgotten."""

SLOWEST = 1_000
"""Bytes of a body a second, on average, that a client must manage to send."""


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
        self._take(client, bucket)
        bucket.active += 1
        try:
            yield
        finally:
            bucket.active -= 1

    def _take(self, client: Client, bucket: _Bucket) -> None:
        most = client.key.streams or self._streams
        if bucket.active >= most:
            raise refuse(429, "too_many_streams", f"This key has {most} requests under way already.", 1)
        rate = client.key.rate or self._rate
        now = self._clock()
        bucket.tokens = min(float(rate), bucket.tokens + (now - bucket.at) * rate / 60)
        bucket.at = now
        if bucket.tokens < 1:
            wait = (1 - bucket.tokens) * 60 / rate
            raise refuse(429, "rate_limit_exceeded", f"This key may send {rate} requests a minute.", wait)
        bucket.tokens -= 1

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


def _too_large(most: int) -> Exception:
    return refuse(413, "request_too_large", f"The request is larger than {most:,} bytes, which is the most taken here.")
