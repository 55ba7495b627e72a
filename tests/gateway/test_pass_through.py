"""What is small passes as it came, through the official clients, in every dialect."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from leporello.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from leporello.testing.sessions.runs import screenshot
from leporello.testing.stub_server import Fail, Say
from tests.support.strict_server import strict_server

from .clerks import anthropic_client as claude
from .clerks import openai_client as chat
from .house import opened

TOOL = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CHAT_TOOLS: Any = [{"type": "function", "function": {"name": "read", "description": "Read", "parameters": TOOL}}]
RESPONSES_TOOLS: Any = [
    {"type": "function", "name": "read", "description": "Read", "parameters": TOOL, "strict": False}
]
ANTHROPIC_TOOLS: Any = [{"name": "read", "description": "Read", "input_schema": TOOL}]
TWO_CALLS = Say("Looking.", calls=(("read", '{"path": "a"}'), ("read", '{"path": "b"}')))
PICTURE = screenshot(Random(3))
PATHS = {
    OPENAI_CHAT: "/v1/chat/completions",
    OPENAI_RESPONSES: "/v1/responses",
    ANTHROPIC: "/v1/messages",
}


def both(folder: Path, script: list[Any], ask: Any) -> tuple[Any, Any]:
    """What a client gets from the server itself, and what it gets through the gateway."""
    with strict_server(list(script)) as stub:
        plain = ask(stub.url)
    with opened(folder, list(script)) as house:
        through = ask(house.url)
        assert [seen.violations for seen in house.model_calls] == [()] * len(house.model_calls)
        return plain, through


def test_chat_is_the_same(tmp_path: Path) -> None:
    """Words, parallel calls and pictures over Chat Completions: the same answers as from the server itself."""

    def ask(url: str) -> list[Any]:
        client = chat(url)
        messages: list[Any] = [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "image_url", "image_url": {"url": PICTURE}},
                ],
            }
        ]
        first = client.chat.completions.create(model="gpt-4o", messages=messages, tools=CHAT_TOOLS)
        messages.append(first.choices[0].message.model_dump(exclude_none=True))
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": "text"} for call in first.choices[0].message.tool_calls
        ]
        streamed = client.chat.completions.create(
            model="gpt-4o", messages=messages, tools=CHAT_TOOLS, stream=True, stream_options={"include_usage": True}
        )
        return [first.model_dump(), [chunk.model_dump() for chunk in streamed]]

    plain, through = both(tmp_path, [TWO_CALLS, Say("Done.")], ask)
    assert through == plain


def test_responses_are_the_same(tmp_path: Path) -> None:
    """The same over the Responses API."""

    def ask(url: str) -> list[Any]:
        client = chat(url)
        items: list[Any] = [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look"},
                    {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
                ],
            }
        ]
        first = client.responses.create(model="gpt-4o", input=items, tools=RESPONSES_TOOLS, store=False)
        items += [item.model_dump(exclude_none=True, exclude={"id", "status"}) for item in first.output]
        items += [
            {"type": "function_call_output", "call_id": item.call_id, "output": "text"}
            for item in first.output
            if item.type == "function_call"
        ]
        with client.responses.stream(model="gpt-4o", input=items, tools=RESPONSES_TOOLS) as stream:
            events = [event.model_dump(warnings=False) for event in stream]
        return [first.model_dump(), events]

    plain, through = both(tmp_path, [TWO_CALLS, Say("Done.")], ask)
    assert through == plain


def test_messages_are_the_same(tmp_path: Path) -> None:
    """The same over Anthropic Messages, with signed thinking."""
    thought = {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}],
    }

    def ask(url: str) -> list[Any]:
        client = claude(url)
        picture = {"type": "base64", "media_type": "image/png", "data": PICTURE.partition(",")[2]}
        messages: list[Any] = [
            {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image", "source": picture}]}
        ]
        first = client.messages.create(
            model="claude-sonnet-5", max_tokens=100, messages=messages, tools=ANTHROPIC_TOOLS
        )
        messages.append({"role": "assistant", "content": [block.model_dump() for block in first.content]})
        for block in messages[-1]["content"]:
            for key in [key for key, value in block.items() if value is None]:
                del block[key]
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "text"}
            for block in first.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results})
        with client.messages.stream(
            model="claude-sonnet-5", max_tokens=100, messages=messages, tools=ANTHROPIC_TOOLS
        ) as stream:
            events = [event.model_dump(warnings=False) for event in stream]
        return [first.model_dump(), events]

    plain, through = both(tmp_path, [Say(message=thought), Say("Done.")], ask)
    assert through == plain


async def test_async_clients(tmp_path: Path) -> None:
    """The asynchronous clients, many at once: each gets its own answer."""

    def parrot(seen: Any) -> Say:
        return Say(f"You said {seen.body['messages'][-1]['content']}")

    with opened(tmp_path, [parrot] * 24) as house:
        first = openai.AsyncOpenAI(base_url=house.url + "/v1", api_key="a", max_retries=0)
        second = anthropic.AsyncAnthropic(base_url=house.url, api_key="b", max_retries=0)

        async def one(number: int) -> str:
            said: list[Any] = [{"role": "user", "content": f"word {number}"}]
            if number % 2:
                text = ""
                async for chunk in await first.chat.completions.create(model="gpt-4o", messages=said, stream=True):
                    text += chunk.choices[0].delta.content or "" if chunk.choices else ""
                return text
            reply = await second.messages.create(model="claude-sonnet-5", max_tokens=9, messages=said)
            return reply.content[0].text

        answers = await asyncio.gather(*(one(number) for number in range(24)))
        assert answers == [f"You said word {number}" for number in range(24)]
        await first.close()
        await second.close()


ODD = (
    b'{ "model":"gpt-4o",\n\t"messages" : [ {"role": "user" , "content":"caf\\u00e9 \\ud83d\\ude00 \xc3\xa9"} ],'
    b' "temperature": 1.0, "seed": 12345678901234567890123 }'
)


@pytest.mark.parametrize("dialect", PATHS)
def test_small_requests_are_not_touched(tmp_path: Path, dialect: Dialect) -> None:
    """The very bytes of the client reach the server, and a header says that nothing was done."""
    body = ODD.replace(b'"messages"', b'"input"') if dialect is OPENAI_RESPONSES else ODD
    with opened(tmp_path, [Say("Hm.")]) as house:
        reply = httpx2.post(house.url + PATHS[dialect] + "?beta=true", content=body)
        assert house.stub.requests[0].raw == body
        assert reply.headers["x-leporello"] == "passed"
        assert reply.headers["x-leporello-conversation"].startswith("gw-")


def test_headers_and_keys(tmp_path: Path) -> None:
    """The key and headers of the API go on; cookies, addresses and our own headers don't, nor do they return."""
    with opened(
        tmp_path, [Fail(418, {"error": {"message": "no"}}, {"set-cookie": "a=b", "x-request-id": "r1"})]
    ) as house:
        given = {
            "authorization": "Bearer sk-client",
            "anthropic-beta": "x",
            "cookie": "c=1",
            "x-forwarded-for": "1.2.3.4",
            "cf-connecting-ip": "1.2.3.4",
            "true-client-ip": "1.2.3.4",
            "connection": "keep-alive, X-Between-Us",
            "x-between-us": "1",
            "x-leporello-conversation": "mine",
        }
        said = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
        reply = httpx2.post(house.url + "/v1/chat/completions", json=said, headers=given)
        seen = house.stub.requests[0].headers
        assert seen["authorization"] == "Bearer sk-client"
        assert seen["anthropic-beta"] == "x"
        assert not {"cookie", "x-forwarded-for", "x-leporello-conversation"} & set(seen)
        assert not {"cf-connecting-ip", "true-client-ip", "x-between-us"} & set(seen)
        assert reply.status_code == 418
        assert reply.headers["x-request-id"] == "r1"
        assert not {"set-cookie", "server"} & set(reply.headers)


def test_provider_errors_pass(tmp_path: Path) -> None:
    """A refusal that is not about size reaches the client as the provider wrote it, and its library knows it."""
    body = {"error": {"message": "Too many", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}
    with (
        opened(tmp_path, [Fail(429, body, {"retry-after": "7"})]) as house,
        pytest.raises(openai.RateLimitError) as info,
    ):
        chat(house.url).chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello"}])
    assert info.value.body == body["error"]
    assert info.value.response.headers["retry-after"] == "7"


def test_state_at_the_provider(tmp_path: Path) -> None:
    """Requests that continue a response the provider keeps pass as they came, and a header says so."""
    with opened(tmp_path, [Say("Hm.")]) as house:
        said = {"model": "gpt-4o", "previous_response_id": "resp_1", "input": [{"role": "user", "content": "Go on"}]}
        reply = httpx2.post(house.url + "/v1/responses", json=said)
        assert house.stub.requests[0].body == said
        assert reply.headers["x-leporello"] == "stateful"
        assert house.store.conversations.page().conversations == ()


def test_models_and_counting(tmp_path: Path) -> None:
    """The list of models and the count of tokens come from the upstream."""
    answers = {
        "/v1/models": {"object": "list", "data": [{"id": "m", "object": "model", "created": 0, "owned_by": "x"}]},
        "/v1/messages/count_tokens": {"input_tokens": 12},
    }
    with opened(tmp_path, answers=answers) as house:
        assert [model.id for model in chat(house.url).models.list()] == ["m"]
        counted = claude(house.url).messages.count_tokens(
            model="claude-sonnet-5", messages=[{"role": "user", "content": "Hello"}]
        )
        assert counted.input_tokens == 12


def test_care_pages(tmp_path: Path) -> None:
    """Health, readiness and metrics answer; metrics count what was served."""
    with opened(tmp_path, [Say("Hm.")]) as house:
        assert httpx2.get(house.url + "/healthz").json() == {"status": "ok"}
        assert httpx2.get(house.url + "/readyz").json()["status"] == "ok"
        chat(house.url).chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello"}])
        page = httpx2.get(house.url + "/metrics").text
        line = 'leporello_requests_total{done="passed",route="/v1/chat/completions",status="200"} 1.0'
        assert line in page
        assert json.dumps("Hello") not in page


def test_usage_is_recorded(tmp_path: Path) -> None:
    """What the provider counted is added to the conversation, streamed or not."""
    with opened(tmp_path, [Say("One."), Say("Two."), Say("Three.")]) as house:
        said: list[Any] = [{"role": "user", "content": "Hello"}]
        claude(house.url).messages.create(model="claude-sonnet-5", max_tokens=9, messages=said)
        with claude(house.url).messages.stream(model="claude-sonnet-5", max_tokens=9, messages=said) as stream:
            stream.get_final_message()
        kept = house
    totals = kept.gateway.metrics.text().decode()
    assert 'leporello_tokens_total{kind="cache_read"} 180.0' in totals
