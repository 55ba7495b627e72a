"""Who may use the gateway, and how much: keys, the loopback rule, limits, caps, browsers, nothing leaked."""

from __future__ import annotations

import gzip
import json
import socket
import stat
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import ConfigError
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.auth import Client, Key, Keys, check_address, identify
from leporello.gateway.limits import Gate, unpack
from leporello.testing.stub_server import Say
from tests.conftest import RunCli

from .house import House, opened

SAID = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}


def post(house: House, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
    given_ = more or {"json": SAID}
    return httpx2.post(house.url + "/v1/chat/completions", headers=headers or {}, **given_)


def test_keys_are_stored_as_hashes(tmp_path: Path) -> None:
    """The file holds no key, only its owner may read it, and what is read back knows the key."""
    keys, secret = Keys().add("laptop", agent=False)
    keys.save(tmp_path)
    path = tmp_path / "gateway-keys.json"
    assert secret not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    read = Keys.load(tmp_path)
    found = read.find(secret)
    assert found is not None
    assert (found.name, found.agent) == ("laptop", False)
    assert read.find(secret + "x") is None
    assert not read.remove("laptop")
    with pytest.raises(ConfigError, match="already"):
        read.add("laptop")


def test_keys_at_the_command_line(run_cli: RunCli) -> None:
    """A key is made, shown once, listed by name and removed."""
    made = run_cli("serve", "--add-key", "laptop")
    assert made.out.startswith("lep-")
    assert run_cli("serve", "--list-keys").out == "laptop\n"
    assert run_cli("serve", "--remove-key", "laptop").code == 0
    assert run_cli("serve", "--list-keys").out == ""


def test_a_removed_key_opens_nothing_any_more(tmp_path: Path) -> None:
    """At once, in a server that runs; without its last key that server is closed, not open."""
    home = tmp_path / "home"
    keys, first = Keys().add("first")
    keys, last = keys.add("last")
    keys.save(home)
    with opened(tmp_path, [Say("hi")] * 4, keys=Keys.load(home)) as house:
        told = []
        for kept in (keys, keys.remove("first"), Keys()):
            kept.save(home)
            told.append([post(house, {"authorization": f"Bearer {key}"}).status_code for key in (first, last, "x")])
        assert told == [[200, 200, 401], [401, 200, 401], [401, 401, 401]]


@pytest.mark.parametrize("name", ["", " ", " alice", "a\nb", "a\x1b[31m"])
def test_a_key_has_a_name_that_can_be_told(run_cli: RunCli, name: str) -> None:
    """Nothing is served instead, and nobody takes it for another's."""
    refused = run_cli("serve", "--add-key", name)
    assert refused.code != 0
    assert "name" in refused.err
    assert not run_cli("serve", "--list-keys").out


def test_only_this_machine_without_a_key(run_cli: RunCli) -> None:
    """Without a key the server refuses to be reachable from elsewhere, and says what to do."""
    refused = run_cli("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2
    assert "--add-key" in refused.err
    for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        check_address(host, Keys())
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.com"):
        with pytest.raises(ConfigError):
            check_address(host, Keys())
    check_address("0.0.0.0", Keys().add("x")[0])


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_listens_without_a_store(run_cli: RunCli, tmp_path: Path, workers: int) -> None:
    """A store that can't be opened is an error before the server says that it listens."""
    (tmp_path / "a.db").write_text("This is no database. " * 100)
    refused = run_cli("serve", "--port", "0", "--workers", workers, "--store", f"sqlite:///{tmp_path}/a.db")
    assert refused.code != 0
    assert "a.db" in refused.err
    assert "listens on http" not in refused.err


def test_a_key_is_wanted(tmp_path: Path) -> None:
    """With keys set, every path but the health checks wants one; the client's own key can go along for the provider."""
    keys, secret = Keys().add("laptop")
    with opened(tmp_path, [Say("Hm.")] * 3, keys=keys) as house:
        for headers in ({}, {"authorization": "Bearer lep-wrong"}, {"x-api-key": "sk-123"}):
            reply = post(house, headers)
            assert reply.status_code == 401
            assert "lep-" not in reply.text
        assert httpx2.get(house.url + "/metrics").status_code == 401
        assert httpx2.get(house.url + "/api/conversations").status_code == 401
        assert httpx2.get(house.url + "/healthz").status_code == 200
        assert post(house, {"authorization": f"Bearer {secret}"}).status_code == 200
        assert post(house, {"x-api-key": secret}).status_code == 200
        assert all("authorization" not in seen.headers for seen in house.model_calls)
        both = {"x-leporello-key": secret, "authorization": "Bearer sk-own"}
        assert post(house, both).status_code == 200
        assert house.model_calls[-1].headers["authorization"] == "Bearer sk-own"
        assert secret not in json.dumps([dict(seen.headers) for seen in house.stub.requests])


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_header_is_survived(bearer: str, named: str) -> None:
    """Whatever stands in the key headers, it is a client or a refusal."""
    headers = {"authorization": f"Bearer {bearer}", "x-api-key": named}
    assert isinstance(identify(headers, Keys()), Client)
    with pytest.raises(RequestRefused):
        identify(headers, Keys([Key("a", "0" * 64)]))


def test_rate_and_streams() -> None:
    """So many requests a minute and so many at once for each key, whatever the others do."""
    now = [0.0]
    gate = Gate(3, 2, lambda: now[0])
    one, other = Client(Key("a", ""), "a"), Client(Key("b", "", rate=100, streams=9), "b")

    def code(client: Client) -> str:
        try:
            with gate.passing(client):
                return "passed"
        except RequestRefused as refused:
            return refused.error.code

    assert [code(one) for _ in range(4)] == ["passed"] * 3 + ["rate_limit_exceeded"]
    assert [code(other) for _ in range(50)] == ["passed"] * 50
    now[0] = 20.0
    assert [code(one), code(one)] == ["passed", "rate_limit_exceeded"]
    now[0] = 500.0
    with gate.passing(one), gate.passing(one):
        assert code(one) == "too_many_streams"
    assert code(one) == "passed"


def test_limits_over_http(tmp_path: Path) -> None:
    """Limits are answered as the provider would answer them."""
    with opened(tmp_path, [Say("Hm.")] * 2, flags={"gateway.rate": 2, "gateway.max_body": 5_000}) as house:
        assert post(house, content=b"x" * 6_000).status_code == 413
        assert post(house).status_code == 200
        reply = post(house)
        assert reply.status_code == 429
        assert int(reply.headers["retry-after"]) >= 1
        assert reply.json()["error"]["code"] == "rate_limit_exceeded"


PACKERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("encoding", PACKERS)
def test_packed_bodies(tmp_path: Path, encoding: str) -> None:
    """Packed requests are read; a small one that unpacks to a huge one is refused without being unpacked whole."""
    pack = PACKERS[encoding]
    with opened(tmp_path, [Say("Hm.")], flags={"gateway.max_body": 50_000}) as house:
        data = json.dumps(SAID).encode()
        assert post(house, {"content-encoding": encoding}, content=pack(data)).status_code == 200
        assert house.model_calls[0].raw == data
        assert post(house, {"content-encoding": encoding}, content=pack(b"a" * 10_000_000)).status_code == 413
        for bad in (b"garbage", pack(data)[:-5]):
            assert post(house, {"content-encoding": encoding}, content=bad).status_code == 400
        assert post(house, {"content-encoding": "br"}, content=data).status_code == 415


@given(st.binary(max_size=200), st.sampled_from(sorted(PACKERS)))
def test_unpacking_is_bounded(data: bytes, encoding: str) -> None:
    """Unpacking gives the data back, refuses, or fails as a refusal; never more than the cap."""
    assert unpack(PACKERS[encoding](data), encoding, 1_000) == data
    with suppress(RequestRefused):
        assert len(unpack(data, encoding, 50)) <= 50


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/conversations"])
def test_of_two_keys_none_counts(tmp_path: Path, path: str) -> None:
    """A proxy in front may have looked at the other one."""
    keys, secret = Keys().add("laptop")
    with opened(tmp_path, keys=keys) as house:
        for order in (["lep-wrong", secret], [secret, "lep-wrong"]):
            headers = [("authorization", f"Bearer {key}") for key in order]
            answer = httpx2.post(house.url + path, headers=headers, json={})
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "duplicate_header")


def test_a_body_that_is_announced_too_large_is_not_waited_for(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        host, port = house.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as client:
            client.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n{"
            )
            assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_nothing_leaks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Logs and errors hold no content, no key and no path of the machine."""
    with opened(tmp_path, [Say("Secret answer 4711")]) as house, caplog.at_level("INFO", "leporello.gateway"):
        said = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Secret question 4711"}]}
        post(house, {"authorization": "Bearer sk-secret-4711"}, json=said)
        wrong = httpx2.get(house.url + "/v1/../../etc/passwd")
        missing = httpx2.get(house.url + "/nothing/here")
        broken = post(house, content=b"{")
        assert {wrong.status_code, missing.status_code} == {404}
        assert broken.status_code == 400
        for reply in (wrong, missing, broken):
            assert str(tmp_path) not in reply.text
            assert "Traceback" not in reply.text
    assert "/v1/chat/completions" in caplog.text
    assert "4711" not in caplog.text
