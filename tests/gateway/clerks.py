"""Clients as people write them: they keep their whole history and send all of it each time, by an official library."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar

import anthropic
import openai

from leporello.dialects import ANTHROPIC, Dialect
from leporello.testing.stub_server import Fail, Say, Seen, Step
from leporello.usage import CanonicalUsage

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SYSTEM = "You are a clerk. Answer briefly."
ANSWER_TOKENS = 400
NOTHING: Any = []
"""The history goes along as `extra_body`: the libraries check each message of a list in Python, every time anew, which
takes minutes for a long conversation and changes nothing of what is sent."""


_closing: list[Callable[[], None]] = []


def openai_client(url: str, key: str = "key", **more: Any) -> openai.OpenAI:
    """A client of the gateway; it is closed when the test ends."""
    made = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0, **more)
    _closing.append(made.close)
    return made


def anthropic_client(url: str, key: str = "key") -> anthropic.Anthropic:
    """A client of the gateway; it is closed when the test ends."""
    made = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
    _closing.append(made.close)
    return made


def close_clients() -> None:
    """Close everything that was opened."""
    while _closing:
        _closing.pop()()


class Clerk(Protocol):
    """A client with a history."""

    said: list[Any]

    def ask(self, text: str, stream: bool, picture: str = "") -> str:
        """One turn of the user, calls and results included; the last words of the model."""


def output(path: str) -> str:
    """What the clerk's tool gives."""
    return "\n".join(f"{path}: line {k} holds value {hash_free(path, k)}" for k in range(20))


def hash_free(path: str, k: int) -> int:
    """A number that is the same in every run."""
    return sum(map(ord, path)) * 31 + k * 7


class ChatClerk:
    """Chat Completions."""

    def __init__(self, url: str, model: str = "gpt-4o", **more: Any) -> None:
        self.client = openai_client(url, "chat", **more)
        self.model = model
        self.said: list[Any] = [{"role": "system", "content": SYSTEM}]
        self.tools: Any = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]

    def ask(self, text: str, stream: bool, picture: str = "") -> str:
        shown = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": picture}}]
        self.said.append({"role": "user", "content": shown if picture else text})
        while True:
            options = {"stream_options": {"include_usage": True}} if stream else {}
            given = {"model": self.model, "messages": NOTHING, "tools": self.tools, **options}
            message = _chat_message(self.reply({**given, "extra_body": {"messages": self.said}}, stream))
            self.said.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            for call in message["tool_calls"]:
                path = json.loads(call["function"]["arguments"])["path"]
                self.said.append({"role": "tool", "tool_call_id": call["id"], "content": output(path)})

    def reply(self, given: Any, stream: bool) -> Any:
        if not stream:
            return self.client.chat.completions.create(**given)
        with self.client.chat.completions.stream(**given) as events:
            return events.get_final_completion()


def _chat_message(reply: Any) -> dict[str, Any]:
    message = reply.choices[0].message
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls or ()
    ]
    return {"role": "assistant", "content": message.content, **({"tool_calls": calls} if calls else {})}


class ResponsesClerk:
    """The Responses API, without state at the provider."""

    def __init__(self, url: str) -> None:
        self.client = openai_client(url, "responses")
        self.said: list[Any] = []
        self.fixed: Any = {
            "model": "gpt-4o",
            "instructions": SYSTEM,
            "store": False,
            "tools": [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}],
        }

    def ask(self, text: str, stream: bool, picture: str = "") -> str:
        shown = [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": picture, "detail": "auto"}]
        self.said.append({"role": "user", "content": shown if picture else text})
        while True:
            reply = self.reply({"input": NOTHING, "extra_body": {"input": self.said}, **self.fixed}, stream)
            wanted = {"id", "status", "parsed", "parsed_arguments"}
            self.said += [item.model_dump(exclude_none=True, exclude=wanted, warnings=False) for item in reply.output]
            for item in self.said[-len(reply.output) :]:
                for part in item.get("content") or ():
                    part.pop("parsed", None)
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return str(reply.output_text)
            self.said += [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": output(json.loads(call.arguments)["path"]),
                }
                for call in calls
            ]

    def reply(self, given: Any, stream: bool) -> Any:
        if not stream:
            return self.client.responses.create(**given)
        with self.client.responses.stream(**given) as events:
            return events.get_final_response()


class ClaudeClerk:
    """Anthropic Messages; `marks` moves two breakpoints along the history, as coding agents do."""

    def __init__(self, url: str, marks: bool = False) -> None:
        self.client = anthropic_client(url, "claude")
        self.said: list[Any] = []
        self.marks = marks
        self.fixed: Any = {
            "model": "claude-sonnet-5",
            "max_tokens": ANSWER_TOKENS,
            "system": SYSTEM,
            "tools": [{"name": "read", "input_schema": SCHEMA}],
        }

    def ask(self, text: str, stream: bool, picture: str = "") -> str:
        source = {"type": "base64", "media_type": "image/png", "data": picture.partition(",")[2]}
        shown = [{"type": "image", "source": source}, {"type": "text", "text": text}]
        self.said.append({"role": "user", "content": shown if picture else text})
        while True:
            sent: Any = self._marked() if self.marks else self.said
            reply = self.reply({"messages": NOTHING, "extra_body": {"messages": sent}, **self.fixed}, stream)
            blocks = [_plain(block.model_dump(exclude_none=True)) for block in reply.content]
            self.said.append({"role": "assistant", "content": blocks})
            calls = [block for block in blocks if block["type"] == "tool_use"]
            if not calls:
                return "".join(block["text"] for block in blocks if block["type"] == "text")
            results = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": output(call["input"]["path"])}
                for call in calls
            ]
            self.said.append({"role": "user", "content": results})

    def reply(self, given: Any, stream: bool) -> Any:
        if not stream:
            return self.client.messages.create(**given)
        with self.client.messages.stream(**given) as events:
            return events.get_final_message()

    def _marked(self) -> list[Any]:
        """A mark turns a text into a list of one block, and goes on to the next message in the next request."""
        users = [place for place, message in enumerate(self.said) if message["role"] == "user"][-2:]
        return [self._with_mark(message) if place in users else message for place, message in enumerate(self.said)]

    @staticmethod
    def _with_mark(message: Any) -> Any:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return {**message, "content": [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]}


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    known = {"text": ("type", "text"), "tool_use": ("type", "id", "name", "input")}
    return {key: block[key] for key in known[block["type"]]}


class AsyncChatClerk(ChatClerk):
    """Chat Completions by the asynchronous client."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.run, self.web = _running(openai.AsyncOpenAI(base_url=url + "/v1", api_key="chat", max_retries=0))

    def reply(self, given: Any, stream: bool) -> Any:
        async def answered() -> Any:
            if not stream:
                return await self.web.chat.completions.create(**given)
            async with self.web.chat.completions.stream(**given) as events:
                return await events.get_final_completion()

        return self.run(answered())


class AsyncResponsesClerk(ResponsesClerk):
    """The Responses API by the asynchronous client."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.run, self.web = _running(openai.AsyncOpenAI(base_url=url + "/v1", api_key="responses", max_retries=0))

    def reply(self, given: Any, stream: bool) -> Any:
        async def answered() -> Any:
            if not stream:
                return await self.web.responses.create(**given)
            async with self.web.responses.stream(**given) as events:
                return await events.get_final_response()

        return self.run(answered())


class AsyncClaudeClerk(ClaudeClerk):
    """Anthropic Messages by the asynchronous client."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.run, self.web = _running(anthropic.AsyncAnthropic(base_url=url, api_key="claude", max_retries=0))

    def reply(self, given: Any, stream: bool) -> Any:
        async def answered() -> Any:
            if not stream:
                return await self.web.messages.create(**given)
            async with self.web.messages.stream(**given) as events:
                return await events.get_final_message()

        return self.run(answered())


Web = TypeVar("Web", openai.AsyncOpenAI, anthropic.AsyncAnthropic)


def _running(web: Web) -> tuple[Callable[[Coroutine[Any, Any, Any]], Any], Web]:
    """A loop for an asynchronous client; both are closed when the test ends."""
    runner = asyncio.Runner()
    _closing.append(runner.close)
    _closing.append(lambda: runner.run(web.close()))
    return runner.run, web


PICTURE = re.compile(rb"[A-Za-z0-9+/=]{200,}")


def counted(seen: Seen) -> int:
    """What the model's server counts: four bytes to a token, and some hundreds for a picture."""
    return len(PICTURE.sub(b"x" * 1_200, seen.raw)) // 4


class Model:
    """A model with a window: it refuses what is too long in the vendor's words, and counts what it takes."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.refused = 0
        self._turns = itertools.count()

    def script(self) -> Iterator[Step]:
        """An endless script; each request is looked at when it comes."""
        while True:
            yield self.answer

    def answer(self, seen: Seen) -> Step:
        """One answer."""
        size = counted(seen)
        if size > self.window:
            self.refused += 1
            return Fail(400, _too_long(seen.dialect, size, self.window))
        usage = CanonicalUsage(size, 60, 0, 0, 0)
        newest = _newest(seen)
        if newest.startswith("Read"):
            number = int(newest.split()[1])
            places = [f"src/part_{number}_{k}.py" for k in range(2)]
            return Say(None, calls=tuple(("read", json.dumps({"path": path})) for path in places), usage=usage)
        return Say(f"Answer {next(self._turns)}. " + "All is in order with this part. " * 12, usage=usage)


def _newest(seen: Seen) -> str:
    """The last words of the user, empty when results came."""
    item = (seen.body.get("messages") or seen.body.get("input"))[-1]
    content = item.get("content")
    if item.get("role") != "user":
        return ""
    if isinstance(content, list):
        return str(next((part["text"] for part in content if "text" in part), ""))
    return str(content)


def _too_long(dialect: Dialect | None, size: int, window: int) -> dict[str, Any]:
    if dialect is ANTHROPIC:
        message = f"prompt is too long: {size} tokens > {window} maximum"
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {size} tokens. "
        "Please reduce the length of the messages."
    )
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
    return {"error": error}
