"""An answer as a `chat.completion` object and as its chunks: for servers that speak this dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leporello.codecs.base import Target, Wire
from leporello.codecs.openai_chat.encode import encode_request
from leporello.messages import Message
from leporello.usage import CanonicalUsage

_FINISH = {"pause": "stop", "context_window_exceeded": "length"}


def encode_reply(
    message: Message,
    *,
    target: Target,
    finish_reason: str = "stop",
    usage: CanonicalUsage | None = None,
    id: str = "chatcmpl-1",
) -> Wire:
    """The body of an answer."""
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


def reply_events(reply: Mapping[str, Any], include_usage: bool = True) -> Iterator[Wire]:
    """The chunks that stream an answer."""
    head = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = reply["choices"][0]
    for delta in _deltas(choice["message"]):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if include_usage:
        yield {**head, "choices": [], "usage": reply["usage"]}


def _deltas(message: Mapping[str, Any]) -> Iterator[Wire]:
    yield {"role": "assistant"}
    for key, value in message.items():
        if key == "content" and isinstance(value, str):
            for piece in _pieces(value):
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
    for piece in _pieces(function["arguments"]):
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str, size: int = 16) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))
