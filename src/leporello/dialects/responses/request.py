"""Requests to the Responses API: OpenAI-format messages as items, and items as messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct, field

from leporello.dialects.base import STATE, Target, Wire, WireReply, at, new_state, objects, state_for
from leporello.dialects.chat.request import chat_part, unmarked
from leporello.dialects.dialect import DecodedRequest, Options, Tools
from leporello.dialects.pieces import (
    DEFERRED,
    IdPlan,
    IdRule,
    chat_function,
    digest_escape,
    function_of,
    is_cut,
    json_text,
    note,
    plan_ids,
    text_part,
    wire_name,
)
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, Messages, PartKind, calls_of, is_result, parts_of, result_id, role_of

NAME = "openai_responses"
IDS = IdRule(lazy_regex(r".{1,64}", re.DOTALL), digest_escape)
_ELSEWHERE = frozenset(
    "tool_choice response_format reasoning_effort verbosity stream_options stop n late_system".split()
)


def request_options(options: Mapping[str, Any]) -> Wire:
    """The extra fields of a request. `stop` has no counterpart there and is left out."""
    wire: Wire = {key: value for key, value in options.items() if key not in _ELSEWHERE}
    if options.get("tool_choice") is not None:
        wire["tool_choice"] = _tool_choice(options["tool_choice"])
    if options.get("reasoning_effort") is not None:
        wire["reasoning"] = {**(wire.get("reasoning") or {}), "effort": options["reasoning_effort"]}
    text = dict(wire.get("text") or {})
    if options.get("verbosity") is not None:
        text["verbosity"] = options["verbosity"]
    wanted = options.get("response_format")
    if isinstance(wanted, Mapping):
        schema = wanted.get("json_schema")
        text["format"] = {"type": "json_schema", **schema} if isinstance(schema, Mapping) else dict(wanted)
    if text:
        wire["text"] = text
    return wire


def encode_request(
    messages: Messages, tools: Tools = (), *, target: Target, max_tokens: int | None = None, options: Options = None
) -> Wire:
    """The body of `POST /responses`. Nothing is stored at the provider; reasoning comes back encrypted."""
    messages = [unmarked(message) for message in messages]
    wire: Wire = {"model": target.model}
    start = 0
    if messages and role_of(messages[0]) == "system" and isinstance(messages[0].get("content"), str):
        start = 1
        if messages[0]["content"]:
            wire["instructions"] = messages[0]["content"]
    plan = plan_ids(messages, IDS)
    custom = _custom_calls(messages, plan)
    wire["input"] = [
        item for index in range(start, len(messages)) for item in _items(messages[index], index, plan, custom, target)
    ]
    if tools:
        wire["tools"] = [encode_tool(tool) for tool in tools]
    if max_tokens is not None:
        wire["max_output_tokens"] = max_tokens
    if target.native:
        wire.update({"store": False, "include": ["reasoning.encrypted_content"]})
    return {**wire, **request_options(options or {})}


def encode_tool(tool: Mapping[str, Any]) -> Wire:
    """A tool for Responses, where `strict` must be said because its default is the other way round."""
    custom = tool.get("custom")
    if isinstance(custom, Mapping):
        return {"type": "custom", **custom}
    function = function_of(tool)
    if function is None or (tool.get("type") == "function" and "strict" in tool and "name" in tool):
        return dict(tool)
    described = chat_function(function, wire_name(function.name))
    deferred = {DEFERRED: True} if function.extra.get(DEFERRED) else {}
    return {"type": "function", **described, "strict": bool(function.strict), **deferred}


def _tool_choice(choice: Any) -> Any:
    """`tool_choice` of the chat form for Responses, which has one level less."""
    for kind in ("function", "custom"):
        if isinstance(choice, Mapping) and isinstance(choice.get(kind), Mapping):
            return {"type": kind, "name": choice[kind].get("name")}
    return choice


def _custom_calls(messages: Messages, plan: IdPlan) -> frozenset[str]:
    """Wire ids of calls to tools that take free text."""
    return frozenset(
        wire_id
        for index, ids in plan.calls.items()
        for raw, wire_id in zip(messages[index].get("tool_calls") or (), ids, strict=False)
        if isinstance(raw, Mapping) and isinstance(raw.get("custom"), Mapping)
    )


def _items(message: Message, index: int, plan: IdPlan, custom: frozenset[str], target: Target) -> Iterator[Wire]:
    if is_result(message):
        call_id = plan.results.get(index, "")
        kind = "custom_tool_call_output" if call_id in custom else "function_call_output"
        yield {"type": kind, "call_id": call_id, "output": _content(message, sound=False)}
    elif role_of(message) == "assistant":
        yield from _assistant(message, plan.calls.get(index, ()), custom, target)
    else:
        yield {"role": role_of(message) or "user", "content": _content(message, sound=True)}


def _input_part(raw: Any) -> Wire | None:
    part = chat_part(raw)
    if part is None:
        return None
    kind = part.get("type")
    if kind in ("text", "refusal"):
        return _input_text(str(part.get(kind, "")))
    if kind == "image_url":
        value = part.get("image_url")
        image: Mapping[str, Any] = value if isinstance(value, Mapping) else {"url": value}
        return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail") or "auto"}
    if kind == "file" and isinstance(part.get("file"), Mapping):
        return {"type": "input_file", **part["file"]}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": part.get("input_audio")}
    return _input_text(json_text(part))


def _input_text(text: str) -> Wire:
    return {"type": "input_text", "text": text}


def _content(message: Message, *, sound: bool) -> Any:
    """A text as text, a list as a list. A result may hold text, images and files; sound in it is only named."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    shown = [
        _input_part(part.raw) if sound or part.kind is not PartKind.AUDIO else _input_text(note("audio")["text"])
        for part in parts_of(message)
    ]
    return [part for part in shown if part is not None] or ""


def _assistant(message: Message, ids: Sequence[str], custom: frozenset[str], target: Target) -> Iterator[Wire]:
    calls = [
        _call(call.name, call.arguments, wire_id, custom) for call, wire_id in zip(calls_of(message), ids, strict=True)
    ]
    layout = at(state_for(message, NAME, target), "layout")
    items = _by_layout(layout, message, calls) if isinstance(layout, list) else []
    if items:
        yield from items
        return
    texts = [part.text for part in parts_of(message) if part.kind is PartKind.TEXT and part.text]
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        texts.append(message["refusal"])
    audio = message.get("audio")
    if not texts and isinstance(audio, Mapping) and isinstance(audio.get("transcript"), str):
        texts.append(audio["transcript"])
    if texts:
        yield _message([{"type": "output_text", "text": text, "annotations": []} for text in texts])
    yield from calls


def _message(content: Sequence[Wire], extra: Mapping[str, Any] | None = None) -> Wire:
    return {"type": "message", "role": "assistant", "content": list(content), **(extra or {})}


def _call(name: str, arguments: str, wire_id: str, custom: frozenset[str]) -> Wire:
    if wire_id in custom:
        return {"type": "custom_tool_call", "call_id": wire_id, "name": wire_name(name), "input": arguments}
    return {"type": "function_call", "call_id": wire_id, "name": wire_name(name), "arguments": arguments or "{}"}


def _by_layout(layout: Sequence[Any], message: Message, calls: Sequence[Wire]) -> list[Wire]:
    """The turn's items in their original order; empty when the layout doesn't fit the message."""
    texts = [part.text for part in parts_of(message)]
    items: list[Wire] = []
    for entry in layout:
        if not isinstance(entry, Mapping):
            return []
        if isinstance(entry.get("item"), Mapping):
            if resendable(entry["item"]):
                items.append({key: value for key, value in entry["item"].items() if key != "status"})
        elif isinstance(entry.get("call"), int) and entry["call"] < len(calls):
            items.append({**calls[entry["call"]], **_resent(entry)})
        elif isinstance(entry.get("message"), list):
            content = [_layout_part(part, texts, message) for part in entry["message"]]
            if any(part is None for part in content):
                return []
            items.append(_message([part for part in content if part is not None], _resent(entry)))
        else:
            return []
    # Reasoning that nothing follows is refused.
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items


def _layout_part(part: Any, texts: Sequence[str], message: Message) -> Wire | None:
    if not isinstance(part, Mapping):
        return None
    if part.get("refusal"):
        return {"type": "refusal", "refusal": str(message.get("refusal") or "")}
    position = part.get("text")
    if not isinstance(position, int) or not 0 <= position < len(texts):
        return None
    return {"type": "output_text", "text": texts[position], "annotations": [], **_resent(part)}


def _resent(entry: Mapping[str, Any]) -> Wire:
    extra = entry.get("with")
    return dict(extra) if isinstance(extra, Mapping) else {}


def resendable(item: Mapping[str, Any]) -> bool:
    """Reasoning is worth something only with its encrypted or open content; other items are as they came."""
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def encode_items(messages: Sequence[Message], target: Target) -> list[Wire]:
    """Messages as items of the list; those of one message under the ids it has."""
    items: list[Wire] = encode_request(messages, target=target)["input"]
    if len(messages) != 1:
        return items
    message = messages[0]
    ids = iter([result_id(message)] if is_result(message) else [call.id for call in calls_of(message)])
    return [{**item, "call_id": next(ids, item["call_id"])} if "call_id" in item else item for item in items]


OUTPUT_CAPS = ("max_output_tokens",)
CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_TRANSPORT = ("id", "status")  # names of items at a provider that stores them; ours are not stored
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}


def decode_reply(wire: Mapping[str, Any], target: Target) -> WireReply:
    """A whole `response` object, from a plain answer or from the last event of a stream."""
    cut = wire.get("status") == "incomplete"
    message = assistant_message(objects(wire.get("output")), target, cut)
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    if cut:
        finish = _INCOMPLETE.get(str(at(wire, "incomplete_details", "reason")), "length")
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
    if turn.layout != turn.plain_layout():
        message[STATE] = new_state(message, NAME, target, {"layout": turn.layout})
    return message


class _Turn(Struct):
    texts: list[str] = field(default_factory=list)
    calls: list[Wire] = field(default_factory=list)
    layout: list[Wire] = field(default_factory=list)
    refusal: str = ""

    def content(self) -> Any:
        if not self.texts:
            return None if self.calls or self.refusal else ""
        return self.texts[0] if len(self.texts) == 1 else [text_part(text) for text in self.texts]

    def plain_layout(self) -> list[Wire]:
        said: list[Wire] = [{"message": [{"text": k} for k in range(len(self.texts))]}] if self.texts else []
        return said + [{"call": k} for k in range(len(self.calls))]

    def add(self, item: Mapping[str, Any], cut: bool) -> None:
        kind = item.get("type") or ("message" if "role" in item else "")
        if kind == "message":
            parts = self._parts(item.get("content"))
            self.layout.append(_entry({"message": parts}, item, ("type", "role", "content", *_TRANSPORT)))
        elif kind in CALLS:
            raw = item.get("arguments" if kind == "function_call" else "input")
            text = raw if isinstance(raw, str) else ""
            if cut and kind == "function_call" and is_cut(text):
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
    place = 0
    # A call ends the turn only when its output follows: parallel calls stand side by side.
    for is_answer, group in groupby(items, _is_assistant):
        run = list(group)
        if is_answer:
            messages.append(assistant_message(run, target))
            origins.append(place)
        else:
            messages += map(_input_message, run)
            origins += range(place, place + len(run))
        place += len(run)
    return DecodedRequest.read(wire, messages, origins, OUTPUT_CAPS, ("instructions", "input"))


def is_stateful(fields: Mapping[str, Any]) -> bool:
    """Whether the provider keeps (part of) the conversation: only what is new is in the request."""
    if any(fields.get(name) for name in ("previous_response_id", "conversation", "prompt")):
        return True
    return any(item.get("type") == "item_reference" for item in objects(fields.get("input")))


def _is_assistant(item: Any) -> bool:
    is_output = not isinstance(item, Mapping) or item.get("type") in _OUTPUTS
    return not is_output and item.get("role", "assistant") == "assistant"


def _input_message(item: Any) -> Message:
    if not isinstance(item, Mapping):
        return {"role": "user", "content": str(item)}
    is_output = item.get("type") in _OUTPUTS
    content = item.get("output" if is_output else "content")
    if isinstance(content, list):
        content = [_chat_part(part) for part in content]
    if is_output:
        return {"role": "tool", "tool_call_id": str(item.get("call_id", "")), "content": content or ""}
    return {"role": str(item.get("role", "user")), "content": content}


def _chat_part(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    kind, url, keys = part.get("type"), part.get("image_url"), set(part)
    if kind == "input_text" and keys == {"type", "text"}:
        return text_part(part["text"])
    if kind == "input_image" and isinstance(url, str) and keys <= {"type", "image_url", "detail"}:
        detail = {"detail": part["detail"]} if part.get("detail") not in (None, "auto") else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if kind == "input_file" and keys <= {"type", "filename", "file_data", "file_id"}:
        return {"type": "file", "file": {key: value for key, value in part.items() if key != "type"}}
    return dict(part)
