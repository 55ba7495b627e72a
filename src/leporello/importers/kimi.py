"""Kimi Code wire logs: JSON lines of context events; one step of the loop is one call to the model."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import COMPACTED, TranscriptBuilder, hear, plain, speak
from leporello.importers.source import ImportedSession, SourceFile, as_text, identifier, kind_of, mapping, objects, text
from leporello.usage import CanonicalUsage

NAME = "kimi-code"


def matches(source: SourceFile) -> bool:
    """Context events."""
    return any(kind_of(record).startswith("context.append_") for record in source.records[:200])


def read(source: SourceFile) -> list[ImportedSession]:
    builder = TranscriptBuilder(NAME)
    builder.skipped_lines = source.broken_lines
    system = next((text(r.get("systemPrompt")) for r in source.records if r.get("systemPrompt")), "")
    if system:
        builder.message("system", system)
    for record in source.records:
        kind = kind_of(record)
        builder.at(record.get("time"))
        if kind == "context.append_message":
            hear(builder, mapping(record.get("message")).get("content"))
        elif kind == "context.append_loop_event":
            _event(builder, mapping(record.get("event")))
        elif kind == "llm.request":
            builder.model(text(record.get("model")))
        elif kind == "llm.tools_snapshot":
            builder.tools = objects(record.get("tools")) or builder.tools
        elif text(kind).startswith("context.compact"):
            builder.note(COMPACTED)
    return [builder.build()]


def _event(builder: TranscriptBuilder, event: dict[str, Any]) -> None:
    kind = kind_of(event)
    step = identifier(event.get("stepUuid") or event.get("uuid"))
    if kind == "content.part":
        speak(builder.assistant(step), [event.get("part")])
    elif kind == "tool.call":
        builder.assistant(step).call(identifier(event.get("toolCallId")), text(event.get("name")), event.get("args"))
    elif kind == "tool.result":
        output = mapping(event.get("result")).get("output")
        words = plain(output) if isinstance(output, list) else as_text(output)
        builder.result(identifier(event.get("toolCallId")), words)
    elif kind == "step.end" and isinstance(event.get("usage"), dict):
        usage = event["usage"]
        counts = {
            "input_tokens": usage.get("inputOther"),
            "output_tokens": usage.get("output"),
            "cache_read_input_tokens": usage.get("inputCacheRead"),
            "cache_creation_input_tokens": usage.get("inputCacheCreation"),
        }
        builder.meter(builder.assistant(step), CanonicalUsage.parse(counts))
