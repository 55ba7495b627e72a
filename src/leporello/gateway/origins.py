"""Which web pages may use the gateway: its own, and those of origins the settings name.

An origin is scheme, host and port together: a page of another port of this machine is a stranger. Programs that are no
browsers send no `Origin` and are let through; keys are what stops those.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from leporello.gateway.auth import Keys, is_local
from leporello.gateway.faults import Refused, refuse

_PORTS = {"http": 80, "https": 443}
_EMBEDDED = frozenset(("iframe", "frame", "embed", "object", "fencedframe"))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a page comes from."""

    scheme: str
    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> Origin | None:
        """An origin as a browser writes it; None for anything else, such as `null`."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            return None
        if not parts.scheme or not parts.hostname or "@" in parts.netloc or parts.path or parts.query or parts.fragment:
            return None
        return cls(parts.scheme, parts.hostname, port if port is not None else _PORTS.get(parts.scheme))


@dataclass(frozen=True, slots=True)
class BrowserCheck:
    """Refuses requests that a page of another origin causes, and names that somebody else made point here."""

    keys: Keys
    allowed: Collection[Origin] = ()

    def check(self, headers: Mapping[str, str]) -> None:
        """Raises `Refused` for a request that a foreign page may have caused."""
        own = _own_origin(headers)
        if not self.keys and headers.get("host") and (own is None or not is_local(own.host)):
            raise refuse(403, "unknown_host", "This gateway answers only under the names of this machine.")
        if headers.get("origin"):
            self.check_origin(headers)
        elif _is_foreign(headers):
            raise _cross_origin()

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raises `Refused` unless the request comes from a page, and from one of ours."""
        origin = Origin.parse(headers.get("origin", ""))
        if origin is None or (origin != _own_origin(headers) and origin not in self.allowed):
            raise _cross_origin()


def _own_origin(headers: Mapping[str, str]) -> Origin | None:
    """The origin under which the client reaches us.

    A proxy that ends TLS says so. Only programs can make that header up: a browser asks before it sends one for a page.
    """
    proto = headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return Origin.parse(f"{'https' if proto == 'https' else 'http'}://{headers.get('host', '')}")


def _is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that another site's page caused a request, and nobody just followed a link.

    Browsers send no `Origin` when a page embeds something (an image, a script, a frame).
    """
    if headers.get("sec-fetch-site", "none") not in ("cross-site", "same-site"):
        return False
    return headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest", "") in _EMBEDDED


def _cross_origin() -> Refused:
    return refuse(403, "cross_origin", "Requests from web pages of another origin are not accepted.")
