"""Codex rollout files, new (`response_item` payloads beside events) and old (bare items, one per line)."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import COMPACTED, AssistantDraft, TranscriptBuilder, plain, texts
from leporello.importers.source import Format, ImportedSession, Record, SourceFile, as_text, mapping, sequence
from leporello.usage import CanonicalUsage

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
    reader = _Reader(TranscriptBuilder("codex", skipped_lines=source.broken_lines))
    for record in source.records:
        reader.take(record)
    if not reader.has_items:
        reader.take_events(source.records)
    return [reader.builder.build()]


class _Reader:
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
        last, total = info.get("last_token_usage"), info.get("total_token_usage")
        # The same figures are written again when only the rate limits changed.
        if event.kind != "token_count" or not isinstance(last, dict) or total == self._total:
            return
        self._total = total
        usage = _usage(last)
        # Some versions write the figures behind the items of a response, some before them.
        if self.draft is not None and not self.draft.is_metered:
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
            self._assistant().call(*_call(item))
        elif kind in _OUTPUTS:
            self.builder.result(item.id("call_id", "tool_call_id"), *_output(item))
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
        shown = [part for part in sequence(content) if not _is_empty_image(part)]
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


def _is_empty_image(part: Any) -> bool:
    return mapping(part).kind == "input_image" and not part.get("image_url")


def _usage(last: dict[str, Any]) -> CanonicalUsage:
    return CanonicalUsage.parse(
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


def _call(item: Record) -> tuple[str, str, Any]:
    kind = item.kind
    name = item.text("name") or item.inner("function").text("name") or kind.removesuffix("_call")
    arguments: Any = item.get("arguments")
    if kind == "custom_tool_call":
        arguments = {"input": item.get("input")}
    elif arguments is None:
        arguments = item.get("action")
    return item.id("call_id", "id"), name, arguments


def _output(item: Record) -> tuple[Any, str]:
    output = next((item[key] for key in ("output", "result", "tools") if item.get(key) is not None), "")
    if mapping(output).kind == "input_text":
        output = [output]
    if isinstance(output, list):
        is_parts = all(mapping(part).kind.startswith("input_") for part in output)
        return (plain(output) if is_parts else as_text(output)), item.text("name")
    return as_text(output), item.text("name")


CODEX = Format("codex", _is_codex, _read_codex)
