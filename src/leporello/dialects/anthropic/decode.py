"""Anthropic's answers and requests as OpenAI-format messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leporello.caching import MARK
from leporello.dialects.anthropic.blocks import part_of
from leporello.dialects.anthropic.encode import NAME
from leporello.dialects.base import STATE, Target, Wire, WireReply, new_state
from leporello.dialects.names import original_id
from leporello.dialects.parts import arguments_text
from leporello.dialects.request import DecodedRequest
from leporello.messages import Message

OUTPUT_CAPS = ("max_tokens",)
INPUT_JSON = "input_json"
"""Key of an assembled `tool_use` block that holds the arguments exactly as the model streamed them."""

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "pause_turn": "pause",
    "refusal": "content_filter",
    "model_context_window_exceeded": "context_window_exceeded",
}


def decode_reply(wire: Mapping[str, Any], target: Target) -> WireReply:
    """A whole `Message` object, from a plain answer or assembled from a stream."""
    content = wire.get("content")
    message = assistant_message(content if isinstance(content, list) else [], target)
    finish = _FINISH.get(str(wire.get("stop_reason")), "stop")
    return WireReply.read(wire, message, finish, wire.get("usage"), target)


def assistant_message(blocks: Sequence[Any], target: Target) -> Message:
    """The blocks of one assistant turn. Texts and calls become the message; all else is opaque state."""
    texts: list[Wire] = []
    calls: list[Wire] = []
    layout: list[Wire] = []
    mark: Any = None
    for block in blocks:
        if not isinstance(block, Mapping):
            continue
        if block.get("type") == "text":
            layout.append(_entry("text", len(texts), block, ("type", "text", MARK)))
            texts.append({key: block[key] for key in ("type", "text", MARK) if key in block})
        elif block.get("type") == "tool_use":
            layout.append(_entry("call", len(calls), block, ("type", "id", "name", "input", INPUT_JSON, MARK)))
            calls.append(_tool_call(block))
            mark = block.get(MARK, mark)
        else:
            layout.append({"block": dict(block)})
    message: Message = {"role": "assistant", "content": _content(texts, bool(calls))}
    if calls:
        message["tool_calls"] = calls
    if mark is not None:
        message[MARK] = mark
    if layout != _plain_layout(len(texts), len(calls)):
        message[STATE] = new_state(message, NAME, target, {"layout": layout})
    return message


def _entry(kind: str, position: int, block: Mapping[str, Any], known: tuple[str, ...]) -> Wire:
    extra = {key: value for key, value in block.items() if key not in known and value is not None}
    return {kind: position, "with": extra} if extra else {kind: position}


def _plain_layout(texts: int, calls: int) -> list[Wire]:
    return [{"text": k} for k in range(texts)] + [{"call": k} for k in range(calls)]


def _content(texts: list[Wire], has_calls: bool) -> Any:
    if not texts:
        return None if has_calls else ""
    if len(texts) == 1 and MARK not in texts[0]:
        return texts[0]["text"]
    return texts


def _tool_call(block: Mapping[str, Any]) -> Wire:
    raw = block.get(INPUT_JSON)
    arguments = raw if isinstance(raw, str) else arguments_text(block.get("input"))
    function = {"name": str(block.get("name", "")), "arguments": arguments}
    return {"id": original_id(str(block.get("id", ""))), "type": "function", "function": function}


def decode_request(wire: Mapping[str, Any], provider: str = "") -> DecodedRequest:
    """A client's request. Assistant turns keep their opaque blocks for the same provider and model family."""
    target = Target(provider, str(wire.get("model") or ""))
    messages: list[Message] = []
    origins: list[int] = []
    if wire.get("system"):
        messages.append({"role": "system", "content": wire["system"]})
        origins.append(-1)
    for index, item in enumerate(wire.get("messages") or ()):
        found = _messages_of(item, target) if isinstance(item, Mapping) else []
        messages.extend(found)
        origins.extend([index] * len(found))
    return DecodedRequest.read(wire, messages, origins, OUTPUT_CAPS, ("system", "messages"))


def _messages_of(item: Mapping[str, Any], target: Target) -> list[Message]:
    role, content = str(item.get("role", "")), item.get("content")
    if not isinstance(content, list):
        return [{"role": role, "content": content}]
    if role == "assistant":
        return [assistant_message(content, target)]
    if role != "user":
        return [{"role": role, "content": content}]
    results = [block for block in content if isinstance(block, Mapping) and block.get("type") == "tool_result"]
    others = [block for block in content if not (isinstance(block, Mapping) and block.get("type") == "tool_result")]
    found = [_result_message(block) for block in results]
    if others or not results:
        parts = [part_of(block) if isinstance(block, Mapping) else block for block in others]
        found.append({"role": "user", "content": parts})
    return found


def _result_message(block: Mapping[str, Any]) -> Message:
    content = block.get("content", "")
    if isinstance(content, list):
        content = [part_of(part) if isinstance(part, Mapping) else part for part in content]
    message: Message = {
        "role": "tool",
        "tool_call_id": original_id(str(block.get("tool_use_id", ""))),
        "content": "" if content is None else content,
    }
    if block.get("is_error") is True:
        message["is_error"] = True
    if MARK in block:
        message[MARK] = block[MARK]
    return message
