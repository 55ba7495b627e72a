"""A history processor for Pydantic AI: each model request sees the conversation folded.

    from pydantic_ai import Agent
    from pydantic_ai.capabilities import ProcessHistory
    from leporello.adapters.pydantic_ai import FoldHistory

    agent = Agent(model, capabilities=[ProcessHistory(FoldHistory(window=128_000))])

Messages that stay are handed on as the very objects they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from leporello.adapters.lists import FoldedLists, ShownMessage
from leporello.messages import Message, calls_of, encode_json, is_result, role_of, text_of

Origin = tuple[int, tuple[int, ...]]
"""Where a message comes from: the place of the framework's message, and which of its parts."""


class FoldHistory:
    """The processor: called with the whole history before each request."""

    def __init__(self, *, window: int | None = None, model: str | None = None, engine: str = "compressor") -> None:
        self._lists = FoldedLists(window=window, model=model, engine=engine)

    def __call__(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        pieces = [piece for place, message in enumerate(messages) for piece in _pieces(place, message)]
        shown = self._lists.show([piece for piece, _ in pieces])
        if all(line.place is not None for line in shown):
            return messages
        return _rebuilt(shown, [origin for _, origin in pieces], messages)


def _pieces(place: int, message: ModelMessage) -> Iterator[tuple[Message, Origin]]:
    """One message of the framework as OpenAI-format messages."""
    if isinstance(message, ModelResponse):
        yield _assistant(message), (place, tuple(range(len(message.parts))))
        return
    for index, part in enumerate(message.parts):
        yield _request_part(part), (place, (index,))


def _request_part(part: Any) -> Message:
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    if isinstance(part, RetryPromptPart) and part.tool_name:
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}
    if isinstance(part, UserPromptPart) and isinstance(part.content, str):
        return {"role": "user", "content": part.content}
    if isinstance(part, UserPromptPart):
        return {"role": "user", "content": [_content(item) for item in part.content]}
    return {"role": "user", "content": str(getattr(part, "content", part))}


def _content(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    url = getattr(item, "url", "") or getattr(item, "data_uri", "")
    return {"type": "image_url", "image_url": {"url": url}} if url else {"type": "text", "text": str(item)}


def _assistant(message: ModelResponse) -> Message:
    text = "\n".join(part.content for part in message.parts if isinstance(part, TextPart))
    thoughts = [part.content for part in message.parts if isinstance(part, ThinkingPart) and part.content]
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    made: Message = {"role": "assistant", "content": text or None}
    if thoughts:
        made["reasoning_content"] = "\n".join(thoughts)
    if calls:
        made["tool_calls"] = calls
    return made


def _rebuilt(
    shown: Sequence[ShownMessage], origins: Sequence[Origin], messages: Sequence[ModelMessage]
) -> list[ModelMessage]:
    """The shown list in the framework's own messages: whole ones as they were, parts of one together, folds anew."""
    built: list[ModelMessage] = []
    parts: list[Any] = []
    source: ModelRequest | None = None
    names = {call.id: call.name for line in shown for call in calls_of(line.message)}

    def close() -> None:
        nonlocal parts, source
        if parts:
            whole = (
                source is not None
                and len(parts) == len(source.parts)
                and all(one is other for one, other in zip(parts, source.parts, strict=True))
            )
            built.append(source if whole and source is not None else ModelRequest(parts=parts))
        parts, source = [], None

    for line in shown:
        if line.place is None:
            made = _new_part(line.message, names)
            if isinstance(made, ModelResponse):
                close()
                built.append(made)
            else:
                parts.append(made)
            continue
        place, indexes = origins[line.place]
        message = messages[place]
        if isinstance(message, ModelResponse):
            close()
            built.append(message)
            continue
        if message is not source and source is not None:
            close()
        source = message
        parts.extend(message.parts[index] for index in indexes)
    close()
    return built


def _new_part(message: Message, names: dict[str, str]) -> Any:
    """The part for a message that a compaction wrote: a fold, a shortened result, a joined request."""
    if is_result(message):
        id = str(message.get("tool_call_id") or "")
        return ToolReturnPart(tool_name=names.get(id, ""), content=text_of(message), tool_call_id=id)
    if role_of(message) == "assistant":
        calls = [ToolCallPart(call.name, call.arguments, call.id) for call in calls_of(message)]
        text = text_of(message)
        return ModelResponse(parts=[*([TextPart(text)] if text else []), *calls])
    if role_of(message) == "system":
        return SystemPromptPart(text_of(message))
    content = message.get("content")
    return UserPromptPart(content if isinstance(content, str) else text_of(message) or encode_json(content).decode())
