"""OpenAI messages in any wrapping: a list, an object with `messages`, or one message per line.

Messages that a provider would take as they are stay untouched, extra fields included. Only a list with broken pairs is
put together anew.
"""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import AssistantDraft, TranscriptBuilder, call_of, hear, plain, result_of, speak
from leporello.importers.source import ImportedSession, SourceFile, amount, identifier, kind_of, objects, sequence, text
from leporello.messages import ROLES, Message
from leporello.turns import ViolationKind, validate
from leporello.usage import CanonicalUsage

NAME = "openai"
HARMLESS = frozenset((ViolationKind.NEIGHBOURS, ViolationKind.LATE_SYSTEM, ViolationKind.NO_USER))
_LOOSE_CALLS = frozenset(("tool_call", "function_call"))
_LOOSE_RESULTS = frozenset(("tool_result", "function_result", "function_call_output"))


def matches(source: SourceFile) -> bool:
    """Messages with roles, wherever they stand."""
    value = source.value
    if isinstance(value, list | dict):
        return _has_roles(value if isinstance(value, list) else value.get("messages"))
    return any("role" in record and ("content" in record or "message" in record) for record in source.records[:50])


def _has_roles(messages: Any) -> bool:
    return any(text(message.get("role")) in ROLES for message in objects(messages)[:20])


def read(source: SourceFile) -> list[ImportedSession]:
    value = source.value
    if isinstance(value, list):
        return [session_of({"messages": value})]
    if isinstance(value, dict):
        return [session_of(value)]
    return [session_of({"messages": source.records}, skipped=source.broken_lines)]


def session_of(document: dict[str, Any], format_name: str = NAME, skipped: int = 0) -> ImportedSession:
    """A session from `{messages, system?, tools?, id?, model?}`."""
    raw = sequence(document.get("messages"))
    builder = TranscriptBuilder(format_name)
    builder.skipped_lines = skipped + sum(not isinstance(message, dict) for message in raw)
    _head(builder, document)
    is_fine = _is_fine(raw)
    builder.at(builder.started)
    for message in objects(raw):
        builder.at(message.get("timestamp"))
        if not is_fine:
            _take(builder, message)
            continue
        draft = builder.verbatim(message)
        if message.get("role") == "assistant":
            _meter(draft, message)
    return builder.build()


def _is_fine(raw: list[Any]) -> bool:
    """Whether a provider would take the messages as they are."""
    if not all(isinstance(m, dict) and text(m.get("role")) in ROLES and "content" in m for m in raw):
        return False
    # Anthropic's results stand inside user messages: they validate, and yet are no OpenAI messages.
    if any(kind_of(block) in ("tool_use", "tool_result") for m in raw for block in objects(m["content"])):
        return False
    return all(violation.fault in HARMLESS for violation in validate(raw))


def _head(builder: TranscriptBuilder, document: dict[str, Any]) -> None:
    builder.id = identifier(document.get("session_id") or document.get("id"))
    builder.title = text(document.get("title"))
    builder.started = text(document.get("session_start")) or text(document.get("started_at"))
    builder.model(text(document.get("model")))
    builder.tools = [_tool(tool) for tool in objects(document.get("tools"))]
    system = document.get("system") or document.get("system_prompt")
    if system and not any(text(m.get("role")) == "system" for m in objects(document.get("messages"))[:1]):
        builder.message("system", plain(system))


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool schema in OpenAI's form; Anthropic's is rewrapped."""
    if isinstance(tool.get("function"), dict) or "input_schema" not in tool:
        return tool
    function = {
        "name": tool.get("name"),
        "description": tool.get("description", ""),
        "parameters": tool["input_schema"],
    }
    return {"type": "function", "function": function}


def _take(builder: TranscriptBuilder, message: Message) -> None:
    role, kind = text(message.get("role")), kind_of(message)
    content = message.get("content")
    if content is None and isinstance(message.get("message"), dict):
        content = message["message"].get("content")
    elif content is None and isinstance(message.get("message"), str):
        content = message["message"]
    if role == "assistant":
        _assistant(builder, message, content)
    elif role in ("tool", "function"):
        builder.result(identifier(message.get("tool_call_id")), plain(content), _tool_name(message))
    elif role == "session_meta":
        builder.tools = builder.tools or [_tool(tool) for tool in objects(message.get("tools"))]
    elif role:
        hear(builder, content if content is not None else "", role)
    elif kind in _LOOSE_CALLS:
        builder.assistant().call(*call_of(message))
    elif kind in _LOOSE_RESULTS:
        builder.result(*result_of(message))
    elif kind:
        builder.note(f"a line of kind {kind!r} was left out")


def _tool_name(message: Message) -> str:
    return text(message.get("name")) or text(message.get("tool_name"))


def _assistant(builder: TranscriptBuilder, message: Message, content: Any) -> None:
    draft = builder.assistant()
    reasoning = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    if reasoning:
        draft.part({"type": "reasoning", "text": reasoning})
    speak(draft, content)
    for call in objects(message.get("tool_calls")):
        draft.call(*call_of(call))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        draft.call("", text(legacy.get("name")), legacy.get("arguments"))
    _meter(draft, message)


def _meter(draft: AssistantDraft, message: Message) -> None:
    if isinstance(message.get("usage"), dict):
        usage = CanonicalUsage.parse(message["usage"])
        draft.builder.meter(draft, usage, text(message.get("model")), amount(message.get("cost")))
