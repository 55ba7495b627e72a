"""Claude Code session files: JSON lines of `user`, `assistant` and bookkeeping records.

One call to the model is spread over several lines with the same `message.id`, its results may stand between them. The
lines are read in file order, which is the order things happened in; the parent links only say which line was on screen.
"""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder
from leporello.importers.session import ImportedSession
from leporello.importers.source import Source
from leporello.usage import CanonicalUsage

NAME = "claude-code"
_SYNTHETIC = "<synthetic>"


def matches(source: Source) -> bool:
    """User or assistant lines with a message object, a session id and a parent link."""
    return any(
        record.get("type") in ("user", "assistant")
        and isinstance(record.get("message"), dict)
        and "sessionId" in record
        and "parentUuid" in record
        for record in source.records[:200]
    )


def read(source: Source) -> list[ImportedSession]:
    """The main thread of the file as one session."""
    builder = TranscriptBuilder(NAME)
    builder.skipped_lines = source.broken_lines
    seen: set[str] = set()
    for record in source.records:
        _take(builder, record, seen)
    return [builder.build()]


def _take(builder: TranscriptBuilder, record: dict[str, Any], seen: set[str]) -> None:
    kind = record.get("type")
    if kind == "summary" and not builder.title:
        builder.title = str(record.get("summary") or "")
    if kind == "system" and record.get("subtype") == "compact_boundary":
        builder.note("the recording agent compacted here; its summary was left out, the messages it covers are kept")
    message = record.get("message")
    if kind not in ("user", "assistant") or not isinstance(message, dict):
        return
    uuid = str(record.get("uuid") or "")
    if uuid and uuid in seen:
        builder.note("a line was recorded twice; the second was left out")
        return
    seen.add(uuid)
    if record.get("isSidechain"):
        builder.note("a line of a sub-agent was left out")
        return
    if record.get("isCompactSummary"):
        return
    builder.id = builder.id or str(record.get("sessionId") or "")
    builder.started = builder.started or str(record.get("timestamp") or "")
    if kind == "assistant":
        _assistant(builder, record, message)
    else:
        _user(builder, message)


def _assistant(builder: TranscriptBuilder, record: dict[str, Any], message: dict[str, Any]) -> None:
    draft = builder.assistant(str(message.get("id") or record.get("uuid") or ""))
    for block in _blocks(message.get("content")):
        kind = block.get("type")
        if kind == "text":
            draft.text(str(block.get("text") or ""))
        elif kind == "tool_use":
            draft.call(str(block.get("id") or ""), str(block.get("name") or ""), block.get("input") or {})
        elif kind in ("thinking", "redacted_thinking"):
            draft.part(block)
        else:
            draft.part(block)
    model = str(message.get("model") or "")
    if isinstance(message.get("usage"), dict) and model != _SYNTHETIC:
        builder.meter(draft, CanonicalUsage.parse(message["usage"]), model)


def _user(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str):
        builder.message("user", content)
        return
    spoken = []
    for block in _blocks(content):
        if block.get("type") == "tool_result":
            builder.result(str(block.get("tool_use_id") or ""), _result_content(block.get("content")))
        else:
            spoken.append(block)
    if spoken:
        only = spoken[0]
        plain = len(spoken) == 1 and only.get("type") == "text" and isinstance(only.get("text"), str)
        builder.message("user", only["text"] if plain else spoken)


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _result_content(content: Any) -> Any:
    """Text results as plain text; results with pictures keep their parts."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content if isinstance(content, str) else str(content)
    if all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join(str(part.get("text") or "") for part in content)
    return content
