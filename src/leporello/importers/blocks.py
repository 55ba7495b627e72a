"""Content parts in every dialect: Anthropic's, OpenAI's, Google's and those of agents that mix them.

An agent's file mostly differs from another's in its envelope. What is inside is one of these few shapes.
"""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import AssistantDraft, TranscriptBuilder
from leporello.importers.shapes import as_text, identifier, kind_of, mapping, objects, sequence, text

_TEXT = frozenset(("text", "input_text", "output_text"))
_CALLS = frozenset(("tool_use", "toolCall", "tool_call", "tool-call", "server_tool_use"))
_RESULTS = frozenset(("tool_result", "toolResult", "tool-result"))
_THINKING = frozenset(("thinking", "redacted_thinking", "reasoning", "think"))


def speak(draft: AssistantDraft, content: Any) -> None:
    """Put the content of an assistant message, whatever its dialect, into the draft."""
    if isinstance(content, str):
        draft.text(content)
        return
    for block in sequence(content):
        if isinstance(block, str):
            draft.text(block)
        elif isinstance(block, dict):
            _speak_block(draft, block)


def _speak_block(draft: AssistantDraft, block: dict[str, Any]) -> None:
    kind = kind_of(block)
    if is_call(block):
        draft.call(*call_of(block))
    elif is_result(block):
        draft.builder.result(*result_of(block))
    elif kind in _THINKING or block.get("thought") is True:
        _think(draft, block)
    elif kind in _TEXT or (not kind and isinstance(block.get("text"), str)):
        draft.text(text(block.get("text")))
    else:
        draft.part(block)


def _think(draft: AssistantDraft, block: dict[str, Any]) -> None:
    """Signed thinking stays as it is; other dialects get one common shape. Empty reasoning is no content."""
    if kind_of(block) in ("thinking", "redacted_thinking"):
        draft.part(block)
        return
    words = text(block.get("think")) or text(block.get("text")) or text(block.get("content"))
    if words:
        draft.part({"type": "reasoning", "text": words})


def hear(builder: TranscriptBuilder, content: Any, role: str = "user") -> None:
    """The content of a user message: results go to their calls, the rest is one message."""
    spoken = []
    for block in sequence(content):
        if isinstance(block, dict) and is_result(block):
            builder.result(*result_of(block))
        else:
            spoken.append(block)
    if spoken:
        builder.message(role, plain(spoken))
    elif content is not None and not isinstance(content, list):
        builder.message(role, as_text(content))


def is_call(block: dict[str, Any]) -> bool:
    """Whether a block is a tool call."""
    return kind_of(block) in _CALLS or isinstance(block.get("functionCall"), dict)


def is_result(block: dict[str, Any]) -> bool:
    """Whether a block is the result of a call."""
    return kind_of(block) in _RESULTS or isinstance(block.get("functionResponse"), dict)


def call_of(block: dict[str, Any]) -> tuple[str, str, Any]:
    """Id, name and arguments of a call block; the OpenAI form with a `function` inside included."""
    body = mapping(block.get("functionCall")) or mapping(block.get("function")) or block
    arguments: Any = {}
    for key in ("arguments", "input", "args", "parameters"):
        if body.get(key) is not None:
            arguments = body[key]
            break
    call_id = identifier(block.get("id") or block.get("toolCallId") or body.get("id") or block.get("call_id"))
    return call_id, text(body.get("name") or block.get("toolName")), arguments


def result_of(block: dict[str, Any]) -> tuple[str, Any, str]:
    """Call id, content and tool name of a result block."""
    response = block.get("functionResponse")
    if isinstance(response, dict):
        return identifier(response.get("id")), _response_text(response.get("response")), text(response.get("name"))
    call_id = identifier(block.get("tool_use_id") or block.get("toolCallId") or block.get("tool_call_id"))
    content = next((block[key] for key in ("content", "output", "result", "text") if block.get(key) is not None), "")
    return call_id, plain(content), text(block.get("name") or block.get("toolName"))


def _response_text(response: Any) -> str:
    """Google's function responses wrap the output in an object."""
    fields = mapping(response)
    if set(fields) in ({"output"}, {"error"}, {"content"}, {"result"}):
        return as_text(next(iter(fields.values())))
    return as_text(response)


def plain(content: Any) -> Any:
    """Content without needless wrapping: text parts alone become a string, other parts stay a list."""
    if not isinstance(content, list):
        return as_text(content)
    if all(isinstance(part, str) or is_text(part) for part in content):
        return "\n".join(part if isinstance(part, str) else part["text"] for part in content)
    return content


def is_text(part: Any) -> bool:
    """Whether a part is text and nothing else."""
    kind = kind_of(part)
    return isinstance(mapping(part).get("text"), str) and (kind in _TEXT or (not kind and "thought" not in part))


def texts(parts: Any) -> str:
    """The texts of a list of parts, joined."""
    return "\n".join(filter(None, (text(part.get("text")) for part in objects(parts))))
