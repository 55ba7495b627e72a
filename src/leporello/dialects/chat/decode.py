"""Chat Completions answers and requests as messages: nearly the same thing, opaque fields put aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.dialects.base import STATE, Target, Wire, WireReply, new_state
from leporello.dialects.chat.encode import NAME, REASONING_FIELDS
from leporello.dialects.request import DecodedRequest
from leporello.messages import Message, parse_json

OUTPUT_CAPS = ("max_completion_tokens", "max_tokens")
_OWN_FIELDS = frozenset(("role", "content", "refusal", "tool_calls", "function_call", "audio", "annotations", "name"))
_CALL_FIELDS = frozenset(("id", "type", "function", "custom", "index"))


def decode_reply(wire: Mapping[str, Any], target: Target) -> WireReply:
    """A `chat.completion` object, from a plain answer or assembled from a stream."""
    choices = wire.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    raw = choice.get("message")
    finish = str(choice.get("finish_reason") or "stop")
    message = assistant_message(raw if isinstance(raw, Mapping) else {}, target, finish)
    if finish in ("stop", "function_call") and message.get("tool_calls"):
        # Several compatible servers end a turn with calls by `stop`.
        finish = "tool_calls"
    return WireReply.read(wire, message, finish, wire.get("usage") or choice.get("usage"), target)


def assistant_message(raw: Mapping[str, Any], target: Target, finish: str = "stop") -> Message:
    """The answer's message; reasoning and other fields of the endpoint's own become its state."""
    message: Message = {"role": "assistant", "content": raw.get("content")}
    for key in ("refusal", "audio", "annotations", "function_call"):
        if raw.get(key):
            message[key] = raw[key]
    calls, extras = _calls(raw.get("tool_calls"), finish)
    if calls:
        message["tool_calls"] = calls
    elif message["content"] is None and not message.get("refusal") and "function_call" not in message:
        message["content"] = ""
    fields = {key: value for key, value in raw.items() if key not in _OWN_FIELDS and value not in (None, "", [])}
    if fields or extras:
        message[STATE] = new_state(message, NAME, target, {"fields": fields, **({"calls": extras} if extras else {})})
    return message


def _calls(raw: Any, finish: str) -> tuple[list[Wire], dict[str, Wire]]:
    calls: list[Wire] = []
    extras: dict[str, Wire] = {}
    for item in raw if isinstance(raw, list) else ():
        if not isinstance(item, Mapping) or (finish == "length" and _is_cut(item)):
            continue
        extra = {key: value for key, value in item.items() if key not in _CALL_FIELDS and value is not None}
        if extra:
            extras[str(len(calls))] = extra
        kept = {key: item[key] for key in ("function", "custom") if item.get(key) is not None}
        calls.append({"id": str(item.get("id") or ""), "type": item.get("type") or "function", **kept})
    return calls, extras


def _is_cut(item: Mapping[str, Any]) -> bool:
    """Whether a call's arguments were cut by the output limit: half a call is no call."""
    function = item.get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    return isinstance(arguments, str) and arguments.strip() != "" and parse_json(arguments) is None


def decode_request(wire: Mapping[str, Any], provider: str = "") -> DecodedRequest:
    """A client's request. Its messages are ours already; reasoning fields move into the state."""
    target = Target(provider, str(wire.get("model") or ""))
    listed = [message for message in wire.get("messages") or () if isinstance(message, dict)]
    messages = [_kept(message, target) for message in listed]
    return DecodedRequest.read(wire, messages, list(range(len(messages))), OUTPUT_CAPS, ("messages",))


def _kept(message: Message, target: Target) -> Message:
    if message.get("role") != "assistant" or not any(key in message for key in REASONING_FIELDS):
        return message
    fields = {key: message[key] for key in REASONING_FIELDS if key in message}
    plain = {key: value for key, value in message.items() if key not in fields}
    return {**plain, STATE: new_state(plain, NAME, target, {"fields": fields})}
