"""A new dialect is one object in the registry: settings, codec, errors and the whole proxy know it from there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec import structs

from leporello.dialects import DIALECTS, OPENAI_CHAT, DecodedRequest, Dialect, Target, dialect_of_path
from leporello.dialects.base import Wire
from leporello.dialects.dialect import Api, FieldNames, ItemRules
from leporello.gateway.api_errors import ApiError
from leporello.gateway.proxy.request import apply_view, output_cap, read_request, with_output_cap
from leporello.messages import Message
from leporello.providers.clients import ProviderChoice, choose_dialect
from leporello.store.records import ViewLine
from leporello.testing.stub_server import Say

from .house import opened


def encode_request(messages: Sequence[Message], tools: Sequence[Any] = (), **more: Any) -> Wire:
    """Chat Completions with other names."""
    wire = OPENAI_CHAT.encode_request(messages, tools, **more)
    return {"turns": wire.pop("messages"), **wire}


def decode_request(wire: Mapping[str, Any], provider: str = "") -> DecodedRequest:
    """The same read back."""
    fields = {"messages" if key == "turns" else key: value for key, value in wire.items()}
    return OPENAI_CHAT.decode_request(fields, provider)


def error_body(status: int, code: str | None, message: str) -> Wire:
    """An error in a shape that no other dialect has."""
    return {"problem": {"status": status, "says": message}}


def encode_items(messages: Sequence[Message], target: Target) -> list[Wire]:
    """Messages as turns."""
    return list(encode_request(messages, target=target)["turns"])


TOY = replace(
    OPENAI_CHAT,
    name="toy",
    api=Api("toy", "/v1/toys", bearer=False, headers={"toy-version": "1"}),
    fields=FieldNames("turns", ("longest",), reply="choices"),
    encode_request=encode_request,
    decode_request=decode_request,
    items=ItemRules(encode_items),
    stream=structs.replace(OPENAI_CHAT.stream, error_event=error_body, named=True),
    error_body=error_body,
)
SAID: list[Message] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Dialect:
    """The dialect, registered."""
    monkeypatch.setitem(DIALECTS, TOY.name, TOY)
    return TOY


def test_settings_and_paths_know_it(toy: Dialect) -> None:
    """It can be set as `api_mode`, and its path tells it."""
    assert choose_dialect(ProviderChoice("m", base_url="http://toys", dialect="toy"), "toys") is toy
    assert dialect_of_path("/v1/toys") is toy
    assert toy.api.key_headers("k") == {"x-api-key": "k", "toy-version": "1"}


def test_requests_and_errors(toy: Dialect) -> None:
    """The proxy reads a request, writes a fold into its list, and tells an error in its shape."""
    wire = toy.encode_request(SAID, target=Target("", "m"))
    assert wire == {"turns": SAID, "model": "m"}
    request = read_request(toy, json.dumps({**wire, "longest": 700}).encode())
    assert (request.messages, request.spans) == (tuple(SAID), ((0, 1), (1, 2)))
    fold: Message = {"role": "user", "content": "What went before."}
    seen = apply_view(request, [ViewLine(fold, fold="1"), ViewLine(SAID[1], number=2)])
    assert json.loads(seen)["turns"] == [*toy.items.encode([fold], request.target()), SAID[1]]
    assert output_cap(request.data, request, room=100).cap == 700
    assert json.loads(with_output_cap(request.data, request, 100))["longest"] == 100
    fault = ApiError(429, "busy", "Later.")
    assert json.loads(fault.body(toy)) == {"problem": {"status": 429, "says": "Later."}}
    assert fault.event(toy) == b'event: error\ndata: {"problem":{"status":429,"says":"Later."}}\n\n'


@pytest.mark.parametrize("stream", [False, True])
def test_the_gateway_serves_it(tmp_path: Path, toy: Dialect, stream: bool) -> None:
    """It has a route; requests and answers pass, and refusals have its shape."""
    body = {**toy.encode_request(SAID[:1], target=Target("", "m")), "stream": stream}
    with opened(tmp_path, [Say("Hi")]) as house:
        reply = httpx2.post(house.url + toy.api.path, json=body)
        refused = httpx2.post(house.url + toy.api.path, content=b"[")
        assert [(seen.dialect, seen.body) for seen in house.model_calls] == [(toy, body)]
    assert reply.status_code == 200
    assert "Hi" in reply.text
    assert refused.json()["problem"]["status"] == 400
