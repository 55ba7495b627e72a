"""OpenAI-format messages as a request to Chat Completions, or to an endpoint that says it is compatible.

A message that needs no change goes out as the same object. What is ours (`provider_state`, cache marks, `is_error`)
never leaves; what belongs to another provider doesn't either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leporello.codecs.base import Dialect, Target, Wire, without
from leporello.codecs.ids import CHAT_IDS, MISTRAL_IDS, IdPlan, plan_ids
from leporello.codecs.names import wire_name
from leporello.codecs.openai_chat.marks import place_marks
from leporello.codecs.openai_chat.parts import MARK, NATIVE_PARTS, chat_part, unmarked
from leporello.codecs.parts import as_json_text, text_part, valid_arguments
from leporello.codecs.state import STATE, state_for
from leporello.codecs.tools import chat_tools
from leporello.messages import Message, Messages, PartKind, calls_of, is_result, parts_of, role_of

REASONING_FIELDS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_opaque",
    "reasoning_text",
)
"""Fields of an assistant message in which compatible endpoints carry reasoning, and want it back."""

_OURS = (STATE, "is_error", "annotations")


def encode_request(
    messages: Messages,
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    target: Target,
    max_tokens: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Wire:
    """The body of `POST /chat/completions`."""
    if not target.cache_marks:
        messages = [unmarked(message) for message in messages]
    plan = plan_ids(messages, MISTRAL_IDS if target.family == "mistral" else CHAT_IDS)
    listed = [message for index in range(len(messages)) for message in _messages(messages, index, plan, target)]
    wire: Wire = {"model": target.model, "messages": place_marks(listed) if target.cache_marks else listed}
    if tools:
        wire["tools"] = chat_tools(tools)
    if max_tokens is not None:
        wire["max_completion_tokens" if target.native else "max_tokens"] = max_tokens
    return {**wire, **(options or {})}


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
    mark = raw.get(MARK) if isinstance(raw, Mapping) else None
    return {**part, MARK: mark} if mark is not None and target.cache_marks else part


def _assistant(message: Message, ids: Sequence[str], target: Target) -> Message:
    state = state_for(message, Dialect.OPENAI_CHAT, target)
    wire = _content(without(message, *REASONING_FIELDS), target)
    if isinstance(wire.get("content"), list):
        wire = {**wire, "content": _assistant_parts(wire["content"])}
    # Recorded messages often carry these as null, which no endpoint takes.
    wire = without(wire, *(key for key in ("tool_calls", "function_call", "audio") if not message.get(key)))
    calls = calls_of(message)
    if isinstance(message.get("tool_calls"), list):
        wire = _with_calls(wire, message, ids, state) if calls else without(wire, "tool_calls")
    if not calls and wire.get("content") is None and not wire.get("refusal") and "audio" not in wire:
        wire = {**wire, "content": ""}
    if isinstance(wire.get("audio"), Mapping):
        wire = _with_audio(wire, target)
    if state is not None and isinstance(state.get("fields"), Mapping):
        wire = {**wire, **{key: state["fields"][key] for key in REASONING_FIELDS if key in state["fields"]}}
    return wire


def _assistant_parts(parts: Sequence[Any]) -> Any:
    """An assistant may send text and refusals only; without any the content is null."""
    kept = [part for part in parts if isinstance(part, Mapping) and part.get("type") in ("text", "refusal")]
    return kept or None


def _with_calls(wire: Message, message: Message, ids: Sequence[str], state: Mapping[str, Any] | None) -> Message:
    extras = state.get("calls") if state else None
    changed = []
    for position, (raw, call) in enumerate(zip(message["tool_calls"], calls_of(message), strict=True)):
        extra = extras.get(str(position)) if isinstance(extras, Mapping) else None
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
    if isinstance(content, list) and any(not _is_text(part) for part in content):
        wire = {**wire, "content": [_result_part(part) for part in content]}
    return wire


def _result_part(part: Any) -> Any:
    if _is_text(part):
        return part
    if not _is_attachable(part):
        return as_json_text(part)
    kind = "image" if part["type"] == "image_url" else "attachment"
    return text_part(f"[{kind}: shown in the next message]")


def _is_attachable(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in ("image_url", "input_audio", "file")


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _images_of_results(messages: Messages, last: int, plan: IdPlan) -> Iterator[Message]:
    """Results carry only text here: what else they hold follows in one user message, each named by its call."""
    first = last
    while first > 0 and is_result(messages[first - 1]):
        first -= 1
    shown: list[Any] = []
    for index in range(first, last + 1):
        attached = [chat_part(part.raw) for part in parts_of(messages[index]) if part.kind is not PartKind.TEXT]
        kept = [without(part, MARK) for part in attached if part is not None and _is_attachable(part)]
        if kept:
            shown.append(text_part(f"[From the result of {plan.results.get(index, 'a tool')}:]"))
            shown.extend(kept)
    if shown:
        yield {"role": "user", "content": shown}
