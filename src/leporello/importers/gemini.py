"""Gemini CLI sessions (one JSON document, or JSON lines with later corrections) and Qwen Code's JSON lines."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, result_of
from leporello.importers.source import (
    Format,
    ImportedSession,
    Record,
    SourceFile,
    amount,
    as_text,
    identifier,
    kind_of,
    mapping,
    objects,
    sequence,
    text,
)
from leporello.importers.tree import RecordedLine, ThreadReader
from leporello.usage import CanonicalUsage

_NOTICES = frozenset(("info", "error", "warning", "about", "help", "quit"))


def _is_gemini(source: SourceFile) -> bool:
    """Gemini's header fields, or lines whose message has `parts`."""
    value = source.value
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return any(kind_of(message) == "gemini" for message in objects(value["messages"])) or "projectHash" in value
    records = source.records[:100]
    return any("projectHash" in record or isinstance(_parts(record), list) for record in records)


def _parts(record: Record) -> Any:
    return mapping(record.get("message")).get("parts")


def _read_gemini(source: SourceFile) -> list[ImportedSession]:
    """One session; for Qwen's tree the abandoned branches too."""
    if any(isinstance(_parts(record), list) for record in source.records):
        return _read_qwen(source)
    document, skipped = mapping(source.value), 0
    if not isinstance(document.get("messages"), list):
        document, skipped = _from_lines(source.records), source.broken_lines
    builder = TranscriptBuilder("gemini-cli", skipped_lines=skipped)
    builder.id = identifier(document.get("sessionId"))
    builder.started = text(document.get("startTime"))
    for message in objects(document.get("messages")):
        _take(builder, message)
    return [builder.build()]


def _from_lines(records: list[Record]) -> Record:
    """The document that the lines add up to: a message written again replaces its first version."""
    header: Record = {}
    messages: dict[str, Record] = {}
    for number, record in enumerate(records):
        if "projectHash" in record and "type" not in record:
            header.update(record)
        elif "type" in record:
            messages[identifier(record.get("id")) or str(number)] = record
    return {**header, "messages": list(messages.values())}


def _take(builder: TranscriptBuilder, message: Record) -> None:
    kind = kind_of(message)
    builder.at(message.get("timestamp"))
    if kind == "user":
        builder.heard(message.get("content"))
    elif kind in ("gemini", "model", "assistant"):
        _answer(builder, message)
    elif kind in _NOTICES:
        builder.note("a notice on screen, which the model never saw, was left out")
    else:
        builder.note(f"a message of kind {kind!r} was left out")


def _answer(builder: TranscriptBuilder, message: Record) -> None:
    draft = builder.assistant()
    for thought in objects(message.get("thoughts")):
        draft.reasoning(": ".join(filter(None, (text(thought.get("subject")), text(thought.get("description"))))))
    draft.content(message.get("content"))
    results = []
    for call in objects(message.get("toolCalls")):
        call_id = draft.call(identifier(call.get("id")), text(call.get("name")), call.get("args"))
        results.append((call_id, call))
    for call_id, call in results:
        outputs = [result_of(part) for part in objects(call.get("result"))]
        if outputs or call.get("result") is not None:
            words = "\n".join(as_text(output[1]) for output in outputs) or as_text(call.get("result"))
            builder.result(call_id, words, text(call.get("name")))
    tokens = message.get("tokens")
    if isinstance(tokens, dict):
        draft.meter(_usage(tokens), text(message.get("model")))


def _usage(tokens: Record) -> CanonicalUsage:
    """Google's input count includes cached tokens; thoughts are billed as output beside the answer."""
    thoughts = amount(tokens.get("thoughts", tokens.get("thoughtsTokenCount"))) or 0
    answer = amount(tokens.get("output", tokens.get("candidatesTokenCount"))) or 0
    return CanonicalUsage.parse(
        {
            "prompt_tokens": tokens.get("input", tokens.get("promptTokenCount")),
            "completion_tokens": answer + thoughts,
            "prompt_tokens_details": {"cached_tokens": tokens.get("cached", tokens.get("cachedContentTokenCount"))},
            "completion_tokens_details": {"reasoning_tokens": thoughts},
        }
    )


def _read_qwen(source: SourceFile) -> list[ImportedSession]:
    nodes = [RecordedLine(identifier(r.get("uuid")), identifier(r.get("parentUuid")), r) for r in source.records]
    main, branches = ThreadReader("qwen-code", _fill_qwen).branches(nodes, _rivals, source.broken_lines)
    return [builder.build() for builder in (main, *branches)]


def _rivals(one: Record, other: Record) -> bool:
    """Lines form a chain: another line at the same place means that the user went back."""
    return one.get("uuid") != other.get("uuid")


def _fill_qwen(builder: TranscriptBuilder, records: list[Record]) -> None:
    for record in records:
        builder.at(record.get("timestamp"))
        builder.id = builder.id or identifier(record.get("sessionId"))
        builder.started = builder.started or text(record.get("timestamp"))
        parts = sequence(_parts(record))
        if kind_of(record) == "assistant":
            draft = builder.answer(parts, key=identifier(record.get("uuid")))
            if mapping(record.get("usageMetadata")):
                draft.meter(_usage(record["usageMetadata"]), text(record.get("model")))
        elif kind_of(record) in ("user", "tool_result"):
            builder.heard(parts)
        elif record.get("subtype") == "custom_title":
            builder.title = text(mapping(record.get("systemPayload")).get("customTitle")) or builder.title


GEMINI = Format("gemini-cli", _is_gemini, _read_gemini)
