"""Who may use the gateway: holders of keys, which are shown once and stored as hashes; without keys, this machine.

Requests that pages of other origins cause are refused.

Who typed a key into the dashboard has a session: a cookie, signed with what the gateway knows of the key (its hash). So
every worker can check it without asking anybody, and it ends when the key is removed. Signing out is written down in
the store. What changes something needs a token that only our own pages have, and must come from exactly this address.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from leporello.errors import ConfigError, StoreError
from leporello.files import open_whole
from leporello.gateway.api_errors import RequestRefused, refuse
from leporello.store import Store

PREFIX = "lep-"
OWN_HEADER = "x-leporello-key"
FILE = "gateway-keys.json"
log = logging.getLogger("leporello.gateway")
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
    tokens_per_day: int | None = None
    """Instead of the configured number; 0 is any number."""
    dollars_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class Client:
    key: Key
    owner: str
    """Scopes conversations: a digest of the key that was used."""
    upstream_key: str = ""
    """The client's own key for the provider, when it sent one."""
    upstream_scheme: str = "bearer"


class Keys:
    """Keys of a gateway. Those of a file follow it; whoever began with keys never does without them."""

    def __init__(self, keys: Iterable[Key] = (), path: Path | None = None, stamp: object = None) -> None:
        self._keys = tuple(keys)
        self._path = path if self._keys else None
        self._stamp = self._broken = stamp

    def __bool__(self) -> bool:
        return bool(self._keys) or self._path is not None

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys as the file has them now: one that was removed opens nothing any more."""
        if self._path is not None and (stamp := _stamp(self._path)) != self._stamp:
            try:
                self._keys, self._stamp = Keys.load(self._path.parent)._keys, stamp
            except ConfigError as error:  # tried again each time, and said once
                if stamp != self._broken:
                    log.warning("The keys of before stay in force: %s", error)
                self._broken = stamp
        return self._keys

    @classmethod
    def load(cls, home: Path) -> Keys:
        """From the home folder; a missing file means none, a broken one is an error that names it."""
        path = home / FILE
        stamp = _stamp(path)
        try:
            listed = orjson.loads(path.read_bytes())["keys"]
            return cls([Key(**entry) for entry in listed], path, stamp)
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

    def add(self, name: str, **rights: Any) -> tuple[Keys, str]:
        """The list with a new key, and the key: it is shown once and nowhere stored. `rights` are fields of `Key`."""
        if not name.strip() or name != name.strip() or not name.isprintable():
            raise ConfigError("A key's name is printable text in one line, without blanks around it.")
        if any(key.name == name for key in self.keys):
            raise ConfigError(f"There is a key named {name!r} already. Remove it first, or use another name.")
        secret = PREFIX + secrets.token_urlsafe(32)
        made = Key(name, _hash(secret), time.time(), **rights)
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


def _stamp(path: Path) -> object:
    """Changes with the file: each version of it is a file of its own."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


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


COOKIE = "leporello_session"
LIFE_SECONDS = 12 * 3600
TRIES_A_MINUTE = 10
"""Keys that may be tried from one address."""
MOST_ADDRESSES = 10_000
SIGNED_OUT = "dashboard.signed-out."
_SESSION_BYTES = 18


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may look. `owner` is whose conversations they see; None sees all."""

    session: str
    name: str = ""
    owner: str | None = None
    expires: int = 0
    secret: bytes = b""
    fresh: str = ""
    """A cookie to be set with the answer."""

    @property
    def operator(self) -> bool:
        return self.owner is None

    @property
    def token(self) -> str:
        return _sign(self.secret or b"leporello", f"form:{self.session}")


class DashboardAuth:
    """Sessions of one gateway: signing in and out, and checks against other origins."""

    def __init__(
        self, keys: Keys, store: Store, browsers: BrowserCheck, clock: Callable[[], float] = time.time
    ) -> None:
        self.keys = keys
        self._store = store
        self.browsers = browsers
        self._clock = clock
        self._tries: OrderedDict[str, list[float]] = OrderedDict()

    def user(self, cookies: Mapping[str, str]) -> User | None:
        """Who sent a request; None when they must show a key first."""
        cookie = cookies.get(COOKIE, "")
        if not self.keys:
            known = cookie.removeprefix("open.")
            if cookie.startswith("open.") and len(known) == len(_new_session()) and known.isascii():
                return User(known)
            session = _new_session()
            return User(session, fresh=f"open.{session}")
        return self._signed_user(cookie)

    def _signed_user(self, cookie: str) -> User | None:
        signed, _, signature = cookie.rpartition(".")
        mark, session, expiry = [*signed.split("."), "", "", ""][:3]
        if not expiry.isdecimal() or len(expiry) > 12 or int(expiry) < self._clock():
            return None
        found = [key for key in self.keys.keys if _same(_mark(key), mark)]
        if not found or not _same(_sign(_secret(found[-1]), signed), signature):
            return None
        if self._store.state.get(None, SIGNED_OUT + session) is not None:
            return None
        return _user(found[-1], session, int(expiry))

    def sign_in(self, typed: str, address: str) -> User | None:
        """The session of whoever typed a right key; None for a wrong one. Refused after too many."""
        now = self._clock()
        tries = [moment for moment in self._tries.get(address, []) if moment > now - 60]
        if len(tries) >= TRIES_A_MINUTE:
            raise refuse(429, "too_many_tries", "Too many keys were tried. Wait a minute.", 60)
        key = self.keys.find(typed.strip())
        if key is None:
            self._tries[address] = [*tries, now]
            self._tries.move_to_end(address)
            while len(self._tries) > MOST_ADDRESSES:
                self._tries.popitem(last=False)
            return None
        session, expires = _new_session(), int(now) + LIFE_SECONDS
        signed = f"{_mark(key)}.{session}.{expires}"
        return replace(_user(key, session, expires), fresh=f"{signed}.{_sign(_secret(key), signed)}")

    def sign_out(self, user: User) -> None:
        """End a session for every worker. A store that can't be written still ends it in this browser."""
        now = self._clock()
        try:
            for name, expires in self._store.state.items(None).items():
                if name.startswith(SIGNED_OUT) and (not isinstance(expires, int) or expires < now):
                    self._store.state.remove(None, name)
            if user.expires:
                self._store.state.set(None, SIGNED_OUT + user.session, user.expires)
        except StoreError:
            return

    def check_change(self, headers: Mapping[str, str], user: User | None, token: str) -> None:
        """Only a page of ours may change something: same scheme, name and port, and it holds the token."""
        self.browsers.check_origin(headers)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise refuse(403, "cross_origin", "Only a page of the dashboard itself may send this.")
        if user is not None and not _same(user.token, token):
            raise refuse(403, "stale_form", "This page is out of date. Load it again, and try once more.")


def _user(key: Key, session: str, expires: int) -> User:
    return User(session, key.name, None if key.operator else key.name, expires, _secret(key))


def _same(ours: str, given: str) -> bool:
    return hmac.compare_digest(ours.encode(), given.encode("utf-8", "replace"))


def _new_session() -> str:
    return secrets.token_urlsafe(_SESSION_BYTES)


def _mark(key: Key) -> str:
    """Names a key in a cookie without telling its hash."""
    return _sign(_secret(key), "key")[:16]


def _secret(key: Key) -> bytes:
    return hashlib.blake2b(key.hash.encode(), key=b"leporello-dashboard", digest_size=32).digest()


def _sign(secret: bytes, text: str) -> str:
    return hmac.new(secret, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
