"""An OpenAI-format answer as Anthropic's `Message` object and as its stream: for servers that speak this dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leporello.codecs.anthropic.encode import encode_request
from leporello.codecs.base import Target, Wire
from leporello.codecs.parts import json_text
from leporello.messages import Message
from leporello.usage import CanonicalUsage

_STOP = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "pause": "pause_turn",
    "context_window_exceeded": "model_context_window_exceeded",
}


def encode_reply(
    message: Message,
    *,
    target: Target,
    finish_reason: str = "stop",
    usage: CanonicalUsage | None = None,
    id: str = "msg_1",
) -> Wire:
    """The body of an answer."""
    turn = encode_request([{"role": "user", "content": "."}, message], target=target)["messages"][1:]
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": target.model,
        "content": turn[0]["content"] if turn else [],
        "stop_reason": _STOP.get(finish_reason, "end_turn"),
        "stop_sequence": None,
        "usage": wire_usage(usage or CanonicalUsage()),
    }


def wire_usage(usage: CanonicalUsage) -> Wire:
    """Counts in this dialect's names."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


def reply_events(reply: Mapping[str, Any]) -> Iterator[Wire]:
    """The events that stream an answer."""
    usage = reply["usage"]
    opened = {**reply, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": opened}
    for index, block in enumerate(reply["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": reply["stop_reason"], "stop_sequence": reply.get("stop_sequence")}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _opened(block: Wire) -> Wire:
    kind = block.get("type")
    empty: dict[str, Any] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return {**block, **empty.get(str(kind), {})}


def _deltas(block: Wire) -> Iterator[Wire]:
    kind = block.get("type")
    if kind == "text":
        for piece in _pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    elif kind == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif kind == "tool_use":
        for piece in _pieces(json_text(block["input"])):
            yield {"type": "input_json_delta", "partial_json": piece}


def _pieces(text: str, size: int = 16) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))
