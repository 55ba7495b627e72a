"""What `POST /v1/responses` accepts: fields, items, and each call with its output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_FIELDS = frozenset(
    "model input instructions tools tool_choice parallel_tool_calls max_output_tokens max_tool_calls stream "
    "stream_options temperature top_p text reasoning include store truncation metadata user prompt prompt_cache_key "
    "prompt_cache_options prompt_cache_retention safety_identifier service_tier background previous_response_id "
    "conversation top_logprobs moderation client_metadata".split()
)
_INPUT = frozenset(("input_text", "input_image", "input_file", "input_audio"))
_OUTPUT = frozenset(("output_text", "refusal"))
_RESULT = frozenset(("input_text", "input_image", "input_file"))
_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_ITEM_FIELDS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "function_call": {"type", "call_id", "name", "arguments", "id", "status", "namespace", "caller"},
    "custom_tool_call": {"type", "call_id", "name", "input", "id", "namespace", "caller"},
    "function_call_output": {"type", "call_id", "output", "id", "status"},
    "custom_tool_call_output": {"type", "call_id", "output", "id"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
}


def responses_violations(body: Mapping[str, Any]) -> list[str]:
    """Every reason for a 400."""
    return list(_check(body))


def _check(body: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(set(body) - _FIELDS):
        yield f"Unknown parameter: '{key}'."
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "Missing required parameter: 'model'."
    given = body.get("input")
    if isinstance(given, str):
        return
    if not isinstance(given, list):
        yield "Missing required parameter: 'input'."
        return
    for index, item in enumerate(given):
        yield from _item(f"input[{index}]", item)
    yield from _pairing(given)
    yield from _reasoning(given, stored=body.get("store") is not False)
    yield from _tools(body.get("tools"))


def _item(where: str, item: Any) -> Iterator[str]:
    if not isinstance(item, Mapping):
        yield f"Invalid type for '{where}'"
        return
    kind = str(item.get("type") or "message")
    for key in sorted(set(item) - _ITEM_FIELDS.get(kind, set(item))):
        yield f"Unknown parameter: '{where}.{key}'."
    if kind == "message":
        yield from _message(where, item)
    elif kind in _CALLS:
        if not isinstance(item.get("call_id"), str) or not 1 <= len(item["call_id"]) <= 64:
            yield f"Invalid '{where}.call_id': string too long. Expected a string with maximum length 64"
        text = item.get("arguments" if kind == "function_call" else "input")
        if not isinstance(text, str) or not item.get("name"):
            yield f"Missing required parameter: '{where}.arguments'."
    elif kind in _CALLS.values():
        output = item.get("output")
        parts = output if isinstance(output, list) else []
        if not isinstance(output, str | list) or any(_kind(part) not in _RESULT for part in parts):
            yield f"Invalid value for '{where}.output'"


def _message(where: str, item: Mapping[str, Any]) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        yield f"Invalid value: {role!r} - '{where}.role'"
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"Invalid type for '{where}.content'"
        return
    allowed = _OUTPUT if role == "assistant" else _INPUT
    for position, part in enumerate(content):
        if _kind(part) not in allowed:
            yield f"Invalid value: {_kind(part)!r} - '{where}.content[{position}]'. Supported: {sorted(allowed)}"


def _kind(part: Any) -> str:
    return str(part.get("type")) if isinstance(part, Mapping) else type(part).__name__


def _pairing(items: list[Any]) -> Iterator[str]:
    calls: dict[str, str] = {}
    answered: set[str] = set()
    for index, item in enumerate(items):
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind in _CALLS:
            if item.get("call_id") in calls:
                yield f"input[{index}]: Duplicate call_id {item.get('call_id')!r}"
            calls[str(item.get("call_id"))] = _CALLS[kind]
        elif kind in _CALLS.values():
            name = str(item.get("call_id"))
            if calls.get(name) != kind:
                yield f"No tool call found for function call output with call_id {name}."
            if name in answered:
                yield f"input[{index}]: Duplicate output for call_id {name}"
            answered.add(name)
    for name in calls:
        if name not in answered:
            yield f"No tool output found for function call {name}."


def _reasoning(items: list[Any], stored: bool) -> Iterator[str]:
    for index, item in enumerate(items):
        if not isinstance(item, Mapping) or item.get("type") != "reasoning":
            continue
        following = items[index + 1] if index + 1 < len(items) else None
        if not isinstance(following, Mapping) or following.get("role") == "user":
            yield f"Item {item.get('id')!r} of type 'reasoning' was provided without its required following item."
        if not stored and not (item.get("encrypted_content") or item.get("content")):
            yield f"Item with id {item.get('id')!r} not found. Items are not persisted when `store` is set to false."
        if not isinstance(item.get("summary"), list):
            yield f"Missing required parameter: 'input[{index}].summary'."


def _tools(tools: Any) -> Iterator[str]:
    for index, tool in enumerate(tools or ()):
        if not isinstance(tool, Mapping) or "type" not in tool:
            yield f"Missing required parameter: 'tools[{index}].type'."
        elif tool["type"] == "function" and not {"name", "parameters", "strict"} <= set(tool):
            yield f"Missing required parameter: 'tools[{index}].name'."
