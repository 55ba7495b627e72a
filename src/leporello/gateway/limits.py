"""What one client may ask of the gateway: connections, requests at the same time, rate, size, a day's tokens and money.

A connection is counted when it is made, before anything was read from it. Connections of a trusted proxy are not: they
carry the requests of many clients, and those are counted one by one, by the address that the proxy names.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import ipaddress
import math
import os
import secrets
import threading
import time
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import zstandard
from starlette.types import ASGIApp, Receive, Scope, Send

from leporello.errors import StoreError
from leporello.gateway.api_errors import ApiError, RequestRefused, refuse
from leporello.gateway.auth import Client
from leporello.models import cost, model_facts
from leporello.store import Store
from leporello.store.records import DayUse, InsightsQuery, Reservation, UsageTotals
from leporello.usage import CanonicalUsage

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


ONCE = frozenset((b"authorization", b"x-api-key", b"host", b"origin", b"content-encoding", b"x-leporello-conversation"))


class SingleHeaders:
    """Refuses a request that says twice who sends it or what it is.

    Of two keys a proxy in front may have looked at one and we at the other.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        once = Counter(name for name, _ in scope["headers"] if name in ONCE) if scope["type"] == "http" else Counter()
        twice = next((name.decode() for name, count in once.items() if count > 1), "")
        error = ApiError(400, "duplicate_header", f"The header {twice} may stand in a request only once.")
        await (error.response() if twice else self._app)(scope, receive, send)


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


async def read_body(
    receive: Receive, most: int, patience: float, encoding: str = "", announced: str | None = None
) -> bytes:
    """The whole body, unpacked; refused beyond `most` bytes before or after unpacking.

    A slow client may take as long as it needs while it sends; one that is silent for `patience` seconds, or falls that
    far behind `SLOWEST` bytes a second, is given up. One that announces more than `most` is not waited for.
    """
    if announced and announced.isdigit() and int(announced[:20]) > most:
        raise _too_large(most)
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


DAY = 86_400
USUAL_OUTPUT = 4_000
"""Tokens that an answer without a cap is taken to have before one was seen."""
FADES = 0.9
UNDER_WAY_SECONDS = 5.0
"""When to ask again while others are under way."""
_NANOS = 1_000_000_000


HELD_SECONDS = 15.0
"""How long a reservation outlives a worker that died."""
RENEW_SECONDS = 4.0
MOST_RESERVED, MOST_DOLLARS = 10**10, 1e6
"""Tokens and dollars: whatever a request claims that it may use, sums of many can be stored."""


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """Refuses a client whose day is used up. What was begun is finished: its cost is known only afterwards.

    What requests under way may use is reserved in the store, where all workers see it.
    """

    store: Store
    tokens: int
    """0 is any number."""
    dollars: float
    clock: Callable[[], float] = time.time
    models: Mapping[str, Mapping[str, Any]] | None = None
    """The user's own facts, which may state prices."""
    _held: dict[str, Reservation] = field(default_factory=dict)
    _usual: OrderedDict[tuple[str, str], float] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Turns of agents begin in threads of their own."""

    def limits(self, client: Client) -> bool:
        """Whether the client has a budget at all."""
        return min(self._of_day(client)) < math.inf

    def _of_day(self, client: Client) -> tuple[float, float]:
        key = client.key
        tokens = (key.tokens_per_day if key.tokens_per_day is not None else self.tokens) or math.inf
        return tokens, (key.dollars_per_day if key.dollars_per_day is not None else self.dollars) or math.inf

    def check(self, client: Client, model: str = "") -> None:
        """Raises `RequestRefused` (429) until the day ends when nothing of it is left."""
        self._check_price(client, model)
        if self.limits(client):
            owner = owner_of(client)
            self._check_use(client, self.store.usage.of_day(owner, self._today(), self._aside(owner)))

    def _check_price(self, client: Client, model: str) -> None:
        dollars = self._of_day(client)[1]
        if dollars < math.inf and model and model_facts(model, overrides=self.models).prices is None:
            text = f"This key has a budget in dollars, and no price of {model[:100]!r} is known. "
            raise refuse(400, "model_without_price", text + "An entry of its name under `models` can state its prices.")

    def _check_use(self, client: Client, use: DayUse) -> None:
        tokens, dollars = self._of_day(client)
        if use.tokens >= tokens or use.cost >= dollars:
            raise self._used_up(f"{tokens:,} tokens" if use.tokens >= tokens else f"{dollars:,} dollars")

    def usual_output(self, owner: str, model: str) -> int:
        """About the longest answer that this owner lately got of this model."""
        return round(self._usual.get((owner, model), USUAL_OUTPUT))

    def learn(self, owner: str, model: str, output: int) -> None:
        """Remember how long an answer was; long ones are forgotten slowly."""
        with self._lock:
            self._usual[owner, model] = max(output, FADES * self._usual.pop((owner, model), 0))
            if len(self._usual) > MOST_CLIENTS:
                self._usual.popitem(last=False)

    def reserve(self, client: Client, model: str, usage: CanonicalUsage) -> Reservation | None:
        """Reserve what a request may use, or refuse it: with others that are under way it may pass the day.

        One alone passes. None for a client without a budget. Release it once the store has counted what was used.
        """
        self._check_price(client, model)
        if not self.limits(client):
            return None
        owner = owner_of(client)
        money = min(cost(usage, model_facts(model or None, overrides=self.models)) or 0.0, MOST_DOLLARS)
        wanted = Reservation(owner, secrets.token_hex(12), min(usage.total_tokens, MOST_RESERVED), money)

        def admit(use: DayUse) -> None:
            self._check_use(client, use)
            if not use.reserved_tokens and not use.reserved_cost:
                return
            tokens, dollars = self._of_day(client)
            taken = use.tokens + use.reserved_tokens + wanted.tokens
            if taken > tokens or use.cost + use.reserved_cost + wanted.cost > dollars:
                text = "Requests of this key that are under way may use up what is left of its day. "
                raise refuse(429, "daily_limit_exceeded", text + "Try again when they end.", UNDER_WAY_SECONDS)

        self.store.usage.reserve(wanted, self._today(), self._aside(owner), HELD_SECONDS, admit)
        with self._lock:
            self._held[wanted.id] = wanted
        return wanted

    def release(self, held: Reservation) -> None:
        """Give a reservation back. Where the store can't be reached it is renewed no more, and so ends by itself."""
        with self._lock:
            self._held.pop(held.id, None)
        self.store.usage.release(held)

    def renew(self) -> None:
        """Hold what this process has reserved for longer; to be called every `RENEW_SECONDS`."""
        with self._lock:
            held = list(self._held.values())
        if held:
            self.store.usage.renew_reservations(held, HELD_SECONDS)

    @contextmanager
    def under_way(self, client: Client, model: str, usage: CanonicalUsage) -> Iterator[None]:
        """Reserve what may be used until the block ends."""
        held = self.reserve(client, model, usage)
        try:
            yield
        finally:
            if held is not None:
                with suppress(StoreError):
                    self.release(held)

    @contextmanager
    def turn(self, client: Client, model: str) -> Iterator[None]:
        """Let a turn of an agent pass that uses about as much as the last ones, or refuse it."""
        owner, turn = owner_of(client), f"turn of {model}"
        with self.under_way(client, model, CanonicalUsage(0, self.usual_output(owner, turn))):
            if not self.limits(client):
                yield
                return
            today, aside = self._today(), self._aside(owner)
            used = self.store.usage.of_day(owner, today, aside).tokens
            yield
            self.learn(owner, turn, self.store.usage.of_day(owner, today, aside).tokens - used)

    def _used_up(self, what: str) -> RequestRefused:
        now = self.clock()
        midnight = (int(now) // DAY + 1) * DAY
        until = datetime.fromtimestamp(midnight, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = f"This key has used its {what} of today. It can be used again at {until}."
        return refuse(429, "daily_limit_exceeded", text, midnight - now)

    def set_aside(self, owner: str, totals: UsageTotals) -> None:
        """Remember today's usage that no conversation will show: of a deleted one, or of one the provider keeps."""
        today = self._today()
        for name, amount in (("tokens", totals.usage.total_tokens), ("nanos", round(totals.cost * _NANOS))):
            if amount:
                self.store.state.add(None, _counter(owner, today, name), amount)
                self.store.state.remove(None, _counter(owner, today - DAY, name))

    def set_aside_conversation(self, owner: str, id: str) -> None:
        """Called before it is deleted: deleting gives nothing back."""
        today = self._today()
        used = self.store.usage.insights(InsightsQuery(since=today, conversation=id, catch_up=False))
        self.set_aside(owner, used.totals)

    def set_aside_calls(self, owner: str, model: str, usages: Iterable[CanonicalUsage]) -> None:
        facts = model_facts(model or None, overrides=self.models)
        for usage in usages:
            self.set_aside(owner, UsageTotals(usage, 1, cost(usage, facts) or 0.0))

    def _today(self) -> int:
        return int(self.clock()) // DAY * DAY

    def _aside(self, owner: str) -> tuple[str, str]:
        today = self._today()
        return _counter(owner, today, "tokens"), _counter(owner, today, "nanos")


def owner_of(client: Client) -> str:
    """The name under which a client's conversations are stored."""
    return client.key.name or client.owner


def _counter(owner: str, day: int, name: str) -> str:
    return f"gateway.spent.{day // DAY}.{name}.{hashlib.blake2b(owner.encode(), digest_size=16).hexdigest()}"
