"""Droid's streamed JSON (`droid exec --output-format stream-json`): flat lines of messages, calls and results."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, call_of
from leporello.importers.source import ImportedSession, SourceFile, as_text, identifier, kind_of, text

NAME = "droid"


def matches(source: SourceFile) -> bool:
    """Lines with a role and a `text`, or a completion with its final text."""
    return any(
        (kind_of(record) == "message" and "role" in record and "text" in record) or "finalText" in record
        for record in source.records[:100]
    )


def read(source: SourceFile) -> list[ImportedSession]:
    builder = TranscriptBuilder(NAME)
    builder.skipped_lines = source.broken_lines
    for record in source.records:
        builder.id = builder.id or identifier(record.get("session_id") or record.get("sessionId"))
        builder.at(record.get("timestamp"))
        _take(builder, record)
    return [builder.build()]


def _take(builder: TranscriptBuilder, record: dict[str, Any]) -> None:
    kind = kind_of(record)
    if kind == "message" and record.get("role") == "assistant":
        builder.assistant().text(text(record.get("text")))
    elif kind == "message":
        builder.message(text(record.get("role")), text(record.get("text")))
    elif kind == "tool_call":
        call_id, name, arguments = call_of({**record, "id": record.get("toolCallId") or record.get("id")})
        builder.assistant().call(call_id, name, arguments)
    elif kind == "tool_result":
        builder.result(identifier(record.get("toolCallId") or record.get("id")), as_text(record.get("value")))
    elif kind == "completion":
        builder.assistant().text(text(record.get("finalText")))
    elif kind == "system":
        builder.model(text(record.get("model")))
    else:
        builder.note(f"a line of kind {kind!r} was left out")
