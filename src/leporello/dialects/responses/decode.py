"""Answers and requests of the Responses API as OpenAI-format messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leporello.dialects.base import STATE, Target, Wire, WireReply, new_state
from leporello.dialects.request import DecodedRequest
from leporello.dialects.responses.encode import NAME
from leporello.messages import Message, parse_json

OUTPUT_CAPS = ("max_output_tokens",)
CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_TRANSPORT = ("id", "status")
"""Names of items at a provider that stores them; ours are not stored."""
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}


def decode_reply(wire: Mapping[str, Any], target: Target) -> WireReply:
    """A whole `response` object, from a plain answer or from the last event of a stream."""
    output = wire.get("output")
    details = wire.get("incomplete_details")
    cut = wire.get("status") == "incomplete"
    reason = str(details.get("reason")) if isinstance(details, Mapping) else ""
    message = assistant_message(output if isinstance(output, list) else [], target, cut)
    finish = _INCOMPLETE.get(reason, "length") if cut else ("tool_calls" if message.get("tool_calls") else "stop")
    return WireReply.read(wire, message, finish, wire.get("usage"), target)


def assistant_message(items: Iterable[Any], target: Target, cut: bool = False) -> Message:
    """The items of one assistant turn. Texts and calls become the message; all else is opaque state."""
    turn = _Turn()
    for item in items:
        if isinstance(item, Mapping):
            turn.add(item, cut)
    message: Message = {"role": "assistant", "content": turn.content()}
    if turn.refusal:
        message["refusal"] = turn.refusal
    if turn.calls:
        message["tool_calls"] = turn.calls
    if turn.layout != _plain_layout(len(turn.texts), len(turn.calls)):
        message[STATE] = new_state(message, NAME, target, {"layout": turn.layout})
    return message


def _plain_layout(texts: int, calls: int) -> list[Wire]:
    said: list[Wire] = [{"message": [{"text": k} for k in range(texts)]}] if texts else []
    return said + [{"call": k} for k in range(calls)]


class _Turn:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[Wire] = []
        self.layout: list[Wire] = []
        self.refusal = ""

    def content(self) -> Any:
        if not self.texts:
            return None if self.calls or self.refusal else ""
        if len(self.texts) == 1:
            return self.texts[0]
        return [{"type": "text", "text": text} for text in self.texts]

    def add(self, item: Mapping[str, Any], cut: bool) -> None:
        kind = item.get("type") or ("message" if "role" in item else "")
        if kind == "message":
            self.layout.append(
                _entry({"message": self._parts(item.get("content"))}, item, ("type", "role", "content", *_TRANSPORT))
            )
        elif kind in CALLS:
            raw = item.get("arguments" if kind == "function_call" else "input")
            text = raw if isinstance(raw, str) else ""
            if cut and kind == "function_call" and text.strip() and parse_json(text) is None:
                return
            known = ("type", "call_id", "name", "arguments", "input", *_TRANSPORT)
            self.layout.append(_entry({"call": len(self.calls)}, item, known))
            self.calls.append(_tool_call(item, kind, text))
        else:
            self.layout.append({"item": dict(item)})

    def _parts(self, content: Any) -> list[Wire]:
        entries: list[Wire] = []
        for part in content if isinstance(content, list) else [{"type": "output_text", "text": content or ""}]:
            if not isinstance(part, Mapping):
                continue
            if part.get("type") == "refusal":
                self.refusal += str(part.get("refusal", ""))
                entries.append({"refusal": True})
            else:
                entries.append(_entry({"text": len(self.texts)}, part, ("type", "text", "logprobs")))
                self.texts.append(str(part.get("text", "")))
        return entries


def _entry(entry: Wire, raw: Mapping[str, Any], known: tuple[str, ...]) -> Wire:
    extra = {key: value for key, value in raw.items() if key not in known and value not in (None, [])}
    return {**entry, "with": extra} if extra else entry


def _tool_call(item: Mapping[str, Any], kind: str, text: str) -> Wire:
    call_id, name = str(item.get("call_id") or item.get("id") or ""), str(item.get("name", ""))
    if kind == "custom_tool_call":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": text}}
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def decode_request(wire: Mapping[str, Any], provider: str = "") -> DecodedRequest:
    """A client's request. Items of one assistant turn become one message; its origin is the first of them."""
    target = Target(provider, str(wire.get("model") or ""))
    messages: list[Message] = []
    origins: list[int] = []
    if wire.get("instructions"):
        messages.append({"role": "system", "content": wire["instructions"]})
        origins.append(-1)
    given = wire.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())
    for start, stop in _spans(items):
        origins.append(start)
        first = items[start]
        if _is_assistant(first):
            messages.append(assistant_message(items[start:stop], target))
        else:
            messages.append(_input_message(first))
    return DecodedRequest.read(wire, messages, origins, OUTPUT_CAPS, ("instructions", "input"))


def is_item(item: Mapping[str, Any]) -> bool:
    """Whether an item of a request is one of this API."""
    return isinstance(item.get("type", "message"), str)


def is_stateful(fields: Mapping[str, Any]) -> bool:
    """Whether the provider keeps (part of) the conversation: only what is new is in the request."""
    if any(fields.get(name) for name in ("previous_response_id", "conversation", "prompt")):
        return True
    items = fields.get("input")
    listed = items if isinstance(items, list) else ()
    return any(isinstance(item, dict) and item.get("type") == "item_reference" for item in listed)


def _spans(items: Sequence[Any]) -> list[tuple[int, int]]:
    spans = []
    index = 0
    while index < len(items):
        stop = index + 1
        if _is_assistant(items[index]):
            # A call ends the turn only when its output follows: parallel calls stand side by side.
            while stop < len(items) and _is_assistant(items[stop]):
                stop += 1
        spans.append((index, stop))
        index = stop
    return spans


def _is_assistant(item: Any) -> bool:
    if not isinstance(item, Mapping) or item.get("type") in _OUTPUTS:
        return False
    return bool(item.get("role", "assistant") == "assistant")


def _input_message(item: Any) -> Message:
    if not isinstance(item, Mapping):
        return {"role": "user", "content": str(item)}
    if item.get("type") in _OUTPUTS:
        output = item.get("output")
        content = [_chat_part(part) for part in output] if isinstance(output, list) else output
        return {"role": "tool", "tool_call_id": str(item.get("call_id", "")), "content": content or ""}
    content = item.get("content")
    if isinstance(content, list):
        content = [_chat_part(part) for part in content]
    return {"role": str(item.get("role", "user")), "content": content}


def _chat_part(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    kind = part.get("type")
    if kind == "input_text" and set(part) == {"type", "text"}:
        return {"type": "text", "text": part["text"]}
    if (
        kind == "input_image"
        and isinstance(part.get("image_url"), str)
        and set(part) <= {"type", "image_url", "detail"}
    ):
        detail = {"detail": part["detail"]} if part.get("detail") not in (None, "auto") else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if kind == "input_file" and set(part) <= {"type", "filename", "file_data", "file_id"}:
        return {"type": "file", "file": {key: value for key, value in part.items() if key != "type"}}
    return dict(part)
