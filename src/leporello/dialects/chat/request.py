"""Requests to Chat Completions, or to an endpoint that says it is compatible: written, and read from clients."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leporello.caching import MARK, without_marks
from leporello.dialects.base import STATE, Target, Wire, WireReply, at, new_state, objects, state_for, without
from leporello.dialects.dialect import DecodedRequest, Options, Tools
from leporello.dialects.pieces import (
    IdPlan,
    IdRule,
    as_json_text,
    chat_function,
    digest_escape,
    file_note,
    function_of,
    is_cut,
    plan_ids,
    text_part,
    valid_arguments,
    wire_name,
)
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, Messages, PartKind, calls_of, is_result, parts_of, result_id, role_of

NAME = "openai_chat"
NATIVE_PARTS = frozenset(("text", "image_url", "input_audio", "file", "refusal"))
_ATTACHABLE = ("image_url", "input_audio", "file")
_ANTHROPIC_ONLY = frozenset(("search_result", "container_upload", "tool_reference", "browser_state"))


def unmarked(message: Message) -> Message:
    """The message as it was before a cache mark was laid on it: marking turns a text into a list of one part."""
    plain = without(message, MARK)
    content = plain.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        part = content[0]
        if set(part) == {"type", "text", MARK} and part["type"] == "text":
            return {**plain, "content": part["text"]}
    return plain


def chat_part(part: Any) -> Wire | None:
    """One part for a user message; None for reasoning of another provider. Kinds nobody here knows go along as they
    are: the endpoint may know them (`video_url`)."""
    if isinstance(part, str):
        return text_part(part)
    if not isinstance(part, Mapping):
        return as_json_text(part)
    # A mark that moves on must leave no trace, not even in the size a note states.
    part = without(part, MARK)
    kind = part.get("type")
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        return None
    if kind in ("input_text", "output_text"):
        return text_part(str(part.get("text", "")))
    if kind == "input_image":
        return _image(part)
    if kind == "image":
        return _anthropic_image(part)
    if kind == "input_file":
        named = {key: part[key] for key in ("file_id", "filename", "file_data") if key in part}
        return {"type": "file", "file": named} if named else file_note(part)
    if kind == "document":
        return _document(part)
    if kind in _ANTHROPIC_ONLY:
        return as_json_text(part)
    return without(part)


def _image(part: Mapping[str, Any]) -> Wire:
    url = part.get("image_url")
    if not isinstance(url, str):
        return as_json_text(part)
    detail = {"detail": part["detail"]} if part.get("detail") else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _anthropic_image(part: Mapping[str, Any]) -> Wire:
    source = part.get("source")
    if isinstance(source, Mapping) and source.get("type") == "base64":
        url = f"data:{source.get('media_type')};base64,{source.get('data')}"
    elif isinstance(source, Mapping) and source.get("type") == "url":
        url = str(source.get("url"))
    else:
        return as_json_text(part)
    return {"type": "image_url", "image_url": {"url": url}}


def _document(part: Mapping[str, Any]) -> Wire:
    source = part.get("source")
    if not isinstance(source, Mapping):
        return file_note(part)
    title = str(part.get("title") or "document")
    if source.get("type") == "base64":
        data = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "file", "file": {"filename": title, "file_data": data}}
    if source.get("type") == "text":
        return text_part(f"{title}\n\n{source.get('data', '')}")
    return file_note(part)


def place_marks(messages: list[Message]) -> list[Message]:
    """The messages with each mark where the wire wants it, all text as parts."""
    placed = without_marks(messages)
    waiting: list[Any] = []
    for index in range(len(placed) - 1, -1, -1):
        found = [part[MARK] for part in objects(messages[index].get("content")) if part.get(MARK)]
        waiting += ([messages[index][MARK]] if messages[index].get(MARK) else []) + found[-1:]
        message, content = placed[index], placed[index].get("content")
        if isinstance(content, str) and content:
            message = {**message, "content": [text_part(content)]}
        if waiting:
            carrying = _marked(message, waiting[0])
            if carrying is not None:
                # Marks that meet on one message are one mark.
                message, waiting = carrying, []
        placed[index] = message
    return placed


def _marked(message: Message, mark: Any) -> Message | None:
    """The message with the mark on its last text, or None when it has no text to carry it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if at(part, "type") == "text" and str(part.get("text", "")).strip():
            return {**message, "content": [*parts[:index], {**part, MARK: mark}, *parts[index + 1 :]]}
    return None


REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "reasoning_opaque", "reasoning_text")
"""Fields of an assistant message in which compatible endpoints carry reasoning, and want it back."""


def _nine(payload: str) -> str:
    return hashlib.blake2b(payload.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()[:9]


IDS = IdRule(lazy_regex(r".{1,40}", re.DOTALL), digest_escape, unique_in_request=False)
MISTRAL_IDS = IdRule(lazy_regex(r"[a-zA-Z0-9]{9}"), _nine)

_OURS = (STATE, "is_error", "annotations")


def encode_request(
    messages: Messages, tools: Tools = (), *, target: Target, max_tokens: int | None = None, options: Options = None
) -> Wire:
    if not target.cache_marks:
        messages = [unmarked(message) for message in messages]
    plan = plan_ids(messages, MISTRAL_IDS if target.family == "mistral" else IDS)
    listed = [message for index in range(len(messages)) for message in _messages(messages, index, plan, target)]
    wire: Wire = {"model": target.model, "messages": place_marks(listed) if target.cache_marks else listed}
    if tools:
        wire["tools"] = [encode_tool(tool) for tool in tools]
    if max_tokens is not None:
        wire["max_completion_tokens" if target.native else "max_tokens"] = max_tokens
    return {**wire, **(options or {})}


def encode_tool(tool: Mapping[str, Any]) -> Wire:
    """A tool for Chat Completions; one already in that form is the same object."""
    is_function = isinstance(tool.get("function"), Mapping) and MARK not in tool
    function = function_of(tool)
    fits = function is not None and wire_name(function.name) == function.name
    if (is_function and fits) or isinstance(tool.get("custom"), Mapping):
        return tool if isinstance(tool, dict) else dict(tool)
    if function is None:
        return dict(tool)
    return {"type": "function", "function": chat_function(function, wire_name(function.name))}


def _messages(messages: Messages, index: int, plan: IdPlan, target: Target) -> Iterator[Message]:
    message = messages[index]
    if is_result(message):
        yield _result(message, plan.results.get(index, ""), target)
        if index + 1 == len(messages) or not is_result(messages[index + 1]):
            yield from _images_of_results(messages, index, plan)
    elif role_of(message) == "assistant":
        yield _assistant(message, plan.calls.get(index, ()), target)
    elif role_of(message) == "developer" and not target.native:
        # Few compatible endpoints know the newer role.
        yield {**_content(message, target), "role": "system"}
    else:
        yield _content(message, target)


def _content(message: Message, target: Target) -> Message:
    """The message with parts this dialect takes; the same object when nothing had to change."""
    kept = without(message, *_OURS)
    content = kept.get("content")
    if content is None and role_of(message) != "assistant":
        return {**kept, "content": ""}
    if content is not None and not isinstance(content, str | list):
        return {**kept, "content": as_json_text(content)["text"]}
    if not isinstance(content, list):
        return kept
    parts = [_part(raw, target) for raw in content]
    shown = [part for part in parts if part is not None]
    if content and len(shown) == len(content) and all(new is old for new, old in zip(shown, content, strict=True)):
        return kept
    return {**kept, "content": shown or ""}


def _part(raw: Any, target: Target) -> Any:
    part = chat_part(raw)
    if part is None:
        return None
    if target.native and part.get("type") not in NATIVE_PARTS:
        # The vendor's own endpoint refuses what it doesn't know; others may know it.
        part = as_json_text(without(raw, MARK) if isinstance(raw, Mapping) else raw)
    mark = at(raw, MARK)
    return {**part, MARK: mark} if mark is not None and target.cache_marks else part


def _assistant(message: Message, ids: Sequence[str], target: Target) -> Message:
    state = state_for(message, NAME, target)
    wire = _content(without(message, *REASONING_FIELDS), target)
    if isinstance(wire.get("content"), list):
        # An assistant may send text and refusals only; without any the content is null.
        wire = {
            **wire,
            "content": [part for part in wire["content"] if at(part, "type") in ("text", "refusal")] or None,
        }
    # Recorded messages often carry these as null, which no endpoint takes.
    wire = without(wire, *(key for key in ("tool_calls", "function_call", "audio") if not message.get(key)))
    calls = calls_of(message)
    if isinstance(message.get("tool_calls"), list):
        wire = _with_calls(wire, message, ids, state) if calls else without(wire, "tool_calls")
    if not calls and wire.get("content") is None and not wire.get("refusal") and "audio" not in wire:
        wire = {**wire, "content": ""}
    if isinstance(wire.get("audio"), Mapping):
        wire = _with_audio(wire, target)
    fields = at(state, "fields")
    if not isinstance(fields, Mapping):
        return wire
    return {**wire, **{key: fields[key] for key in REASONING_FIELDS if key in fields}}


def _with_calls(wire: Message, message: Message, ids: Sequence[str], state: Mapping[str, Any] | None) -> Message:
    changed = []
    for position, (raw, call) in enumerate(zip(message["tool_calls"], calls_of(message), strict=True)):
        extra = at(state, "calls", str(position))
        changed.append(_tool_call(raw, call.arguments, ids[position], extra))
    if all(new is old for new, old in zip(changed, message["tool_calls"], strict=True)):
        return wire
    return {**wire, "tool_calls": changed}


def _tool_call(raw: Wire, arguments: str, wire_id: str, extra: Mapping[str, Any] | None) -> Wire:
    call = raw
    if raw.get("id") != wire_id or "type" not in raw:
        call = {**raw, "id": wire_id, "type": raw.get("type") or "function"}
    function = raw.get("function")
    if isinstance(function, Mapping):
        valid, name = valid_arguments(arguments), wire_name(str(function.get("name") or ""))
        if function.get("arguments") != valid or function.get("name") != name:
            call = {**call, "function": {**function, "name": name, "arguments": valid}}
    return {**call, **extra} if extra else call


def _with_audio(wire: Message, target: Target) -> Message:
    """Spoken answers go back by id to the vendor that keeps them; others get the transcript."""
    audio = wire["audio"]
    if target.native and isinstance(audio.get("id"), str):
        return {**wire, "audio": {"id": audio["id"]}}
    rest = without(wire, "audio")
    transcript = audio.get("transcript")
    if isinstance(transcript, str) and not rest.get("content"):
        rest = {**rest, "content": transcript}
    return rest if rest.get("content") is not None or rest.get("tool_calls") else {**rest, "content": ""}


def _result(message: Message, call_id: str, target: Target) -> Message:
    wire = _content(message, target)
    if role_of(message) == "tool" and message.get("tool_call_id") != call_id:
        wire = {**wire, "tool_call_id": call_id}
    content = wire.get("content")
    if isinstance(content, list) and any(at(part, "type") != "text" for part in content):
        wire = {**wire, "content": [_result_part(part) for part in content]}
    return wire


def _result_part(part: Any) -> Any:
    kind = at(part, "type")
    if kind == "text":
        return part
    if kind not in _ATTACHABLE:
        return as_json_text(part)
    return text_part(f"[{'image' if kind == 'image_url' else 'attachment'}: shown in the next message]")


def _images_of_results(messages: Messages, last: int, plan: IdPlan) -> Iterator[Message]:
    """Results carry only text here: what else they hold follows in one user message, each named by its call."""
    first = last
    while first > 0 and is_result(messages[first - 1]):
        first -= 1
    shown: list[Any] = []
    for index in range(first, last + 1):
        attached = [chat_part(part.raw) for part in parts_of(messages[index]) if part.kind is not PartKind.TEXT]
        kept = [without(part, MARK) for part in attached if part is not None and at(part, "type") in _ATTACHABLE]
        if kept:
            shown.append(text_part(f"[From the result of {plan.results.get(index, 'a tool')}:]"))
            shown.extend(kept)
    if shown:
        yield {"role": "user", "content": shown}


def encode_items(messages: Sequence[Message], target: Target) -> list[Wire]:
    listed: list[Wire] = encode_request(messages, target=target)["messages"]
    return [_with_ids(item, messages[0]) for item in listed] if len(messages) == 1 else listed


def _with_ids(item: Wire, message: Message) -> Wire:
    """Long ids are not shortened here as they would be for a history of another provider's."""
    if is_result(message) and "tool_call_id" in item:
        return {**item, "tool_call_id": result_id(message)}
    if item.get("tool_calls"):
        named = zip(item["tool_calls"], calls_of(message), strict=True)
        return {**item, "tool_calls": [{**call, "id": own.id} for call, own in named]}
    return item


OUTPUT_CAPS = ("max_completion_tokens", "max_tokens")
_OWN_FIELDS = frozenset(("role", "content", "refusal", "tool_calls", "function_call", "audio", "annotations", "name"))
_CALL_FIELDS = frozenset(("id", "type", "function", "custom", "index"))


def decode_reply(wire: Mapping[str, Any], target: Target) -> WireReply:
    """A `chat.completion` object, from a plain answer or assembled from a stream."""
    choice = at(wire, "choices", 0)
    finish = str(at(choice, "finish_reason") or "stop")
    raw = at(choice, "message")
    message = assistant_message(raw if isinstance(raw, Mapping) else {}, target, finish)
    if finish in ("stop", "function_call") and message.get("tool_calls"):
        # Several compatible servers end a turn with calls by `stop`.
        finish = "tool_calls"
    return WireReply.read(wire, message, finish, wire.get("usage") or at(choice, "usage"), target)


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
    for item in objects(raw):
        arguments = at(item, "function", "arguments")
        if finish == "length" and isinstance(arguments, str) and is_cut(arguments):
            continue
        extra = {key: value for key, value in item.items() if key not in _CALL_FIELDS and value is not None}
        if extra:
            extras[str(len(calls))] = extra
        kept = {key: item[key] for key in ("function", "custom") if item.get(key) is not None}
        calls.append({"id": str(item.get("id") or ""), "type": item.get("type") or "function", **kept})
    return calls, extras


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
    plain = without(message, *fields)
    return {**plain, STATE: new_state(plain, NAME, target, {"fields": fields})}
