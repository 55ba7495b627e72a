"""Who may see the dashboard: everybody on this machine where no key is set, else whoever typed a key in.

A session is a signed cookie. It is signed with what the gateway knows of the key (its hash), so every worker can check
it without asking anybody, and it ends when the key is removed. Signing out is written down in the store. What changes
something needs a token that only our own pages have, and must come from a page of exactly this address.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from leporello.errors import StoreError
from leporello.gateway.api_errors import refuse
from leporello.gateway.auth import BrowserCheck, Key, Keys
from leporello.store import Store

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
        self._browsers = browsers
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

    def check_page(self, headers: Mapping[str, str]) -> None:
        """No other name of this machine, no page of another origin."""
        self._browsers.check(headers)

    def check_change(self, headers: Mapping[str, str], user: User | None, token: str) -> None:
        """Only a page of ours may change something: same scheme, name and port, and it holds the token."""
        self._browsers.check_origin(headers)
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
