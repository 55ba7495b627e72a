"""Clients that ask one question in a long conversation, by every official client library and in every way it offers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import anthropic
import openai

from leporello.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from leporello.testing.stub_server import Say, Step

from .clerks import NOTHING, SCHEMA, anthropic_client, openai_client
from .house import House, opened

WINDOW = 6_000
PATHS = {
    OPENAI_CHAT: "/v1/chat/completions",
    OPENAI_RESPONSES: "/v1/responses",
    ANTHROPIC: "/v1/messages",
}
DIALECTS = tuple(PATHS)
WAYS = ("whole", "stream", "async", "async_stream")
FACT = "The staging server of the lighthouse project listens on port 48443."
GREP = ("lcm_grep", json.dumps({"query": "Which port does the staging server of the lighthouse project use?"}))
READ = ("read", '{"path": "a.txt"}')
ANSWER = "It listens on port 48443."


@dataclass(slots=True)
class Reply:
    """What a client's library made of an answer."""

    text: str
    finish: str
    prompt: int
    output: int
    calls: list[tuple[str, str]] = field(default_factory=list)
    turn: list[Any] = field(default_factory=list)
    """The answer as items of the client's next request."""
    raw: Any = None


def _other_fact(part: int, place: int) -> str:
    key = sha256(f"{part}/{place}".encode()).hexdigest()
    return f"My room {key[:6]} in house {key[6:10]} opens at {part % 12}:{10 + place} with key {key[10:18]}."


def history() -> list[Any]:
    """A conversation that is several times too long and full of facts; one near its beginning is asked for."""
    said: list[Any] = [{"role": "user", "content": "Let us begin."}, {"role": "assistant", "content": "Yes."}]
    for part in range(30):
        told = FACT if part == 3 else f"Part {part} is about the colour of door number {part * 7}."
        said += [
            {"role": "user", "content": f"{told} " + " ".join(_other_fact(part, place) for place in range(8))},
            {"role": "assistant", "content": f"I have read part {part}. " + "It is all in order so far. " * 8},
        ]
    return said


@contextmanager
def folded(folder: Path, script: list[Step], flags: dict[str, object] | None = None, **more: Any) -> Iterator[House]:
    """A gateway that folds what is longer than half the window and offers recall, over a stub with a script."""
    given = {"gateway.recall": True, **(flags or {})}
    with opened(folder, script, window=WINDOW, flags=given, **more) as house:
        yield house


def tools(dialect: Dialect) -> list[Any]:
    """The client's own tool."""
    if dialect is ANTHROPIC:
        return [{"name": "read", "input_schema": SCHEMA}]
    if dialect is OPENAI_RESPONSES:
        return [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}]
    return [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]


def fields(dialect: Dialect, said: list[Any], **more: Any) -> dict[str, Any]:
    """A request body."""
    key = "input" if dialect is OPENAI_RESPONSES else "messages"
    made: dict[str, Any] = {"model": "m", key: said, "tools": tools(dialect)}
    if dialect is ANTHROPIC:
        made["max_tokens"] = 500
    if dialect is OPENAI_RESPONSES:
        made["store"] = False
    if dialect is OPENAI_CHAT and more.get("stream"):
        made["stream_options"] = {"include_usage": True}
    return {**made, **more}


def ask(house: House, dialect: Dialect, way: str, said: list[Any], **more: Any) -> Reply:
    """One question, by the official client of the dialect."""
    body = fields(dialect, said, **more)
    kinds: dict[Dialect, Callable[..., Reply]] = {
        OPENAI_CHAT: _chat,
        OPENAI_RESPONSES: _responses,
        ANTHROPIC: _claude,
    }
    if way.startswith("async"):
        return asyncio.run(_asked(house.url, dialect, way, body))
    return kinds[dialect](house.url, way, body)


def _chat(url: str, way: str, body: dict[str, Any]) -> Reply:
    client = openai_client(url).chat.completions
    if way == "whole":
        return chat_reply(client.create(**_passed(body, "messages")))
    options: Any = {"include_usage": True}
    with client.stream(**_passed(body, "messages"), stream_options=options) as stream:
        return chat_reply(stream.get_final_completion())


def _responses(url: str, way: str, body: dict[str, Any]) -> Reply:
    client = openai_client(url).responses
    if way == "whole":
        return responses_reply(client.create(**_passed(body, "input")))
    with client.stream(**_passed(body, "input")) as stream:
        return responses_reply(stream.get_final_response())


def _claude(url: str, way: str, body: dict[str, Any]) -> Reply:
    client = anthropic_client(url).messages
    if way == "whole":
        return claude_reply(client.create(**_passed(body, "messages")))
    with client.stream(**_passed(body, "messages")) as stream:
        return claude_reply(stream.get_final_message())


async def _asked(url: str, dialect: Dialect, way: str, body: dict[str, Any]) -> Reply:
    if dialect is ANTHROPIC:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="key", max_retries=0) as claude:
            if way == "async":
                return claude_reply(await claude.messages.create(**_passed(body, "messages")))
            async with claude.messages.stream(**_passed(body, "messages")) as words:
                return claude_reply(await words.get_final_message())
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="key", max_retries=0) as client:
        if dialect is OPENAI_RESPONSES:
            if way == "async":
                return responses_reply(await client.responses.create(**_passed(body, "input")))
            async with client.responses.stream(**_passed(body, "input")) as events:
                return responses_reply(await events.get_final_response())
        if way == "async":
            return chat_reply(await client.chat.completions.create(**_passed(body, "messages")))
        given = {**_passed(body, "messages"), "stream_options": {"include_usage": True}}
        async with client.chat.completions.stream(**given) as chunks:
            return chat_reply(await chunks.get_final_completion())


def _passed(body: dict[str, Any], key: str) -> dict[str, Any]:
    """The history goes along as `extra_body`: the libraries would check each message in Python."""
    return {**body, key: NOTHING, "extra_body": {key: body[key]}}


def chat_reply(reply: Any) -> Reply:
    """What the library made of it."""
    choice = reply.choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    turn: dict[str, Any] = {"role": "assistant", "content": choice.message.content}
    if calls:
        turn["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call, (name, arguments) in zip(choice.message.tool_calls, calls, strict=True)
        ]
    usage = reply.usage
    text = choice.message.content or ""
    return Reply(text, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens, calls, [turn], reply)


def responses_reply(reply: Any) -> Reply:
    """What the library made of it."""
    calls = [(item.name, item.arguments) for item in reply.output if item.type == "function_call"]
    dropped = {"id", "status", "parsed_arguments"}
    turn = [
        item.model_dump(exclude_none=True, exclude=dropped if item.type != "reasoning" else set(), warnings=False)
        for item in reply.output
    ]
    for item in turn:
        for part in item.get("content") or ():
            part.pop("parsed", None)
    usage = reply.usage
    return Reply(reply.output_text, reply.status, usage.input_tokens, usage.output_tokens, calls, turn, reply)


def claude_reply(reply: Any) -> Reply:
    """What the library made of it."""
    blocks = [block.model_dump(exclude_none=True) for block in reply.content]
    calls = [(block["name"], json.dumps(block["input"])) for block in blocks if block["type"] == "tool_use"]
    for block in blocks:
        for key in ("parsed_output", "caller"):
            block.pop(key, None)
    usage = reply.usage
    prompt = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    text = "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
    turn = [{"role": "assistant", "content": blocks}]
    return Reply(text, reply.stop_reason, prompt, usage.output_tokens, calls, turn, reply)


ENDED = {OPENAI_CHAT: "stop", OPENAI_RESPONSES: "completed", ANTHROPIC: "end_turn"}
CALLED = {OPENAI_CHAT: "tool_calls", OPENAI_RESPONSES: "completed", ANTHROPIC: "tool_use"}


def items(seen: Any) -> list[Any]:
    """The conversation in a request the stub saw."""
    found: list[Any] = seen.body.get("messages") or seen.body.get("input")
    return found


def names(seen: Any) -> list[str]:
    """The tools in a request the stub saw."""
    return [tool.get("name") or tool["function"]["name"] for tool in seen.body.get("tools") or ()]


def result(dialect: Dialect, id: str, text: str = "The file is empty.") -> Any:
    """The client's result of its own call, as an item of its history."""
    if dialect is ANTHROPIC:
        block = {"type": "tool_result", "tool_use_id": id, "content": text}
        return {"role": "user", "content": [block]}
    if dialect is OPENAI_RESPONSES:
        return {"type": "function_call_output", "call_id": id, "output": text}
    return {"role": "tool", "tool_call_id": id, "content": text}


def says(*calls: tuple[str, str], text: str | None = None, **more: Any) -> Say:
    """An answer of the model."""
    return Say(text, calls=calls, **more)
