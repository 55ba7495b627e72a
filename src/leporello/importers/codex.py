"""Codex rollout files, new (`response_item` payloads beside events) and old (bare items, one per line)."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import AssistantDraft, TranscriptBuilder
from leporello.importers.session import ImportedSession
from leporello.importers.source import Source
from leporello.messages import encode_json
from leporello.usage import CanonicalUsage

NAME = "codex"
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_ITEMS = frozenset(("message", "reasoning", *_CALLS, *_OUTPUTS, "web_search_call", "tool_search_call"))


def matches(source: Source) -> bool:
    """Either wrapped items, or bare items behind a header with an id and a time."""
    records = source.records[:50]
    if any(record.get("type") in ("session_meta", "response_item", "event_msg", "turn_context") for record in records):
        return any(isinstance(record.get("payload"), dict) for record in records)
    bare = sum(record.get("type") in _ITEMS for record in records)
    header = bool(records) and {"id", "timestamp"} <= set(records[0]) and "type" not in records[0]
    return bare > 0 and (header or any(record.get("record_type") == "state" for record in records))


def read(source: Source) -> list[ImportedSession]:
    """The file as one session."""
    reader = _Reader(TranscriptBuilder(NAME))
    reader.builder.skipped_lines = source.broken_lines
    for record in source.records:
        reader.take(record)
    return [reader.builder.build()]


class _Reader:
    def __init__(self, builder: TranscriptBuilder) -> None:
        self.builder = builder
        self.draft: AssistantDraft | None = None
        self.model = ""
        self.total = -1

    def take(self, record: dict[str, Any]) -> None:
        kind = record.get("type")
        payload = record.get("payload")
        if kind is None and "id" in record:
            self._meta(record)
        elif kind == "session_meta" and isinstance(payload, dict):
            self._meta(payload)
        elif kind == "turn_context" and isinstance(payload, dict):
            self.model = str(payload.get("model") or self.model)
            self.builder.model(self.model)
        elif kind == "event_msg" and isinstance(payload, dict):
            self._event(payload)
        elif kind == "compacted":
            self.builder.note(
                "the recording agent compacted here; its summary was left out, the messages it covers are kept"
            )
        elif kind == "response_item" and isinstance(payload, dict):
            self._item(payload)
        elif kind in _ITEMS:
            self._item(record)

    def _meta(self, meta: dict[str, Any]) -> None:
        self.builder.id = self.builder.id or str(meta.get("id") or "")
        self.builder.started = self.builder.started or str(meta.get("timestamp") or "")
        base = meta.get("base_instructions")
        text = base.get("text") if isinstance(base, dict) else None
        text = text or meta.get("instructions")
        if isinstance(text, str) and text and not len(self.builder):
            self.builder.message("system", text)

    def _event(self, event: dict[str, Any]) -> None:
        info = event.get("info")
        if event.get("type") != "token_count" or not isinstance(info, dict) or self.draft is None:
            return
        last, total = info.get("last_token_usage"), info.get("total_token_usage")
        so_far = total.get("total_tokens", 0) if isinstance(total, dict) else 0
        # The same figures are written again when only the rate limits changed.
        if not isinstance(last, dict) or so_far == self.total:
            return
        self.total = so_far
        self.builder.meter(self.draft, _usage(last), self.model)

    def _item(self, item: dict[str, Any]) -> None:
        kind = item.get("type")
        if kind == "message":
            self._message(item)
        elif kind in _CALLS:
            self._call(item)
        elif kind in _OUTPUTS:
            self.builder.result(str(item.get("call_id") or item.get("id") or ""), _output(item.get("output")))
        elif kind == "reasoning":
            self._reasoning(item)
        else:
            self._assistant().part(item)

    def _message(self, item: dict[str, Any]) -> None:
        role = str(item.get("role") or "user")
        if role == "assistant":
            draft = self._assistant()
            for part in item.get("content") or []:
                draft.text(_text(part))
            return
        self.draft = None
        self.builder.message(role, _spoken(item.get("content")))

    def _call(self, item: dict[str, Any]) -> None:
        arguments: Any = item.get("arguments")
        if item.get("type") == "custom_tool_call":
            arguments = {"input": item.get("input")}
        elif item.get("type") == "local_shell_call":
            arguments = item.get("action") or {}
        name = str(item.get("name") or "local_shell")
        self._assistant().call(str(item.get("call_id") or item.get("id") or ""), name, arguments or "{}")

    def _reasoning(self, item: dict[str, Any]) -> None:
        pieces = [*(item.get("summary") or []), *(item.get("content") or [])]
        text = "\n".join(filter(None, map(_text, pieces)))
        if text:
            self._assistant().part({"type": "reasoning", "text": text})
        elif item.get("encrypted_content"):
            self.builder.note("encrypted reasoning was left out")

    def _assistant(self) -> AssistantDraft:
        """The running assistant message; results end it."""
        if self.draft is None or self.draft.group.results:
            self.draft = self.builder.assistant()
        return self.draft


def _usage(last: dict[str, Any]) -> CanonicalUsage:
    return CanonicalUsage.parse(
        {
            "input_tokens": last.get("input_tokens"),
            "output_tokens": last.get("output_tokens"),
            "input_tokens_details": {"cached_tokens": last.get("cached_input_tokens")},
            "output_tokens_details": {"reasoning_tokens": last.get("reasoning_output_tokens")},
        }
    )


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part.get("text") or "") if isinstance(part, dict) else ""


def _spoken(content: Any) -> Any:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    if all(isinstance(part, dict) and part.get("type") in ("input_text", "text", "output_text") for part in content):
        return "\n".join(_text(part) for part in content)
    return content


def _output(output: Any) -> str:
    return output if isinstance(output, str) else encode_json(output).decode()
