"""Grok CLI chat histories: one message per line, told apart by `type` instead of `role`."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, call_of, hear, plain, speak, texts
from leporello.importers.source import ImportedSession, SourceFile, as_text, identifier, kind_of, mapping, objects, text

NAME = "grok-cli"


def matches(source: SourceFile) -> bool:
    """Lines with a type and content but no role, message or data around them."""
    envelope = {"role", "message", "data", "payload", "step_index", "sessionId", "uuid"}
    records = [record for record in source.records[:50] if kind_of(record) in ("user", "assistant", "tool_result")]
    return bool(records) and all("content" in record and not envelope & set(record) for record in records)


def read(source: SourceFile) -> list[ImportedSession]:
    builder = TranscriptBuilder(NAME)
    builder.skipped_lines = source.broken_lines
    reasoning = ""
    for record in source.records:
        if kind_of(record) == "reasoning":
            reasoning = texts(record.get("summary"))
            continue
        _take(builder, record, reasoning)
        reasoning = ""
    return [builder.build()]


def _take(builder: TranscriptBuilder, record: dict[str, Any], reasoning: str) -> None:
    kind = kind_of(record)
    if kind in ("system", "user"):
        hear(builder, record.get("content"), kind)
    elif kind == "assistant":
        draft = builder.assistant()
        if reasoning:
            draft.part({"type": "reasoning", "text": reasoning})
        speak(draft, record.get("content"))
        for call in objects(record.get("tool_calls")):
            draft.call(*call_of(call))
        builder.model(text(record.get("model_id")))
    elif kind == "tool_result":
        builder.result(identifier(record.get("tool_call_id")), plain(record.get("content")))
    elif kind == "backend_tool_call":
        call = mapping(record.get("kind"))
        builder.assistant().call(identifier(call.get("id")), text(call.get("tool_type")), call.get("action"))
    else:
        builder.note(f"a line of kind {kind!r} was left out: {as_text(record.get('id'))}".rstrip(": "))
