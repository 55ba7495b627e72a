"""Agents that write a JSON line for each thing that happens: Codex, Copilot, Kimi Code, Antigravity, droid, Grok CLI.

For each: what its lines look like, and what one line adds to the transcript.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leporello.importers.builder import (
    COMPACTED,
    AssistantDraft,
    TranscriptBuilder,
    cache_aware_usage,
    call_of,
    plain,
    texts,
)
from leporello.importers.source import (
    Format,
    ImportedSession,
    Reader,
    Record,
    SourceFile,
    any_line,
    as_text,
    identifier,
    mapping,
    sequence,
)
from leporello.usage import CanonicalUsage


def _reader(name: str, take: Callable[[TranscriptBuilder, Record], None]) -> Reader:
    def read(source: SourceFile) -> list[ImportedSession]:
        builder = TranscriptBuilder(name, skipped_lines=source.broken_lines)
        for record in source.records:
            take(builder, record)
        return [builder.build()]

    return read


# -- GitHub Copilot CLI: `user.message`, `assistant.message` and tool events; sub-agents are told apart by their parent

_COPILOT_KINDS = ("session.start", "user.message", "assistant.message", "tool.execution_complete")


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


COPILOT = Format("copilot-cli", any_line(lambda it: it.kind in _COPILOT_KINDS and "data" in it, 50), _read_copilot)


# -- Kimi Code: context events; one step of the loop is one call to the model


def _read_kimi(source: SourceFile) -> list[ImportedSession]:
    builder = TranscriptBuilder("kimi-code", skipped_lines=source.broken_lines)
    system = next((r.text("systemPrompt") for r in source.records if r.get("systemPrompt")), "")
    if system:
        builder.message("system", system)
    for record in source.records:
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
    return [builder.build()]


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


KIMI = Format("kimi-code", any_line(lambda line: line.kind.startswith("context.append_"), 200), _read_kimi)


# -- Antigravity CLI: planner steps carry calls without ids, the steps behind them are the results in turn


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


ANTIGRAVITY = Format(
    "antigravity",
    any_line(lambda line: {"step_index", "source", "type"} <= set(line), 20),
    _reader("antigravity", _take_antigravity),
)


# -- droid's streamed JSON (`droid exec --output-format stream-json`): flat lines of messages, calls and results


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


DROID = Format(
    "droid",
    any_line(lambda line: "finalText" in line or (line.kind == "message" and {"role", "text"} <= set(line)), 100),
    _reader("droid", _take_droid),
)


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
            reasoning = ""
    return [builder.build()]


GROK = Format("grok-cli", _is_grok, _read_grok)


# -- Codex rollout files, new (`response_item` payloads beside events) and old (bare items, one per line)

_WRAPPERS = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"))
_CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "tool_call"))
_OUTPUTS = frozenset(f"{call}_output" for call in ("function_call", "custom_tool_call", "local_shell_call"))
_OUTPUTS |= {"tool_search_output", "tool_result", "function_result"}
_ITEMS = frozenset(("message", "reasoning", "web_search_call")) | _CALLS | _OUTPUTS
_SEARCHED = "[searched by the provider; what was found is not recorded]"


def _is_codex(source: SourceFile) -> bool:
    """Either items wrapped with a payload, or bare items behind a header with an id and a time."""
    records = source.records[:200]
    if any(record.kind in _WRAPPERS and isinstance(record.get("payload"), dict) for record in records):
        return not any("role" in record for record in records)
    if not any(record.kind in _ITEMS for record in records):
        return False
    has_header = bool(records) and {"id", "timestamp"} <= set(records[0]) and "type" not in records[0]
    return has_header or any(record.get("record_type") == "state" for record in records)


def _read_codex(source: SourceFile) -> list[ImportedSession]:
    reader = _CodexReader(TranscriptBuilder("codex", skipped_lines=source.broken_lines))
    for record in source.records:
        reader.take(record)
    if not reader.has_items:
        reader.take_events(source.records)
    return [reader.builder.build()]


class _CodexReader:
    """Reads line by line; remembers the running assistant message and usage that came before its message."""

    def __init__(self, builder: TranscriptBuilder) -> None:
        self.builder = builder
        self.draft: AssistantDraft | None = None
        self.model = ""
        self.has_items = False
        self._pending: CanonicalUsage | None = None
        self._is_complete = False
        self._total: Any = None

    def take(self, record: Record) -> None:
        kind = record.kind
        payload = record.inner("payload")
        self.builder.at(record.get("timestamp"))
        if not kind and "id" in record:
            self._meta(record)
        elif kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self.model = payload.text("model") or self.model
            self.builder.model(self.model)
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "compacted":
            self.builder.note(COMPACTED)
        elif kind == "response_item":
            self._item(payload)
        elif kind in _ITEMS:
            self._item(record)

    def take_events(self, records: list[Record]) -> None:
        """The words of a file that holds no items at all: what was shown on screen is all there is."""
        for record in records:
            event = record.inner("payload")
            words = event.text("message")
            if words and event.kind == "user_message":
                self.builder.message("user", words)
            elif words and event.kind == "agent_message":
                self.builder.assistant().text(words)

    def _meta(self, meta: Record) -> None:
        self.builder.id = self.builder.id or meta.id("id")
        self.builder.started = self.builder.started or meta.text("timestamp")
        instructions = meta.inner("base_instructions").text("text") or meta.text("instructions")
        if instructions and not len(self.builder):
            self.builder.message("system", instructions)

    def _event(self, event: Record) -> None:
        info = event.inner("info")
        window = info.get("model_context_window")
        if isinstance(window, int) and window in range(1_000, 100_000_000):
            self.builder.window = window
        last, total = info.get("last_token_usage"), info.get("total_token_usage")
        # The same figures are written again when only the rate limits changed.
        if event.kind != "token_count" or not isinstance(last, dict) or total == self._total:
            return
        self._total = total
        usage = CanonicalUsage.parse(
            {
                "input_tokens": last.get("input_tokens"),
                "output_tokens": last.get("output_tokens"),
                "input_tokens_details": {
                    "cached_tokens": last.get("cached_input_tokens"),
                    "cache_write_tokens": last.get("cache_write_input_tokens"),
                },
                "output_tokens_details": {"reasoning_tokens": last.get("reasoning_output_tokens")},
            }
        )
        # Some versions write the figures behind the items of a response, some before them.
        if self.draft is not None and self.draft.group.metered is None:
            self.draft.meter(usage, self.model)
            self._is_complete = True
        else:
            self._pending = usage

    def _item(self, item: Record) -> None:
        kind = item.kind
        self.has_items = self.has_items or kind in _ITEMS
        if kind == "message":
            self._message(item)
        elif kind == "web_search_call":
            self.builder.exchange("web_search", item.get("action"), _SEARCHED)
            self.draft = None
        elif kind in _CALLS:
            self._assistant().call(*_codex_call(item))
        elif kind in _OUTPUTS:
            self.builder.result(item.id("call_id", "tool_call_id"), *_codex_output(item))
        elif kind == "reasoning":
            words = "\n".join(filter(None, (texts(item.get("summary")), texts(item.get("content")))))
            if words:
                self._assistant().reasoning(words)
            elif item.get("encrypted_content"):
                self.builder.note("encrypted reasoning was left out")
        else:
            self.builder.note(f"an item of kind {kind!r} was left out")

    def _message(self, item: Record) -> None:
        role = item.text("role") or "user"
        content = item.get("content")
        shown = [p for p in sequence(content) if mapping(p).kind != "input_image" or p.get("image_url")]
        if role == "assistant":
            self._assistant().content(shown or content)
            return
        self.draft = None
        self.builder.message(role, plain(shown if isinstance(content, list) else content))

    def _assistant(self) -> AssistantDraft:
        """The running assistant message; results end it, and so does its usage when that comes last."""
        if self.draft is None or self.draft.is_answered or self._is_complete:
            self.draft = self.builder.assistant()
            self._is_complete = False
            if self._pending is not None:
                self.draft.meter(self._pending, self.model)
                self._pending = None
        return self.draft


def _codex_call(item: Record) -> tuple[str, str, Any]:
    kind = item.kind
    name = item.text("name") or item.inner("function").text("name") or kind.removesuffix("_call")
    arguments: Any = item.get("arguments")
    if kind == "custom_tool_call":
        arguments = {"input": item.get("input")}
    elif arguments is None:
        arguments = item.get("action")
    return item.id("call_id", "id"), name, arguments


def _codex_output(item: Record) -> tuple[Any, str]:
    output = next((item[key] for key in ("output", "result", "tools") if item.get(key) is not None), "")
    if mapping(output).kind == "input_text":
        output = [output]
    if isinstance(output, list):
        is_parts = all(mapping(part).kind.startswith("input_") for part in output)
        return (plain(output) if is_parts else as_text(output)), item.text("name")
    return as_text(output), item.text("name")


CODEX = Format("codex", _is_codex, _read_codex)
