"""Web pages: only those of exactly the gateway's own origin, or of one that the settings name, use it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import ConfigError
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.auth import BrowserCheck, Keys, Origin
from leporello.testing.stub_server import Say

from .house import House, opened

KEYS = Keys().add("x")[0]
PROXIED = {"host": "gate.example.com", "x-forwarded-proto": "https"}
SAID = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
ROUTES = (
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/messages/count_tokens"),
    ("GET", "/v1/models"),
    ("GET", "/metrics"),
    ("GET", "/api/conversations"),
    ("POST", "/api/conversations"),
    ("GET", "/"),
    ("GET", "/live"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("POST", "/logout"),
)


def is_refused(headers: Mapping[str, str], keys: Keys = KEYS, allowed: tuple[str, ...] = ()) -> bool:
    origins = [origin for origin in map(Origin.parse, allowed) if origin is not None]
    try:
        BrowserCheck(keys, origins).check(headers)
    except RequestRefused as refused:
        return refused.error.status == 403
    return False


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8484", ""),
        ("", ""),
        ("localhost:8484", "http://localhost:8484"),
        ("LOCALHOST:8484", "http://localhost:8484"),
        ("[::1]:8484", "http://[::1]:8484"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
    ],
)
def test_our_own_pages(host: str, origin: str) -> None:
    """Programs, and pages of the very address that was asked, are served with and without keys."""
    headers = {name: value for name, value in (("host", host), ("origin", origin)) if value}
    assert not is_refused(headers)
    assert not is_refused(headers, Keys())


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8484", "https://evil.example"),
        ("127.0.0.1:8484", "http://127.0.0.1:3000"),
        ("127.0.0.1:8484", "http://127.0.0.1"),
        ("127.0.0.1:8484", "https://127.0.0.1:8484"),
        ("127.0.0.1:8484", "http://localhost:8484"),
        ("[::1]:8484", "http://[::1]:3000"),
        ("localhost", "https://localhost"),
        ("localhost", "http://localhost:443"),
        ("127.0.0.1:8484", "null"),
        ("127.0.0.1:8484", "file://"),
        ("127.0.0.1:8484", "http://127.0.0.1:8484/path"),
        ("127.0.0.1:8484", "http://x@127.0.0.1:8484"),
        ("127.0.0.1:8484", "http://127.0.0.1:8484 http://evil.example"),
        ("127.0.0.1:8484", "chrome-extension://127.0.0.1:8484"),
        ("", "http://127.0.0.1:8484"),
    ],
)
def test_foreign_pages(host: str, origin: str) -> None:
    """Another scheme, host or port is another origin, and what is no origin is nobody's page."""
    headers = {name: value for name, value in (("host", host), ("origin", origin)) if value}
    assert is_refused(headers)
    assert is_refused(headers, Keys())


def test_a_name_that_was_made_to_point_here() -> None:
    """Without keys only names of this machine are answered, whatever a page's own name resolves to."""
    for host in (
        "evil.example:8484",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "0.0.0.0:8484",
        "[::1",
        "a:b",
    ):
        assert is_refused({"host": host}, Keys())
        assert is_refused({"host": host, "origin": f"http://{host}"}, Keys())
    assert not is_refused({"host": "gate.example.com"})
    assert is_refused(
        {"host": "evil.example:8484", "origin": "http://evil.example:8484"}, Keys(), ("http://evil.example:8484",)
    )


def test_behind_a_proxy() -> None:
    """A proxy that ends TLS says so, or the settings name the origin under which browsers reach it."""
    own = "https://gate.example.com"
    assert not is_refused({**PROXIED, "origin": own})
    assert not is_refused({**PROXIED, "host": "gate.example.com:443", "origin": own})
    assert not is_refused({**PROXIED, "x-forwarded-proto": "https, http", "origin": own})
    assert is_refused({**PROXIED, "origin": "http://gate.example.com"})
    assert is_refused({**PROXIED, "origin": "https://gate.example.com:8443"})
    assert is_refused({**PROXIED, "origin": "https://evil.example"})
    silent = {"host": "10.0.0.5:8484", "origin": own}
    assert is_refused(silent)
    assert not is_refused(silent, allowed=(own,))
    assert is_refused({**silent, "origin": "https://other.example.com"}, allowed=(own,))


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_pages_embed(site: str) -> None:
    """Requests without an origin that another page causes are refused; following a link is not."""
    base = {"host": "127.0.0.1:8484", "sec-fetch-site": site}
    for mode, dest in (("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("websocket", "websocket")):
        assert is_refused({**base, "sec-fetch-mode": mode, "sec-fetch-dest": dest}, Keys())
    assert is_refused(base, Keys())
    assert not is_refused({**base, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, Keys())
    for kind in ("same-origin", "none"):
        assert not is_refused({**base, "sec-fetch-site": kind, "sec-fetch-mode": "cors"}, Keys())


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_headers_are_survived(host: str, origin: str) -> None:
    """Whatever stands in the headers, it is let through or refused; never is another origin let through."""
    if not is_refused({"host": host, "origin": origin}) and origin:
        assert Origin.parse(origin) == Origin.parse(f"http://{host}")


def ask(house: House, method: str, path: str, headers: dict[str, str]) -> int:
    given_ = {"data": {"key": "x"}} if path.startswith("/log") else {"json": SAID} if method == "POST" else {}
    with httpx2.stream(method, house.url + path, headers=headers, **given_) as reply:
        return reply.status_code


def test_every_route_asks(tmp_path: Path) -> None:
    """A page of another port of this machine reaches nothing, and spends nothing, on a gateway without keys."""
    with opened(tmp_path, [Say("Hm.")]) as house:
        for method, path in ROUTES:
            assert ask(house, method, path, {"origin": "http://127.0.0.1:1"}) == 403, path
            assert ask(house, method, path, {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}) == 403, path
        assert house.stub.requests == []
        assert house.store.conversations.page().conversations == ()
        assert ask(house, "POST", "/v1/chat/completions", {}) == 200


def test_origins_of_the_settings(tmp_path: Path) -> None:
    """A named origin is let in, in the proxy, the API and the dashboard; a setting that is no origin says so."""
    flags = {"gateway.origins": ["https://llm.example.org/", "tauri://localhost"]}
    with opened(tmp_path / "one", [Say("Hm.")] * 2, flags=flags, keys=None) as house:
        for origin in ("https://llm.example.org", "tauri://localhost"):
            assert ask(house, "POST", "/v1/chat/completions", {"origin": origin}) == 200
            assert ask(house, "GET", "/api/conversations", {"origin": origin}) == 200
            assert ask(house, "GET", "/live?once", {"origin": origin}) == 200
        assert ask(house, "GET", "/api/conversations", {"origin": "http://llm.example.org"}) == 403
    for bad in ("llm.example.org", "*", "https://", "https://a/b"):
        with pytest.raises(ConfigError, match="origins"), opened(tmp_path / "two", flags={"gateway.origins": [bad]}):
            pass
