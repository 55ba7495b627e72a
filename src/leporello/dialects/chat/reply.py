"""An answer as a `chat.completion` object: written for clients, whole or as chunks, and put together from chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leporello.dialects.base import ERROR_TYPES, Event, StreamIncomplete, Target, Wire, at, objects
from leporello.dialects.chat.request import encode_request
from leporello.dialects.parts import pieces
from leporello.messages import Message, parse_json
from leporello.usage import CanonicalUsage

DONE = b"data: [DONE]\n\n"
_FINISH = {"pause": "stop", "context_window_exceeded": "length"}


def encode_reply(
    message: Message,
    *,
    target: Target,
    finish_reason: str = "stop",
    usage: CanonicalUsage | None = None,
    id: str = "chatcmpl-1",
) -> Wire:
    body = encode_request([message], target=target)["messages"][0]
    choice = {"index": 0, "message": body, "finish_reason": _FINISH.get(finish_reason, finish_reason), "logprobs": None}
    return {
        "id": id,
        "object": "chat.completion",
        "created": 0,
        "model": target.model,
        "choices": [choice],
        "usage": wire_usage(usage or CanonicalUsage()),
    }


def wire_usage(usage: CanonicalUsage) -> Wire:
    """Counts in this dialect's names: the prompt includes what was cached."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def reply_events(reply: Mapping[str, Any]) -> Iterator[Wire]:
    """The chunks that stream an answer; the last tells the usage if it is known."""
    head = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = reply["choices"][0]
    for delta in _deltas(choice["message"]):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if "usage" in reply:
        yield {**head, "choices": [], "usage": reply["usage"]}


def _deltas(message: Mapping[str, Any]) -> Iterator[Wire]:
    yield {"role": "assistant"}
    for key, value in message.items():
        if key == "content" and isinstance(value, str):
            for piece in pieces(value):
                yield {"content": piece}
        elif key == "tool_calls":
            for index, call in enumerate(value):
                yield from _call_deltas(index, call)
        elif key != "role" and value is not None:
            yield {key: value}


def _call_deltas(index: int, call: Mapping[str, Any]) -> Iterator[Wire]:
    function = call.get("function")
    if not isinstance(function, Mapping):
        yield {"tool_calls": [{"index": index, **call}]}
        return
    opened = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
    yield {"tool_calls": [opened]}
    for piece in pieces(function["arguments"]):
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


class Assembler:
    """Takes chunks one by one; `reply` is the whole `chat.completion`, or an error when the stream was cut."""

    def __init__(self) -> None:
        self._head: Wire = {}
        self._message: Wire = {"role": "assistant", "content": None}
        self._calls: list[Wire] = []
        self._places: dict[int, int] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self.events = 0

    def feed(self, chunk: Mapping[str, Any]) -> str:
        self.events += 1
        for key in ("id", "model", "created", "system_fingerprint"):
            if chunk.get(key):
                self._head[key] = chunk[key]
        # Moonshot reports usage inside the choice, Groq inside a field of its own.
        self._usage = chunk.get("usage") or at(chunk, "x_groq", "usage") or self._usage
        for choice in chunk.get("choices") or ():
            if isinstance(choice, Mapping) and not choice.get("index"):
                return self._choice(choice)
        return ""

    def _choice(self, choice: Mapping[str, Any]) -> str:
        self._usage = choice.get("usage") or self._usage
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") or {}
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value or ():
                    self._call(call)
            elif key == "function_call" and isinstance(value, Mapping):
                _join(self._message.setdefault("function_call", {}), value)
            elif key == "audio" and isinstance(value, Mapping):
                _join(self._message.setdefault("audio", {}), value)
            elif key != "role":
                _join(self._message, {key: value})
        return str(delta.get("content") or "")

    def _call(self, delta: Mapping[str, Any]) -> None:
        index = delta.get("index")
        place = self._places.get(index) if isinstance(index, int) else (len(self._calls) - 1 if self._calls else None)
        known = self._calls[place] if place is not None else None
        fresh = delta.get("id")
        # Some servers number every call 0, others don't number at all: a new id is a new call.
        if known is None or (fresh and known.get("id") and fresh != known["id"]):
            known = {}
            self._calls.append(known)
            if isinstance(index, int):
                self._places[index] = len(self._calls) - 1
        for key, value in delta.items():
            if key in ("function", "custom") and isinstance(value, Mapping):
                _join(known.setdefault(key, {}), value, once=("name",))
            elif key != "index" and value not in (None, ""):
                known[key] = value

    def reply(self) -> Wire:
        """The answer; raises when the stream ended before it did, or in the middle of a call."""
        if self._finish is None:
            raise StreamIncomplete("the stream ended before the answer did")
        if self._finish != "length":
            for call in self._calls:
                _check(call)
        message = {**self._message, **({"tool_calls": self._calls} if self._calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {"object": "chat.completion", **self._head, "choices": [choice], "usage": self._usage}


def _check(call: Wire) -> None:
    function = call.get("function") or {}
    arguments = function.get("arguments") or ""
    if not function.get("name") and "custom" not in call:
        raise StreamIncomplete("a tool call came without a name")
    if arguments.strip() and parse_json(arguments) is None and _looks_cut(arguments):
        raise StreamIncomplete(f"the arguments of call {function.get('name')!r} end in the middle")


def _looks_cut(arguments: str) -> bool:
    """Whether a text began as an object and never closed. Other bad JSON is the model's own and is kept."""
    stripped = arguments.strip()
    return stripped.startswith("{") and not stripped.endswith("}")


def _join(into: Wire, delta: Mapping[str, Any], once: tuple[str, ...] = ()) -> None:
    """Texts grow, lists get longer, anything else is replaced."""
    for key, value in delta.items():
        if value is None:
            continue
        old = into.get(key)
        if isinstance(old, str) and isinstance(value, str) and key not in once and key not in ("id", "type"):
            into[key] = old + value
        elif isinstance(old, list) and isinstance(value, list):
            into[key] = [*old, *value]
        elif not (key in once and old and not value):
            into[key] = value


def error_body(status: int, code: str | None, message: str) -> Wire:
    kind = ERROR_TYPES.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def is_end(event: Event) -> bool:
    if event.data.strip() == b"[DONE]":
        return True
    if b'"finish_reason"' not in event.data:
        return False
    return any(choice.get("finish_reason") for choice in objects(event.json().get("choices")))
