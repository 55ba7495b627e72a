"""pi session files: JSON lines of `message` entries with `toolCall` parts and `toolResult` messages."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder
from leporello.importers.session import ImportedSession
from leporello.importers.source import Source
from leporello.usage import CanonicalUsage

NAME = "pi"


def matches(source: Source) -> bool:
    """A `session` header or `message` entries whose message has pi's roles and parts."""
    for record in source.records[:50]:
        message = record.get("message")
        if record.get("type") == "message" and isinstance(message, dict) and "role" in message:
            return "sessionId" not in record
    return False


def read(source: Source) -> list[ImportedSession]:
    """The file as one session."""
    builder = TranscriptBuilder(NAME)
    builder.skipped_lines = source.broken_lines
    for record in source.records:
        kind = record.get("type")
        if kind == "session":
            builder.id = str(record.get("id") or "")
            builder.started = str(record.get("timestamp") or "")
        elif kind == "compaction":
            builder.note(
                "the recording agent compacted here; its summary was left out, the messages it covers are kept"
            )
        elif kind == "message" and isinstance(record.get("message"), dict):
            _message(builder, record["message"])
    return [builder.build()]


def _message(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    role = message.get("role")
    content = message.get("content")
    if role == "toolResult":
        name = str(message.get("toolName") or "")
        builder.result(str(message.get("toolCallId") or ""), _plain(content), name)
    elif role == "assistant":
        _assistant(builder, message)
    elif role == "bashExecution":
        builder.message("user", f"$ {message.get('command') or ''}\n{message.get('output') or ''}")
    elif role in ("user", "system"):
        builder.message(role, _plain(content))
    else:
        builder.note(f"a message of role {role!r} was left out")


def _assistant(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    parts = message.get("content")
    if not parts:
        builder.note("an aborted call without any content was left out")
        return
    draft = builder.assistant()
    for part in parts if isinstance(parts, list) else [{"type": "text", "text": str(parts)}]:
        kind = part.get("type")
        if kind == "text":
            draft.text(str(part.get("text") or ""))
        elif kind == "toolCall":
            draft.call(str(part.get("id") or ""), str(part.get("name") or ""), part.get("arguments") or {})
        else:
            draft.part(part)
    usage = message.get("usage")
    if isinstance(usage, dict):
        cost = usage.get("cost")
        total = cost.get("total") if isinstance(cost, dict) else None
        builder.meter(draft, _usage(usage), str(message.get("model") or ""), total)


def _usage(usage: dict[str, Any]) -> CanonicalUsage:
    return CanonicalUsage.parse(
        {
            "input_tokens": usage.get("input"),
            "output_tokens": usage.get("output"),
            "cache_read_input_tokens": usage.get("cacheRead"),
            "cache_creation_input_tokens": usage.get("cacheWrite"),
        }
    )


def _plain(content: Any) -> Any:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    if all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join(str(part.get("text") or "") for part in content)
    return content
