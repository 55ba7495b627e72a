"""Agents that write a JSON line for each thing that happens: Copilot CLI, Kimi Code, Antigravity, droid, Grok CLI.

For each: what its lines look like, and what one line adds to the transcript.
"""

from __future__ import annotations

from collections.abc import Callable

from leporello.importers.builder import COMPACTED, TranscriptBuilder, cache_aware_usage, call_of, plain, texts
from leporello.importers.source import Format, ImportedSession, Reader, Record, SourceFile, as_text, identifier


def _reader(name: str, take: Callable[[TranscriptBuilder, Record], None]) -> Reader:

    def read(source: SourceFile) -> list[ImportedSession]:
        builder = TranscriptBuilder(name, skipped_lines=source.broken_lines)
        for record in source.records:
            take(builder, record)
        return [builder.build()]

    return read


# -- GitHub Copilot CLI: `user.message`, `assistant.message` and tool events; sub-agents are told apart by their parent

_COPILOT_KINDS = ("session.start", "user.message", "assistant.message", "tool.execution_complete")


def _is_copilot(source: SourceFile) -> bool:
    """Dotted event names with a `data` object."""
    return any(record.kind in _COPILOT_KINDS and "data" in record for record in source.records[:50])


def _read_copilot(source: SourceFile) -> list[ImportedSession]:
    """The main agent's conversation, and beside it one session per sub-agent."""
    main = TranscriptBuilder("copilot-cli", skipped_lines=source.broken_lines)
    builders = {"": main}
    for record in source.records:
        data = record.inner("data")
        thread = data.id("parentToolCallId")
        if thread not in builders:
            builders[thread] = TranscriptBuilder("copilot-cli", "sub-agent")
            builders[thread].id = f"{main.id}/{thread}"
        builders[thread].at(record.get("timestamp"))
        _take_copilot(builders[thread], record.kind, data)
    return [builder.build() for builder in builders.values()]


def _take_copilot(builder: TranscriptBuilder, kind: str, data: Record) -> None:
    if kind == "session.start":
        builder.id = builder.id or data.id("sessionId")
        builder.started = builder.started or data.text("startTime")
    elif kind in ("system.message", "user.message"):
        builder.message(kind.removesuffix(".message"), data.as_text("content"))
    elif kind == "assistant.message":
        reasoning, key = data.text("reasoningText"), data.id("messageId")
        builder.answer(data.text("content"), data.get("toolRequests"), reasoning, key)
        builder.model(data.text("model"))
    elif kind == "tool.execution_complete":
        result = data.inner("result")
        words = result.get("content") if result else data.get("error")
        builder.result(data.id("toolCallId"), as_text(words))
    elif kind in ("session.truncation", "session.compaction_complete"):
        builder.note("the recording agent cut its context here; the messages are kept")


COPILOT = Format("copilot-cli", _is_copilot, _read_copilot)


# -- Kimi Code: context events; one step of the loop is one call to the model


def _is_kimi(source: SourceFile) -> bool:
    return any(record.kind.startswith("context.append_") for record in source.records[:200])


def _read_kimi(source: SourceFile) -> list[ImportedSession]:
    builder = TranscriptBuilder("kimi-code", skipped_lines=source.broken_lines)
    system = next((r.text("systemPrompt") for r in source.records if r.get("systemPrompt")), "")
    if system:
        builder.message("system", system)
    for record in source.records:
        _take_kimi(builder, record)
    return [builder.build()]


def _take_kimi(builder: TranscriptBuilder, record: Record) -> None:
    kind = record.kind
    builder.at(record.get("time"))
    if kind == "context.append_message":
        builder.heard(record.inner("message").get("content"))
    elif kind == "context.append_loop_event":
        _take_kimi_step(builder, record.inner("event"))
    elif kind == "llm.request":
        builder.model(record.text("model"))
    elif kind == "llm.tools_snapshot":
        builder.tools = record.objects("tools") or builder.tools
    elif kind.startswith("context.compact"):
        builder.note(COMPACTED)


def _take_kimi_step(builder: TranscriptBuilder, event: Record) -> None:
    kind = event.kind
    step = event.id("stepUuid", "uuid")
    if kind == "content.part":
        builder.assistant(step).content([event.get("part")])
    elif kind == "tool.call":
        builder.assistant(step).call(event.id("toolCallId"), event.text("name"), event.get("args"))
    elif kind == "tool.result":
        builder.result(event.id("toolCallId"), plain(event.inner("result").get("output")))
    elif kind == "step.end" and isinstance(event.get("usage"), dict):
        fields = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
        builder.assistant(step).meter(cache_aware_usage(event["usage"], fields))


KIMI = Format("kimi-code", _is_kimi, _read_kimi)


# -- Antigravity CLI: planner steps carry calls without ids, the steps behind them are the results in turn


def _is_antigravity(source: SourceFile) -> bool:
    """Numbered steps with a source."""
    return any({"step_index", "source", "type"} <= set(record) for record in source.records[:20])


def _take_antigravity(builder: TranscriptBuilder, record: Record) -> None:
    builder.at(record.get("created_at"))
    kind, words = record.kind, record.as_text("content")
    if kind == "USER_INPUT":
        builder.message("user", words)
    elif kind == "PLANNER_RESPONSE":
        draft = builder.answer(words, reasoning=record.text("thinking"))
        for call in record.objects("tool_calls"):
            draft.call("", call.text("name"), call.get("args"))
    elif words and record.get("source") == "SYSTEM":
        builder.note("a notice of the program was left out")
    elif words:
        builder.result("", words, kind.lower())


ANTIGRAVITY = Format("antigravity", _is_antigravity, _reader("antigravity", _take_antigravity))


# -- droid's streamed JSON (`droid exec --output-format stream-json`): flat lines of messages, calls and results


def _is_droid(source: SourceFile) -> bool:
    """Lines with a role and a `text`, or a completion with its final text."""
    return any(
        (record.kind == "message" and "role" in record and "text" in record) or "finalText" in record
        for record in source.records[:100]
    )


def _take_droid(builder: TranscriptBuilder, record: Record) -> None:
    builder.id = builder.id or record.id("session_id", "sessionId")
    builder.at(record.get("timestamp"))
    kind, role = record.kind, record.text("role")
    call_id = record.get("toolCallId") or record.get("id")
    if kind == "message" and role == "assistant":
        builder.assistant().text(record.text("text"))
    elif kind == "message":
        builder.message(role, record.text("text"))
    elif kind == "tool_call":
        builder.assistant().call(*call_of(Record(record, id=call_id)))
    elif kind == "tool_result":
        builder.result(identifier(call_id), record.as_text("value"))
    elif kind == "completion":
        builder.assistant().text(record.text("finalText"))
    elif kind == "system":
        builder.model(record.text("model"))
    else:
        builder.note(f"a line of kind {kind!r} was left out")


DROID = Format("droid", _is_droid, _reader("droid", _take_droid))


# -- Grok CLI: one message per line, told apart by `type` instead of `role`; reasoning stands before its answer


def _is_grok(source: SourceFile) -> bool:
    """Lines with a type and content but no role, message or data around them."""
    envelope = {"role", "message", "data", "payload", "step_index", "sessionId", "uuid"}
    records = [record for record in source.records[:50] if record.kind in ("user", "assistant", "tool_result")]
    return bool(records) and all("content" in record and not envelope & set(record) for record in records)


def _read_grok(source: SourceFile) -> list[ImportedSession]:
    builder = TranscriptBuilder("grok-cli", skipped_lines=source.broken_lines)
    reasoning = ""
    for record in source.records:
        if record.kind == "reasoning":
            reasoning = texts(record.get("summary"))
        else:
            _take_grok(builder, record, reasoning)
            reasoning = ""
    return [builder.build()]


def _take_grok(builder: TranscriptBuilder, record: Record, reasoning: str) -> None:
    kind = record.kind
    if kind in ("system", "user"):
        builder.heard(record.get("content"), kind)
    elif kind == "assistant":
        builder.answer(record.get("content"), record.get("tool_calls"), reasoning)
        builder.model(record.text("model_id"))
    elif kind == "tool_result":
        builder.result(record.id("tool_call_id"), plain(record.get("content")))
    elif kind == "backend_tool_call":
        call = record.inner("kind")
        builder.assistant().call(call.id("id"), call.text("tool_type"), call.get("action"))
    else:
        builder.note(f"a line of kind {kind!r} was left out: {record.as_text('id')}".rstrip(": "))


GROK = Format("grok-cli", _is_grok, _read_grok)
