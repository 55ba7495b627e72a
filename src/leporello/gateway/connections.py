"""How many connections and requests one client address may hold open, and who counts as one address.

A connection is counted when it is made, before anything was read from it. Connections of a trusted proxy are not: they
carry the requests of many clients, and those are counted one by one, by the address that the proxy names.
"""

from __future__ import annotations

import ipaddress
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from leporello.gateway.api_errors import ApiError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_V6_PREFIX = 64
"""Bits of an IPv6 address that belong to its network: whoever has one address there has them all."""


@dataclass(slots=True)
class ConnectionLimits:
    """Who may connect; counts what is open."""

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
        """A connection is closed."""
        _decrease(self._refused if refused else self._open, client_address(host))

    def is_proxy(self, host: str) -> bool:
        """Whether an address is that of a trusted proxy."""
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
        """Pass a request on, or answer that there are too many."""
        if scope["type"] != "http" or not scope.get("client"):
            await self._app(scope, receive, send)
            return
        address = client_address(scope["client"][0])
        if self._active[address] >= self._most:
            fault = _too_many(self._most)
            await send({"type": "http.response.start", "status": fault.status, "headers": fault.headers()})
            await send({"type": "http.response.body", "body": fault.body()})
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
