"""Gemini CLI sessions (one JSON document, or JSON lines with later corrections) and Qwen Code's JSON lines."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, result_of
from leporello.importers.source import Format, ImportedSession, Record, SourceFile, as_text, mapping, objects, sequence
from leporello.importers.tree import RecordedLine, ThreadReader
from leporello.usage import CanonicalUsage

_NOTICES = frozenset(("info", "error", "warning", "about", "help", "quit"))


def _is_gemini(source: SourceFile) -> bool:
    """Gemini's header fields, or lines whose message has `parts`."""
    value = source.value
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return any(message.kind == "gemini" for message in objects(value["messages"])) or "projectHash" in value
    records = source.records[:100]
    return any("projectHash" in record or isinstance(_parts(record), list) for record in records)


def _parts(record: Record) -> Any:
    return record.inner("message").get("parts")


def _read_gemini(source: SourceFile) -> list[ImportedSession]:
    """One session; for Qwen's tree the abandoned branches too."""
    if any(isinstance(_parts(record), list) for record in source.records):
        return _read_qwen(source)
    document, skipped = mapping(source.value), 0
    if not isinstance(document.get("messages"), list):
        document, skipped = _from_lines(source.records), source.broken_lines
    builder = TranscriptBuilder("gemini-cli", skipped_lines=skipped)
    builder.id = document.id("sessionId")
    builder.started = document.text("startTime")
    for message in document.objects("messages"):
        _take(builder, message)
    return [builder.build()]


def _from_lines(records: list[Record]) -> Record:
    """The document that the lines add up to: a message written again replaces its first version."""
    header = Record()
    messages: dict[str, Record] = {}
    for number, record in enumerate(records):
        if "projectHash" in record and "type" not in record:
            header.update(record)
        elif "type" in record:
            messages[record.id("id") or str(number)] = record
    return Record(header, messages=list(messages.values()))


def _take(builder: TranscriptBuilder, message: Record) -> None:
    kind = message.kind
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
    for thought in message.objects("thoughts"):
        draft.reasoning(": ".join(filter(None, (thought.text("subject"), thought.text("description")))))
    draft.content(message.get("content"))
    results = []
    for call in message.objects("toolCalls"):
        call_id = draft.call(call.id("id"), call.text("name"), call.get("args"))
        results.append((call_id, call))
    for call_id, call in results:
        outputs = [result_of(part) for part in call.objects("result")]
        if outputs or call.get("result") is not None:
            words = "\n".join(as_text(output[1]) for output in outputs) or call.as_text("result")
            builder.result(call_id, words, call.text("name"))
    if isinstance(message.get("tokens"), dict):
        draft.meter(_usage(message.inner("tokens")), message.text("model"))


def _usage(tokens: Record) -> CanonicalUsage:
    """Google's input count includes cached tokens; thoughts are billed as output beside the answer."""
    thoughts = tokens.number("thoughts", "thoughtsTokenCount") or 0
    answer = tokens.number("output", "candidatesTokenCount") or 0
    return CanonicalUsage.parse(
        {
            "prompt_tokens": tokens.get("input", tokens.get("promptTokenCount")),
            "completion_tokens": answer + thoughts,
            "prompt_tokens_details": {"cached_tokens": tokens.get("cached", tokens.get("cachedContentTokenCount"))},
            "completion_tokens_details": {"reasoning_tokens": thoughts},
        }
    )


def _read_qwen(source: SourceFile) -> list[ImportedSession]:
    nodes = [RecordedLine(r.id("uuid"), r.id("parentUuid"), r) for r in source.records]
    builders = ThreadReader("qwen-code", _fill_qwen).branches(nodes, _rivals, source.broken_lines)
    return [builder.build() for builder in builders]


def _rivals(one: Record, other: Record) -> bool:
    """Lines form a chain: another line at the same place means that the user went back."""
    return one.get("uuid") != other.get("uuid")


def _fill_qwen(builder: TranscriptBuilder, records: list[Record]) -> None:
    for record in records:
        builder.at(record.get("timestamp"))
        builder.id = builder.id or record.id("sessionId")
        builder.started = builder.started or record.text("timestamp")
        parts = sequence(_parts(record))
        if record.kind == "assistant":
            draft = builder.answer(parts, key=record.id("uuid"))
            if record.inner("usageMetadata"):
                draft.meter(_usage(record.inner("usageMetadata")), record.text("model"))
        elif record.kind in ("user", "tool_result"):
            builder.heard(parts)
        elif record.get("subtype") == "custom_title":
            builder.title = record.inner("systemPayload").text("customTitle") or builder.title


GEMINI = Format("gemini-cli", _is_gemini, _read_gemini)
