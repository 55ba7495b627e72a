"""What `POST /v1/messages` accepts: fields, turns, blocks, pairing, cache marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_FIELDS = frozenset(
    "model max_tokens messages system tools tool_choice stream temperature top_p top_k stop_sequences metadata "
    "thinking cache_control container context_management diagnostics inference_geo output_config service_tier speed "
    "betas user_profile_id".split()
)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_USER = frozenset(("text", "image", "document", "search_result", "container_upload", "tool_result"))
_ASSISTANT = frozenset(
    "text thinking redacted_thinking tool_use server_tool_use web_search_tool_result web_fetch_tool_result "
    "code_execution_tool_result bash_code_execution_tool_result text_editor_code_execution_tool_result "
    "tool_search_tool_result container_upload".split()
)
_RESULT = frozenset(("text", "image", "document", "search_result", "tool_reference", "browser_state"))
_BLOCK_FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control", "transformations"},
    "document": {"type", "source", "cache_control", "citations", "context", "title"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
_IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))


def anthropic_violations(body: Mapping[str, Any], *, tool_search: bool = True) -> list[str]:
    """Every reason for a 400. Without `tool_search` it is a server that knows nothing of deferred loading."""
    return [*([] if tool_search else _without_search(body.get("tools", []))), *_check(body)]


def _without_search(tools: Any) -> Iterator[str]:
    for index, tool in enumerate(tools):
        kind = tool.get("type", "custom")
        if str(kind).startswith("tool_search"):
            yield (
                f"tools.{index}: Input tag {kind!r} found using 'type' does not match any of the expected tags: "
                "'bash_20250124', 'custom', 'web_search_20250305'"
            )
        elif "defer_loading" in tool:
            yield f"tools.{index}.custom.defer_loading: Extra inputs are not permitted"


def _check(body: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(set(body) - _FIELDS):
        yield f"{key}: Extra inputs are not permitted"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: Field required"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: must be at least 1"
    yield from _tools(body.get("tools", []))
    yield from _system(body.get("system"))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    for index, message in enumerate(messages):
        yield from _message(index, message)
    yield from _order(messages)
    yield from _pairing(messages)
    yield from _marks(body)


def _tools(tools: Any) -> Iterator[str]:
    if not isinstance(tools, list):
        yield "tools: must be a list"
        return
    names = []
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            yield f"tools.{index}: must be an object"
            continue
        names.append(tool.get("name"))
        if not _NAME.fullmatch(str(tool.get("name", ""))):
            yield f"tools.{index}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        if tool.get("type", "custom") == "custom":
            schema = tool.get("input_schema")
            if not isinstance(schema, Mapping) or schema.get("type") != "object":
                yield f"tools.{index}.custom.input_schema.type: Field required"
        if tool.get("defer_loading") and tool.get("cache_control"):
            yield f"Tool '{tool.get('name')}' cannot have both defer_loading=true and cache_control set."
    if len(set(names)) != len(names):
        yield "tools: Tool names must be unique."
    if tools and all(isinstance(tool, Mapping) and tool.get("defer_loading") for tool in tools):
        yield "tools: at least one tool must have defer_loading=false"


def _system(system: Any) -> Iterator[str]:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield "system: Input should be a valid list"
        return
    for index, block in enumerate(system):
        where = f"system.{index}"
        if not isinstance(block, Mapping) or block.get("type") != "text":
            yield f"{where}: only text blocks are allowed"
        else:
            yield from _block(where, block, frozenset(("text",)))


def _message(index: int, message: Any) -> Iterator[str]:
    where = f"messages.{index}"
    if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
        yield f"{where}: must have exactly role and content"
        return
    role, content = message["role"], message["content"]
    if role not in ("user", "assistant", "system"):
        yield f"{where}.role: Unexpected role {role!r}"
        return
    if isinstance(content, str):
        if not content.strip():
            yield f"{where}: all messages must have non-empty content"
        return
    if not isinstance(content, list) or not content:
        yield f"{where}: all messages must have non-empty content"
        return
    allowed = {"user": _USER, "assistant": _ASSISTANT, "system": frozenset(("text",))}[role]
    for position, block in enumerate(content):
        yield from _block(f"{where}.content.{position}", block, allowed)


def _block(where: str, block: Any, allowed: frozenset[str]) -> Iterator[str]:
    if not isinstance(block, Mapping):
        yield f"{where}: must be an object"
        return
    kind = str(block.get("type"))
    if kind not in allowed:
        yield f"{where}: Input tag {kind!r} does not match any of the expected tags"
        return
    for key in sorted(set(block) - _BLOCK_FIELDS.get(kind, set(block))):
        yield f"{where}.{kind}.{key}: Extra inputs are not permitted"
    yield from _block_content(where, kind, block)


def _block_content(where: str, kind: str, block: Mapping[str, Any]) -> Iterator[str]:
    if kind == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
        yield f"{where}.text: text content blocks must contain non-whitespace text"
    elif kind == "tool_use":
        if not _ID.fullmatch(str(block.get("id", ""))):
            yield f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if not _NAME.fullmatch(str(block.get("name", ""))):
            yield f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        if not isinstance(block.get("input"), Mapping):
            yield f"{where}.tool_use.input: Input should be a valid dictionary"
    elif kind == "tool_result":
        content = block.get("content", "")
        if isinstance(content, list):
            for position, inner in enumerate(content):
                yield from _block(f"{where}.content.{position}", inner, _RESULT)
        elif not isinstance(content, str):
            yield f"{where}.tool_result.content: must be a string or a list"
    elif kind == "thinking" and not (block.get("signature") and isinstance(block.get("thinking"), str)):
        yield f"{where}: Invalid `signature` in `thinking` block"
    elif kind == "image":
        yield from _image(where, block.get("source"))


def _image(where: str, source: Any) -> Iterator[str]:
    kind = source.get("type") if isinstance(source, Mapping) else None
    if kind == "base64" and source["media_type"] not in _IMAGES:
        yield f"{where}.image.source.base64.media_type: {source['media_type']!r} is not an image type"
    elif kind not in ("base64", "url", "file"):
        yield f"{where}.image.source: Field required"


def _order(messages: list[Any]) -> Iterator[str]:
    roles = [message.get("role") for message in messages if isinstance(message, Mapping)]
    if roles and roles[0] != "user":
        yield 'messages: first message must use the "user" role'
    for index in range(1, len(roles)):
        if roles[index] == roles[index - 1]:
            yield f'messages.{index}: roles must alternate between "user" and "assistant"'
        if roles[index] == "system" and roles[index - 1] != "user":
            yield f"messages.{index}: a system message must directly follow a user message"
    last = messages[-1]
    if isinstance(last, Mapping) and last.get("role") == "assistant":
        content = last.get("content")
        text = content if isinstance(content, str) else (content or [{}])[-1].get("text", "")
        if isinstance(text, str) and text != text.rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"


def _blocks(message: Any) -> list[Mapping[str, Any]]:
    content = message.get("content") if isinstance(message, Mapping) else None
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _pairing(messages: list[Any]) -> Iterator[str]:
    seen: set[str] = set()
    for index, message in enumerate(messages):
        calls = [str(block.get("id")) for block in _blocks(message) if block.get("type") == "tool_use"]
        for call in calls:
            if call in seen:
                yield f"messages.{index}: `tool_use` ids must be unique"
            seen.add(call)
        following = _blocks(messages[index + 1]) if index + 1 < len(messages) else []
        answers = [str(block.get("tool_use_id")) for block in following if block.get("type") == "tool_result"]
        missing = [call for call in calls if call not in answers]
        if missing:
            named = ", ".join(missing)
            yield f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {named}"
        yield from _results(index, message, messages[index - 1] if index else None)


def _results(index: int, message: Any, before: Any) -> Iterator[str]:
    blocks = _blocks(message)
    results = [block for block in blocks if block.get("type") == "tool_result"]
    calls = {block.get("id") for block in _blocks(before) if block.get("type") == "tool_use"}
    answered: set[Any] = set()
    for block in results:
        name = block.get("tool_use_id")
        if name not in calls:
            yield f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {name}"
        if name in answered:
            yield f"messages.{index}: each tool_use must have a single result. Found multiple for id: {name}"
        answered.add(name)
    if results and any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
        yield f"messages.{index}: `tool_result` blocks must come first"


def _marks(body: Mapping[str, Any]) -> Iterator[str]:
    marks = list(_all_marks(body))
    if len(marks) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}."
    short = False
    for where, block, mark in marks:
        kind = block.get("type")
        if not isinstance(mark, Mapping) or mark.get("type") != "ephemeral" or set(mark) - {"type", "ttl"}:
            yield f"{where}.cache_control: must be of type ephemeral"
            continue
        if mark.get("ttl", "5m") not in ("5m", "1h"):
            yield f"{where}.cache_control.ttl: Input should be '5m' or '1h'"
        if kind in ("thinking", "redacted_thinking"):
            yield f"{where}: cache_control may not be set for thinking blocks"
        empty = kind == "text" and not str(block.get("text", "")).strip()
        if empty or (kind == "tool_result" and not block.get("content")):
            yield f"{where}: cache_control cannot be set for empty text blocks"
        if mark.get("ttl", "5m") == "1h" and short:
            yield f"{where}: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        short = short or mark.get("ttl", "5m") == "5m"


def _all_marks(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    for index, tool in enumerate(body.get("tools") or ()):
        if isinstance(tool, Mapping) and tool.get("cache_control"):
            yield f"tools.{index}", tool, tool["cache_control"]
    system = body.get("system")
    for index, block in enumerate(system if isinstance(system, list) else ()):
        if isinstance(block, Mapping) and block.get("cache_control"):
            yield f"system.{index}", block, block["cache_control"]
    for index, message in enumerate(body.get("messages") or ()):
        for position, block in enumerate(_blocks(message)):
            where = f"messages.{index}.content.{position}"
            inner = block.get("content")
            for nested in inner if isinstance(inner, list) else ():
                if isinstance(nested, Mapping) and nested.get("cache_control"):
                    yield where, nested, nested["cache_control"]
            if block.get("cache_control"):
                yield where, block, block["cache_control"]
