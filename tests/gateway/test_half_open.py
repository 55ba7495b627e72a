"""Clients that hold connections open: heads and bodies have deadlines, addresses a number of connections."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.types import Message

from leporello.errors import ConfigError
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.auth import Keys
from leporello.gateway.limits import SLOWEST, ConnectionLimits, client_address, read_body
from leporello.testing.stub_server import Hold, Say

from .house import House, opened

SAID = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}).encode()
SHORT = 0.2
"""For what never comes."""
ENOUGH = 1.5
"""For what comes at once, before something that never comes."""
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


@contextmanager
def connected(house: House) -> Iterator[socket.socket]:
    host, port = house.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        yield line


def until_closed(line: socket.socket) -> bytes:
    """Everything the server sends until it closes."""
    found = b""
    try:
        while piece := line.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# -- heads


@pytest.mark.parametrize(
    "begun", [b"GET", b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ", b"POST /api/conv"]
)
def test_a_head_that_never_ends(tmp_path: Path, begun: bytes) -> None:
    """Half a head is answered and the connection closed."""
    with opened(tmp_path, flags={"gateway.head_timeout": SHORT}) as house, connected(house) as line:
        line.sendall(begun)
        answer = until_closed(line)
        assert status(answer) == 408
        assert b'"request_timeout"' in answer


@pytest.mark.parametrize("begun", [b"", b"\r\n"])
def test_a_connection_without_a_request(tmp_path: Path, begun: bytes) -> None:
    """Who connects and says nothing is closed without a word."""
    with opened(tmp_path, flags={"gateway.head_timeout": SHORT}) as house, connected(house) as line:
        line.sendall(begun)
        assert until_closed(line) == b""


def test_a_head_that_trickles(tmp_path: Path) -> None:
    """Byte after byte does not move the deadline, nor do blank lines between two requests."""
    with opened(tmp_path, flags={"gateway.head_timeout": ENOUGH}) as house:
        with connected(house) as line:
            stop = trickle(line, b"GET / HTTP/1.1\r\n", b"x")
            assert status(until_closed(line)) == 408
            stop.set()
        with connected(house) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert b"200 OK" in line.recv(65536)
            stop = trickle(line, b"", b"\r\n")
            assert until_closed(line) == b""
            stop.set()


def trickle(line: socket.socket, first: bytes, again: bytes) -> threading.Event:
    """Sends a little for ever, beside the test, until it is told to stop or the other side closed."""
    stop = threading.Event()

    def send() -> None:
        try:
            line.sendall(first)
            while not stop.wait(0.02):
                line.sendall(again)
        except OSError:
            return

    threading.Thread(target=send, daemon=True).start()
    return stop


def test_a_second_head_on_the_same_connection(tmp_path: Path) -> None:
    """The deadline holds for every request of a connection."""
    with opened(tmp_path, flags={"gateway.head_timeout": ENOUGH}) as house, connected(house) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert b"200 OK" in line.recv(65536)
        line.sendall(b"GET /healthz HT")
        assert status(until_closed(line)) == 408


def test_a_head_without_end_in_size(tmp_path: Path) -> None:
    """A head is not collected beyond its largest size."""
    with opened(tmp_path) as house, connected(house) as line:
        stop = trickle(line, b"GET / HTTP/1.1\r\n", b"x: " + b"y" * 20_000 + b"\r\n")
        assert status(until_closed(line)) == 431
        stop.set()


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000, b"GET /" + b"y" * 60_000 + b" HTTP/1.1\r\nx: " + b"y" * 9_000]
)
def test_a_head_that_comes_in_one_piece_has_the_same_largest_size(tmp_path: Path, head: bytes) -> None:
    with opened(tmp_path) as house, connected(house) as line:
        line.sendall(head + b"\r\n\r\n")
        assert status(until_closed(line)) == 431


def test_what_is_no_http_is_refused_in_the_shape_of_the_api(tmp_path: Path) -> None:
    with opened(tmp_path) as house, connected(house) as line:
        line.sendall(b"POST / HTTP/1.1\r\ncontent-length: -5\r\n\r\n")
        answer = until_closed(line)
        assert status(answer) == 400
        assert b'"invalid_request_error"' in answer


# -- bodies


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/chat/completions", JSON),
        ("/v1/messages/count_tokens", JSON),
        ("/api/conversations", JSON),
        ("/login", FORM),
        ("/logout", FORM),
    ],
)
def test_a_body_that_never_comes(tmp_path: Path, path: str, kind: str) -> None:
    """Wherever a body is read, half of it is answered and the connection closed."""
    with opened(tmp_path, flags={"gateway.body_timeout": SHORT}) as house, connected(house) as line:
        host = house.url.removeprefix("http://")
        head = f"POST {path} HTTP/1.1\r\nhost: {host}\r\norigin: {house.url}\r\ncontent-type: {kind}\r\n"
        line.sendall(head.encode() + b"content-length: 100\r\n\r\n{")
        assert status(until_closed(line)) == 408
        assert house.stub.requests == []


@pytest.mark.parametrize(("method", "path"), [("POST", "/nothing"), ("GET", "/healthz"), ("GET", "/v1/models")])
def test_a_body_that_nobody_reads(tmp_path: Path, method: str, path: str) -> None:
    """A body that goes on after the answer ends with the connection, also when it trickles."""
    answers = {"/v1/models": {"object": "list"}}
    with opened(tmp_path, answers=answers, flags={"gateway.head_timeout": ENOUGH}) as house, connected(house) as line:
        stop = trickle(
            line, f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99999\r\n\r\n".encode(), b"x"
        )
        assert status(until_closed(line)) in (200, 404)
        stop.set()


class Upload:
    """A body that comes in pieces of one size, each after so many seconds of a clock that only it moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pieces: int, size: int, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time()
        self._left, self._size, self._seconds = pieces, size, seconds
        monkeypatch.setattr(self._loop, "time", lambda: self._now)

    async def receive(self) -> Message:
        self._now += self._seconds
        self._left -= 1
        for _ in range(3):
            await asyncio.sleep(0)
        return {"type": "http.request", "body": b"x" * self._size, "more_body": self._left > 0}


async def test_a_slow_upload_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload may take many times the deadline as long as it goes on."""
    upload = Upload(monkeypatch, pieces=30, size=50 * SLOWEST, seconds=50)
    assert len(await read_body(upload.receive, 10**9, 60)) == 30 * 50 * SLOWEST


@pytest.mark.parametrize(("size", "seconds"), [(1, 50), (10**6, 61), (30 * SLOWEST, 55)])
async def test_a_body_that_stalls_or_trickles(monkeypatch: pytest.MonkeyPatch, size: int, seconds: float) -> None:
    """A client can't hold a request open in silence, nor with a byte now and then."""
    upload = Upload(monkeypatch, 30, size, seconds)
    with pytest.raises(RequestRefused) as refused:
        await read_body(upload.receive, 10**9, 60)
    assert refused.value.error.status == 408


def test_a_long_answer_is_not_cut(tmp_path: Path) -> None:
    """Deadlines of requests don't end an answer that takes longer than all of them."""
    release = threading.Event()
    flags = {"gateway.body_timeout": ENOUGH, "gateway.head_timeout": ENOUGH}
    with opened(tmp_path, [Hold(Say("word " * 50), release, after=5)], flags=flags) as house:
        said = {**json.loads(SAID), "stream": True}
        with httpx2.stream("POST", house.url + "/v1/chat/completions", json=said) as reply:
            pieces = reply.iter_text()
            text = next(pieces)
            with connected(house) as later:
                # It began after the answer, so the answer is older than the deadline when this is closed.
                until_closed(later)
            release.set()
            text += "".join(pieces)
        assert text.rstrip().endswith("[DONE]")


def test_an_answer_that_nobody_reads(tmp_path: Path) -> None:
    """A client that does not read its answer loses the connection, and its place is free."""
    answers = {"/v1/models": {"object": "list", "data": ["x" * 1_000] * 30_000}}
    flags = {"gateway.idle_timeout": ENOUGH, "gateway.connections": 1}
    with opened(tmp_path, answers=answers, flags=flags) as house, connected(house) as line:
        line.sendall(b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        while (reply := httpx2.get(house.url + "/healthz")).status_code == 429:
            threading.Event().wait(0.05)
        assert reply.status_code == 200


# -- connections


def test_connections_of_one_address(tmp_path: Path) -> None:
    """An address has so many connections; the next is told so, and finds a place when one is closed."""
    with opened(tmp_path, flags={"gateway.connections": 3}) as house, ExitStack() as held:
        lines = [held.enter_context(connected(house)) for _ in range(3)]
        for line in lines:
            line.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert b"200 OK" in line.recv(65536)
        reply = httpx2.post(house.url + "/v1/chat/completions", content=SAID * 2_000)
        assert reply.status_code == 429
        assert reply.json()["error"]["code"] == "too_many_connections"
        assert int(reply.headers["retry-after"]) >= 1
        with connected(house) as silent:
            assert until_closed(silent) == b""
        lines[0].close()
        while httpx2.get(house.url + "/healthz").status_code == 429:
            threading.Event().wait(0.02)
        assert httpx2.get(house.url + "/healthz").status_code == 200


def test_half_open_connections_give_their_place_back(tmp_path: Path) -> None:
    """Connections that never ask for anything don't lock out those that do."""
    flags = {"gateway.connections": 3, "gateway.head_timeout": ENOUGH}
    with opened(tmp_path, flags=flags) as house, ExitStack() as held:
        for _ in range(3):
            held.enter_context(connected(house)).sendall(b"GET")
        while httpx2.get(house.url + "/healthz").status_code == 429:
            threading.Event().wait(0.02)
        assert httpx2.get(house.url + "/healthz").status_code == 200


def test_clients_behind_a_trusted_proxy(tmp_path: Path) -> None:
    """A trusted proxy has as many connections as it needs; its clients are told apart by the address it names."""
    release = threading.Event()
    flags: dict[str, Any] = {"gateway.connections": 1, "gateway.proxies": ["127.0.0.0/8"]}
    with opened(tmp_path, [Hold(Say("word " * 50), release, after=5)], flags=flags) as house:
        said = {**json.loads(SAID), "stream": True}
        ada, bob = {"x-forwarded-for": "203.0.113.1"}, {"x-forwarded-for": "198.51.100.9, 203.0.113.2"}
        with httpx2.stream("POST", house.url + "/v1/chat/completions", json=said, headers=ada) as reply:
            pieces = reply.iter_bytes()
            next(pieces)
            assert httpx2.get(house.url + "/healthz", headers=ada).status_code == 429
            assert httpx2.get(house.url + "/healthz", headers=bob).status_code == 200
            release.set()
            assert b"[DONE]" in b"".join(pieces)
        while httpx2.get(house.url + "/healthz", headers=ada).status_code == 429:
            threading.Event().wait(0.02)


def test_wrong_keys_behind_a_proxy(tmp_path: Path) -> None:
    """Who tries keys behind a trusted proxy locks out themselves, and can't pass for others without one."""
    keys = Keys().add("ada")[0]

    def codes(house: House) -> list[int]:
        headers = {"origin": house.url}
        return [
            httpx2.post(
                f"{house.url}/login", headers={**headers, "x-forwarded-for": f"203.0.113.{n // 11}"}, data={"key": "x"}
            ).status_code
            for n in range(12)
        ]

    with opened(tmp_path / "one", keys=keys, flags={"gateway.proxies": ["127.0.0.1"]}) as house:
        assert codes(house) == [401] * 10 + [429, 401]
    with opened(tmp_path / "two", keys=keys) as house:
        assert codes(house) == [401] * 10 + [429, 429]


def test_a_setting_that_is_no_address(tmp_path: Path) -> None:
    """A proxy that is no address is an error that names the setting."""
    with pytest.raises(ConfigError, match=r"gateway\.proxies"), opened(tmp_path, flags={"gateway.proxies": ["caddy"]}):
        pass


def test_counting_connections() -> None:
    """Each address for itself, all together within the total, floods without an answer, nothing is kept at the end."""
    limits = ConnectionLimits(2, (ip_network("10.0.0.0/8"),), 6)

    def statuses(host: str, times: int, others: int = 0) -> list[int]:
        return [fault.status if (fault := limits.admit(host, others)) else 200 for _ in range(times)]

    assert statuses("192.0.2.1", 3) == [200, 200, 429]
    assert statuses("192.0.2.2", 1) == [200]
    assert statuses("10.1.1.1", 5) == [200] * 5
    assert statuses("192.0.2.3", 1, others=6) == [503]
    assert not limits.is_flood("192.0.2.1")
    statuses("192.0.2.1", 2)
    assert limits.is_flood("192.0.2.1")
    assert statuses("2001:db8::1", 1) + statuses("2001:db8::2", 2) == [200, 200, 429]
    assert statuses("2001:db8:0:1::1", 1) == [200]
    limits.leave("192.0.2.1", refused=False)
    assert statuses("192.0.2.1", 2) == [200, 429]


def test_what_counts_as_one_address() -> None:
    """An IPv6 client has a whole network of addresses; an IPv4 address is one, however it is written."""
    assert client_address("192.0.2.1") == client_address("::ffff:192.0.2.1") == "192.0.2.1"
    assert client_address("2001:db8:1:2:3::4") == client_address("2001:db8:1:2::")
    assert client_address("2001:db8:1:2::") != client_address("2001:db8:1:3::")
    assert client_address("::1") == "::1"
    assert client_address("somewhere") == "somewhere"
