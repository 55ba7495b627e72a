"""`scripted:demo` through the proxy: the gateway can be tried without a key, on the way that every request takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from .house import House, opened, recorded

MODEL = "scripted:demo"
SAID: Any = [{"role": "user", "content": "Hello there"}]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path, flags={"gateway.upstreams": {}}) as house:
        yield house


def test_every_dialect_is_answered_whole_and_streamed(house: House) -> None:
    client = openai.OpenAI(base_url=house.url + "/v1", api_key="none")
    other = anthropic.Anthropic(base_url=house.url, api_key="none")
    chat = client.chat.completions.create(model=MODEL, messages=SAID)
    expected = (chat.choices[0].message.content or "").rstrip()
    assert "scripted" in expected
    assert chat.usage is not None
    assert chat.usage.prompt_tokens > 0
    chunks: Any = client.chat.completions.create(model=MODEL, messages=SAID, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices).rstrip() == expected
    assert client.responses.create(model=MODEL, input="Hello there", store=False).output_text.rstrip() == expected
    with client.responses.stream(model=MODEL, input="Hello there", store=False) as stream:
        assert stream.get_final_response().output_text.rstrip() == expected
    message: dict[str, Any] = {"model": MODEL, "max_tokens": 4_000, "messages": SAID}
    assert other.messages.create(**message).content[0].text == expected
    with other.messages.stream(**message) as answer:
        assert answer.get_final_text() == expected
    assert other.messages.count_tokens(model=MODEL, messages=SAID).input_tokens > 0


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("fields", [{}, {"messages": []}, {"messages": "hi"}], ids=["missing", "empty", "a text"])
def test_a_request_without_messages_is_the_clients_mistake(house: House, path: str, fields: dict[str, Any]) -> None:
    reply = httpx2.post(house.url + path, json={"model": MODEL, **fields}, timeout=60)
    assert reply.status_code == 400, reply.text
    assert "no messages" in reply.json()["error"]["message"]


def test_a_model_nobody_serves_is_refused_with_one_that_is(house: House) -> None:
    refused = httpx2.post(house.url + "/api/conversations", json={"model": "nope"}, timeout=60)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "No model 'nope' is served here. There are: scripted:demo."


def test_a_long_conversation_is_folded_and_stored(house: House) -> None:
    said = [{"role": "user", "content": "Count the files."}]
    for number in range(120):
        said.append({"role": "assistant", "content": f"Step {number}: " + "looking at the next folder. " * 40})
        said.append({"role": "user", "content": f"Go on with folder {number}. " + "It holds many files. " * 40})
    reply = httpx2.post(house.url + "/v1/chat/completions", json={"model": MODEL, "messages": said}, timeout=60)
    assert reply.status_code == 200, reply.text
    assert reply.headers["x-leporello"] == "folded"
    assert reply.json()["usage"]["prompt_tokens"] < 16_000
    conversation = reply.headers["x-leporello-conversation"]
    assert recorded(house, conversation, 1).calls == 1
    (stored,) = house.store.conversations.page().conversations
    assert (stored.id, stored.messages) == (conversation, len(said))


def test_another_scripted_model_is_refused_by_name(house: House) -> None:
    reply = httpx2.post(house.url + "/v1/chat/completions", json={"model": "scripted:x", "messages": SAID})
    assert reply.status_code == 404
    assert "There is one: scripted:demo" in reply.json()["error"]["message"]


def test_a_tool_is_called_when_the_client_offers_it(house: House) -> None:
    parameters = {"type": "object", "properties": {"command": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "terminal", "parameters": parameters}}
    body = {"model": MODEL, "messages": [{"role": "user", "content": "list the folder"}]}
    post = house.url + "/v1/chat/completions"
    assert "tool_calls" not in httpx2.post(post, json=body).json()["choices"][0]["message"]
    choice = httpx2.post(post, json={**body, "tools": [tool]}).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "terminal"


def test_an_upstream_that_can_not_be_reached_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, upstream="http://127.0.0.1:9") as house:
        reply = httpx2.post(house.url + "/v1/chat/completions", json={"model": "gpt-4o", "messages": SAID})
    assert reply.status_code == 502
    assert reply.json()["error"]["message"] == "The model's server (upstream stub) can't be reached."


def test_a_gateway_that_serves_no_demo_loads_no_web_server() -> None:
    code = "import sys, leporello.gateway.server; sys.exit('aiohttp.web' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
