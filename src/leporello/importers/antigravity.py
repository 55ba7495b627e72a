"""Antigravity CLI step logs: planner steps carry calls without ids, the steps behind them are the results in turn."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder
from leporello.importers.source import ImportedSession, SourceFile, as_text, kind_of, objects, text

NAME = "antigravity"


def matches(source: SourceFile) -> bool:
    """Numbered steps with a source."""
    return any({"step_index", "source", "type"} <= set(record) for record in source.records[:20])


def read(source: SourceFile) -> list[ImportedSession]:
    builder = TranscriptBuilder(NAME)
    builder.skipped_lines = source.broken_lines
    for record in source.records:
        builder.at(record.get("created_at"))
        _take(builder, record)
    return [builder.build()]


def _take(builder: TranscriptBuilder, record: dict[str, Any]) -> None:
    kind, words = kind_of(record), as_text(record.get("content"))
    if kind == "USER_INPUT":
        builder.message("user", words)
    elif kind == "PLANNER_RESPONSE":
        draft = builder.assistant()
        thinking = text(record.get("thinking"))
        if thinking:
            draft.part({"type": "reasoning", "text": thinking})
        draft.text(words)
        for call in objects(record.get("tool_calls")):
            draft.call("", text(call.get("name")), call.get("args"))
    elif record.get("source") == "SYSTEM" or not words:
        if words:
            builder.note("a notice of the program was left out")
    else:
        builder.result("", words, kind.lower())
