"""OpenAI-format messages as a request to the Responses API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from leporello.dialects.base import Target, Wire, state_for
from leporello.dialects.chat.encode import chat_part, unmarked
from leporello.dialects.names import IdPlan, IdRule, digest_escape, plan_ids, wire_name
from leporello.dialects.parts import as_json_text, note
from leporello.dialects.tools import function_of
from leporello.messages import Message, Messages, PartKind, calls_of, is_result, parts_of, result_id, role_of

NAME = "openai_responses"
IDS = IdRule(re.compile(r".{1,64}", re.DOTALL), digest_escape)
_ELSEWHERE = frozenset(
    ("tool_choice", "response_format", "reasoning_effort", "verbosity", "stream_options", "stop", "n", "late_system")
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
    messages: Messages,
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    target: Target,
    max_tokens: int | None = None,
    options: Mapping[str, Any] | None = None,
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
        wire["tools"] = encode_tools(tools)
    if max_tokens is not None:
        wire["max_output_tokens"] = max_tokens
    if target.native:
        wire.update({"store": False, "include": ["reasoning.encrypted_content"]})
    return {**wire, **request_options(options or {})}


def encode_tools(tools: Iterable[Mapping[str, Any]]) -> list[Wire]:
    """Tools for Responses, where `strict` must be said because its default is the other way round."""
    return [_tool(tool) for tool in tools]


def _tool(tool: Mapping[str, Any]) -> Wire:
    custom = tool.get("custom")
    if isinstance(custom, Mapping):
        return {"type": "custom", **custom}
    function = function_of(tool)
    if function is None or (tool.get("type") == "function" and "strict" in tool and "name" in tool):
        return dict(tool)
    wire: Wire = {"type": "function", "name": wire_name(function.name)}
    if function.description is not None:
        wire["description"] = function.description
    return {**wire, "parameters": function.parameters, "strict": bool(function.strict)}


def _tool_choice(choice: Any) -> Any:
    """`tool_choice` of the chat form for Responses, which has one level less."""
    if isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping):
        return {"type": "function", "name": choice["function"].get("name")}
    if isinstance(choice, Mapping) and isinstance(choice.get("custom"), Mapping):
        return {"type": "custom", "name": choice["custom"].get("name")}
    return choice


def _custom_calls(messages: Messages, plan: IdPlan) -> frozenset[str]:
    """Wire ids of calls to tools that take free text."""
    found = set()
    for index, ids in plan.calls.items():
        for raw, wire_id in zip(messages[index].get("tool_calls") or (), ids, strict=False):
            if isinstance(raw, Mapping) and isinstance(raw.get("custom"), Mapping):
                found.add(wire_id)
    return frozenset(found)


def _items(message: Message, index: int, plan: IdPlan, custom: frozenset[str], target: Target) -> Iterator[Wire]:
    if is_result(message):
        call_id = plan.results.get(index, "")
        kind = "custom_tool_call_output" if call_id in custom else "function_call_output"
        yield {"type": kind, "call_id": call_id, "output": _output(message)}
    elif role_of(message) == "assistant":
        yield from _assistant(message, plan.calls.get(index, ()), custom, target)
    else:
        yield {"role": role_of(message) or "user", "content": _content(message)}


def _content(message: Message) -> Any:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    parts = [_input_part(part.raw) for part in parts_of(message)]
    return [part for part in parts if part is not None] or ""


def _input_part(raw: Any) -> Wire | None:
    part = chat_part(raw)
    if part is None:
        return None
    kind = part.get("type")
    if kind == "text":
        return {"type": "input_text", "text": str(part.get("text", ""))}
    if kind == "refusal":
        return {"type": "input_text", "text": str(part.get("refusal", ""))}
    if kind == "image_url":
        value = part.get("image_url")
        image: Mapping[str, Any] = value if isinstance(value, Mapping) else {"url": value}
        return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail") or "auto"}
    if kind == "file" and isinstance(part.get("file"), Mapping):
        return {"type": "input_file", **part["file"]}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": part.get("input_audio")}
    return {"type": "input_text", "text": as_json_text(part)["text"]}


def _output(message: Message) -> Any:
    """A result's text as text, a list as a list. It may hold text, images and files; sound is only named."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    shown = [
        {"type": "input_text", "text": note("audio")["text"]} if part.kind is PartKind.AUDIO else _input_part(part.raw)
        for part in parts_of(message)
    ]
    return [part for part in shown if part is not None] or ""


def _assistant(message: Message, ids: Sequence[str], custom: frozenset[str], target: Target) -> Iterator[Wire]:
    calls = [
        _call(call.name, call.arguments, wire_id, custom) for call, wire_id in zip(calls_of(message), ids, strict=True)
    ]
    state = state_for(message, NAME, target)
    layout = state.get("layout") if state else None
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
            if _resendable(entry["item"]):
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


def _resendable(item: Mapping[str, Any]) -> bool:
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
