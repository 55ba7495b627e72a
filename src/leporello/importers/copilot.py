"""GitHub Copilot CLI event logs: JSON lines of `user.message`, `assistant.message` and tool events."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, call_of
from leporello.importers.source import ImportedSession, SourceFile, as_text, identifier, kind_of, mapping, objects, text

NAME = "copilot-cli"
_KINDS = ("session.start", "user.message", "assistant.message", "tool.execution_complete")


def matches(source: SourceFile) -> bool:
    """Dotted event names with a `data` object."""
    return any(kind_of(record) in _KINDS and "data" in record for record in source.records[:50])


def read(source: SourceFile) -> list[ImportedSession]:
    """The main agent's talk, and beside it one session per sub-agent."""
    builders: dict[str, TranscriptBuilder] = {"": TranscriptBuilder(NAME)}
    builders[""].skipped_lines = source.broken_lines
    for record in source.records:
        data = mapping(record.get("data"))
        thread = identifier(data.get("parentToolCallId"))
        if thread not in builders:
            builders[thread] = TranscriptBuilder(NAME)
            builders[thread].kind = "sub-agent"
            builders[thread].id = f"{builders[''].id}/{thread}"
        builders[thread].at(record.get("timestamp"))
        _take(builders[thread], kind_of(record), data)
    return [builder.build() for builder in builders.values()]


def _take(builder: TranscriptBuilder, kind: str, data: dict[str, Any]) -> None:
    if kind == "session.start":
        builder.id = builder.id or identifier(data.get("sessionId"))
        builder.started = builder.started or text(data.get("startTime"))
    elif kind == "system.message":
        builder.message("system", as_text(data.get("content")))
    elif kind == "user.message":
        builder.message("user", as_text(data.get("content")))
    elif kind == "assistant.message":
        _assistant(builder, data)
    elif kind == "tool.execution_complete":
        result = mapping(data.get("result"))
        words = result.get("content") if result else data.get("error")
        builder.result(identifier(data.get("toolCallId")), as_text(words))
    elif kind in ("session.truncation", "session.compaction_complete"):
        builder.note("the recording agent cut its context here; the messages are kept")


def _assistant(builder: TranscriptBuilder, data: dict[str, Any]) -> None:
    draft = builder.assistant(identifier(data.get("messageId")))
    reasoning = text(data.get("reasoningText"))
    if reasoning:
        draft.part({"type": "reasoning", "text": reasoning})
    draft.text(text(data.get("content")))
    for request in objects(data.get("toolRequests")):
        draft.call(*call_of(request))
    builder.model(text(data.get("model")))
