"""Who may use the gateway: holders of keys, which are shown once and stored as hashes; without keys, this machine.

Requests that pages of other origins cause are refused.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from leporello.errors import ConfigError
from leporello.files import open_whole
from leporello.gateway.api_errors import RequestRefused, refuse

PREFIX = "lep-"
OWN_HEADER = "x-leporello-key"
FILE = "gateway-keys.json"
_LOCAL_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the gateway, without the key itself."""

    name: str
    hash: str
    created: float = 0.0
    agent: bool = True
    """Whether it may run agent sessions, which use tools on this machine."""
    operator: bool = False
    """Whether its holder sees everybody's conversations in the dashboard, and this machine's settings."""
    recall: bool = False
    """Whether models it talks to may search what was folded."""
    rate: int | None = None
    """Requests a minute, instead of the configured number."""
    streams: int | None = None
    """Requests at the same time, instead of the configured number."""


@dataclass(frozen=True, slots=True)
class Client:
    key: Key
    owner: str
    """Scopes conversations: a digest of the key that was used."""
    upstream_key: str = ""
    """The client's own key for the provider, when it sent one."""
    upstream_scheme: str = "bearer"


class Keys:
    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self.keys = tuple(keys)

    def __bool__(self) -> bool:
        return bool(self.keys)

    @classmethod
    def load(cls, home: Path) -> Keys:
        """From the home folder; a missing file means none, a broken one is an error that names it."""
        path = home / FILE
        try:
            listed = orjson.loads(path.read_bytes())["keys"]
            return cls(Key(**entry) for entry in listed)
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError):
            raise ConfigError(f"{path}: the list of gateway keys can't be read. Mend it or remove it.") from None

    def save(self, home: Path) -> None:
        """Write the file whole or not at all, for its owner only."""
        data = orjson.dumps({"keys": [asdict(key) for key in self.keys]}, option=orjson.OPT_INDENT_2)
        try:
            home.mkdir(parents=True, exist_ok=True)
            with open_whole(home / FILE, private=True) as file:
                file.write(data)
        except OSError as error:
            raise ConfigError(f"{home / FILE}: the keys can't be saved: {error.strerror}.") from None

    def add(self, name: str, *, agent: bool = True, operator: bool = False, recall: bool = False) -> tuple[Keys, str]:
        """The list with a new key, and the key: it is shown once and nowhere stored."""
        if any(key.name == name for key in self.keys):
            raise ConfigError(f"There is a key named {name!r} already. Remove it first, or use another name.")
        secret = PREFIX + secrets.token_urlsafe(32)
        made = Key(name, _hash(secret), time.time(), agent, operator, recall)
        return Keys((*self.keys, made)), secret

    def remove(self, name: str) -> Keys:
        kept = [key for key in self.keys if key.name != name]
        if len(kept) == len(self.keys):
            known = ", ".join(key.name for key in self.keys) or "none"
            raise ConfigError(f"There is no key named {name!r}. There are: {known}.")
        return Keys(kept)

    def find(self, secret: str) -> Key | None:
        """The key a secret belongs to; all are compared, each in constant time."""
        given = _hash(secret)
        found = [key for key in self.keys if hmac.compare_digest(given, key.hash)]
        return found[-1] if found else None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def identify(headers: Mapping[str, str], keys: Keys) -> Client:
    """The client of a request; refused when keys are set and it shows none of them.

    The key stands in `X-Leporello-Key`, or where the client's own library puts its API key. In the first case that
    other key is the client's own for the provider, and is passed on.
    """
    bearer, named = _bearer(headers), headers.get("x-api-key", "").strip()
    own = bearer or named
    scheme = "bearer" if bearer else "x-api-key"
    if not keys:
        return Client(Key("", ""), _owner(own), own, scheme)
    shown = headers.get(OWN_HEADER, "").strip()
    found = keys.find(shown or own)
    if found is None:
        raise refuse(401, "invalid_api_key", "This gateway wants one of its own keys; none was given, or a wrong one.")
    return Client(found, _owner(found.hash), own if shown else "", scheme)


def _owner(secret: str) -> str:
    return hashlib.blake2b(
        secret.encode("utf-8", "surrogateescape"), key=b"leporello-owner", digest_size=16
    ).hexdigest()


def _bearer(headers: Mapping[str, str]) -> str:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def check_address(host: str, keys: Keys) -> None:
    """Refuse to listen beyond this machine without a key, and say how to make one."""
    if keys or is_local(host):
        return
    raise ConfigError(
        f"Listening on {host} would let everybody who reaches this machine use your keys. Make a key first: "
        "leporello serve --add-key NAME. Or listen on 127.0.0.1."
    )


def is_local(host: str) -> bool:
    """Whether an address reaches only this machine."""
    name = host.strip("[]").lower()
    if name in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


_PORTS = {"http": 80, "https": 443}
_EMBEDDED = frozenset(("iframe", "frame", "embed", "object", "fencedframe"))


@dataclass(frozen=True, slots=True)
class Origin:
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
        """Raises `RequestRefused` for a request that a foreign page may have caused."""
        own = _own_origin(headers)
        if not self.keys and headers.get("host") and (own is None or not is_local(own.host)):
            raise refuse(403, "unknown_host", "This gateway answers only under the names of this machine.")
        if headers.get("origin"):
            self.check_origin(headers)
        elif _is_foreign(headers):
            raise _cross_origin()

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raises `RequestRefused` unless the request comes from a page, and from one of ours."""
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


def _cross_origin() -> RequestRefused:
    return refuse(403, "cross_origin", "Requests from web pages of another origin are not accepted.")
