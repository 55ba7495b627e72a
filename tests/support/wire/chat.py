"""What `POST /v1/chat/completions` accepts: fields, roles, parts, and each call with its result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_FIELDS = frozenset(
    "model messages tools tool_choice parallel_tool_calls max_tokens max_completion_tokens stream stream_options "
    "temperature top_p n stop seed user response_format reasoning_effort verbosity prompt_cache_key "
    "prompt_cache_options prompt_cache_retention safety_identifier metadata store logprobs top_logprobs logit_bias "
    "frequency_penalty presence_penalty modalities audio prediction service_tier web_search_options "
    "function_call functions".split()
)
_ROLE_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "refusal", "audio", "tool_calls", "function_call"},
    "tool": {"role", "content", "tool_call_id", "name"},
    "function": {"role", "content", "name"},
}
REASONING = frozenset(("reasoning_content", "reasoning", "reasoning_details", "reasoning_opaque", "reasoning_text"))
_PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
    "function": set[str](),
}
_PART_FIELDS = {
    "text": {"type", "text"},
    "refusal": {"type", "refusal"},
    "image_url": {"type", "image_url"},
    "input_audio": {"type", "input_audio"},
    "file": {"type", "file"},
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def chat_violations(body: Mapping[str, Any], *, marks: bool = False, reasoning: bool = False) -> list[str]:
    """Every reason for a 400. `marks` and `reasoning` allow what some compatible endpoints take beyond OpenAI."""
    return list(_check(body, marks, reasoning))


def _check(body: Mapping[str, Any], marks: bool, reasoning: bool) -> Iterator[str]:
    for key in sorted(set(body) - _FIELDS):
        yield f"Unrecognized request argument supplied: {key}"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "[] is too short - 'messages'"
        return
    count = 0
    for index, message in enumerate(messages):
        count += _count_marks(message)
        yield from _message(f"messages[{index}]", message, marks, reasoning)
    if count > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {count}."
    yield from _pairing(messages)
    yield from _tools(body.get("tools"))


def _count_marks(message: Any) -> int:
    content = message.get("content") if isinstance(message, Mapping) else None
    parts = content if isinstance(content, list) else []
    return sum(1 for part in parts if isinstance(part, Mapping) and "cache_control" in part)


def _message(where: str, message: Any, marks: bool, reasoning: bool) -> Iterator[str]:
    role = message.get("role") if isinstance(message, Mapping) else None
    if role not in _ROLE_FIELDS:
        yield f"Invalid value: {role!r} - '{where}.role'"
        return
    allowed = _ROLE_FIELDS[role] | (REASONING if reasoning and role == "assistant" else set())
    for key in sorted(set(message) - allowed):
        yield f"Additional properties are not allowed ({key!r} was unexpected) - '{where}'"
    yield from _content(where, role, message, marks)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield f"Missing required parameter: '{where}.tool_call_id'"
    audio = message.get("audio")
    if audio is not None and (not isinstance(audio, Mapping) or set(audio) != {"id"}):
        yield f"Invalid '{where}.audio': only an id is allowed"
    if "tool_calls" in message:
        yield from _calls(where, message["tool_calls"])


def _content(where: str, role: str, message: Mapping[str, Any], marks: bool) -> Iterator[str]:
    content = message.get("content")
    if content is None:
        silent = role == "assistant" and any(
            message.get(key) for key in ("tool_calls", "function_call", "audio", "refusal")
        )
        if not silent:
            yield f"Invalid value for '{where}.content': expected a string, got null."
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"Invalid type for '{where}.content'"
        return
    for position, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind not in _PARTS[role]:
            yield f"Invalid value: {kind!r} - '{where}.content[{position}].type'"
            continue
        extra = set(part) - _PART_FIELDS[kind] - ({"cache_control"} if marks else set())
        if extra:
            yield f"Additional properties are not allowed ({sorted(extra)}) - '{where}.content[{position}]'"
        if "cache_control" in part and (kind != "text" or not part["text"].strip()):
            yield f"'{where}.content[{position}]': cache_control cannot be set for empty text blocks"
        if kind == "image_url" and not (isinstance(part["image_url"], Mapping) and part["image_url"].get("url")):
            yield f"Missing required parameter: '{where}.content[{position}].image_url.url'"


def _calls(where: str, calls: Any) -> Iterator[str]:
    if not isinstance(calls, list) or not calls:
        yield f"[] is too short - '{where}.tool_calls'"
        return
    for position, call in enumerate(calls):
        place = f"{where}.tool_calls[{position}]"
        if not isinstance(call, Mapping) or call.get("type") not in ("function", "custom"):
            yield f"Missing required parameter: '{place}.type'"
            continue
        if set(call) - {"id", "type", "function", "custom", "extra_content"}:
            yield f"Additional properties are not allowed - '{place}'"
        if not isinstance(call.get("id"), str) or not 1 <= len(call["id"]) <= 40:
            yield f"Invalid '{place}.id': string too long. Expected a string with maximum length 40"
        if call["type"] == "function":
            yield from _function(place, call.get("function"))


def _function(place: str, function: Any) -> Iterator[str]:
    if not isinstance(function, Mapping) or not _NAME.fullmatch(str(function.get("name", ""))):
        yield f"Invalid '{place}.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'"
        return
    try:
        value = json.loads(function.get("arguments", ""))
    except (TypeError, ValueError):
        yield f"Invalid '{place}.function.arguments': not JSON"
        return
    if not isinstance(value, dict):
        yield f"Invalid '{place}.function.arguments': not an object"


def _pairing(messages: list[Any]) -> Iterator[str]:
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                yield (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. - 'messages.[{index}].role'"
                )
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}"
        waiting = [str(call.get("id")) for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
        if len(set(waiting)) != len(waiting):
            yield f"messages[{index}]: two calls have one id"
    if waiting:
        yield f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}"


def _tools(tools: Any) -> Iterator[str]:
    for index, tool in enumerate(tools or ()):
        body = tool.get("function") if isinstance(tool, Mapping) else None
        if isinstance(tool, Mapping) and tool.get("type") == "custom":
            continue
        if not isinstance(body, Mapping) or tool.get("type") != "function":
            yield f"Missing required parameter: 'tools[{index}].function'"
        elif not _NAME.fullmatch(str(body.get("name", ""))):
            yield f"Invalid 'tools[{index}].function.name'"
