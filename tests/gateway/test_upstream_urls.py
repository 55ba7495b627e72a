"""What a client writes never chooses the path at an upstream: templates are fixed, its parts are encoded."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.dialects import ANTHROPIC
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.auth import Keys
from leporello.gateway.config import Upstream
from leporello.gateway.proxy.upstream import MODELS_PATH, upstream_socket, upstream_url

from .house import House, opened

ADMIN = {"/admin/keys": {"secret": "of the operator"}, "/v1/models/a/b": {}, "/v1/models": {"object": "list"}}
TRAVERSALS = (
    "..%2f..%2fadmin%2fkeys",
    "%2e%2e%2f%2e%2e%2fadmin%2fkeys",
    "..%5c..%5cadmin%5ckeys",
    "..%252f..%252fadmin%252fkeys",
    "x%2f..%2f..%2f..%2fadmin%2fkeys",
    "x/%2e%2e/%2e%2e/%2e%2e/admin/keys",
    "%2e%2e",
    "%2e",
    "x%00",
    "x%0d%0ahost:%20evil.example",
    "x" * 600,
)


def raw_get(house: House, path: str, headers: dict[str, str] | None = None) -> httpx2.Response:
    """A path as it stands: clients would tidy it up before they send it."""
    url = httpx2.URL(house.url).copy_with(raw_path=path.encode())
    return httpx2.get(url, headers=headers or {})


@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_other_path_of_the_upstream(tmp_path: Path, name: str) -> None:
    """The path of a model leads to that model, never up or aside, whoever asks."""
    keys, secret = Keys().add("proxy", agent=False)
    with opened(tmp_path, answers=ADMIN, keys=keys) as house:
        reply = raw_get(house, f"/v1/models/{name}", {"authorization": f"Bearer {secret}"})
        assert reply.status_code in (400, 404)
        assert "operator" not in reply.text
        assert house.stub.requests == []


@pytest.mark.parametrize("path", ["/v1/chat/completions/%2e%2e/%2e%2e/admin", "/v1/%2e%2e/admin/keys", "/v1//models"])
def test_other_paths_are_not_served(tmp_path: Path, path: str) -> None:
    """Only the paths of the three APIs exist."""
    with opened(tmp_path, answers=ADMIN) as house:
        assert raw_get(house, path).status_code in (404, 405)
        assert house.stub.requests == []


def test_a_model_is_found_under_its_name(tmp_path: Path) -> None:
    """Names with slashes, colons and marks that mean something in an address arrive as one encoded segment."""
    wanted = {"org/model:v1": "org%2Fmodel%3Av1", "what?now#here": "what%3Fnow%23here", "a b&c=d": "a%20b%26c%3Dd"}
    answers = {f"/v1/models/{sent}": {"id": name, "object": "model"} for name, sent in wanted.items()}
    with opened(tmp_path, answers=answers) as house:
        with openai.OpenAI(base_url=house.url + "/v1", api_key="x") as client:
            for name in wanted:
                assert client.models.retrieve(name).id == name
        assert [seen.path for seen in house.stub.requests] == list(answers)


@given(
    st.text(max_size=60), st.binary(max_size=60), st.sampled_from(["http://up", "https://up:9/api/v1", "http://u/v1"])
)
def test_any_name_stays_one_segment(name: str, query: bytes, base: str) -> None:
    """Whatever the name and the query are, address and path stay what the template says, or it is refused."""
    fixed = upstream_url(Upstream("u", base), MODELS_PATH)
    try:
        made = upstream_url(Upstream("u", base), MODELS_PATH, query, name)
    except RequestRefused:
        return
    assert made.origin() == fixed.origin()
    assert made.raw_fragment == ""
    path = made.raw_path.removeprefix(fixed.raw_path)
    assert path.count("/") == (1 if name else 0)
    assert path not in ("/.", "/..")
    assert str(made).isascii()
    assert not any(mark.isspace() for mark in str(made))


def test_the_query_goes_along() -> None:
    """A query arrives as it was sent; what can't stand in one is encoded."""
    upstream = Upstream("u", "http://up/v1")
    plain = upstream_url(upstream, ANTHROPIC.api.path, b"beta=true&x=%2F&flag")
    assert str(plain) == "http://up/v1/messages?beta=true&x=%2F&flag"
    odd = upstream_url(upstream, ANTHROPIC.api.path, b"x=#\r\n\xff /../")
    assert str(odd) == "http://up/v1/messages?x=%23%0D%0A%FF%20/../"


def test_the_system_is_asked_to_notice_that_the_line_to_an_upstream_is_dead() -> None:
    """Packets that are dropped end a call long before the patience with a model that thinks does."""
    with upstream_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 9))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
