"""Puts recorded pieces together into a valid message list.

Recordings interleave: one assistant message arrives as several lines, a result may come before the next call of the
same message, a user's text between a call and its result. The builder keeps each assistant message and its results as
one group at the place where the message began, so the list reads as the provider saw it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from leporello.importers.session import CallUsage, ImportedSession
from leporello.messages import Message, encode_json
from leporello.usage import CanonicalUsage

NO_RESULT = "[no result was recorded for this call]"
UNKNOWN_TOOL = "unknown_tool"


@dataclass(slots=True)
class _Group:
    """One message and the results that answer its calls, in order of arrival."""

    message: Message
    parts: list[Any] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Metered:
    """Usage waiting for the final place of the assistant message it belongs to."""

    group: _Group
    usage: CanonicalUsage
    model: str
    cost: float | None


class TranscriptBuilder:
    """Collects messages, calls, results and usage; `build` gives the finished session."""

    def __init__(self, format_name: str) -> None:
        self.format = format_name
        self.id = ""
        self.title = ""
        self.started = ""
        self.tools: list[dict[str, Any]] = []
        self.skipped_lines = 0
        self._groups: list[_Group] = []
        self._by_key: dict[str, _Group] = {}
        self._by_call: dict[str, _Group] = {}
        self._metered: list[_Metered] = []
        self._metered_keys: set[str] = set()
        self._models: dict[str, None] = {}
        self._notes: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._groups)

    def note(self, what: str, count: int = 1) -> None:
        """Remember that something was left out or mended; equal notes are counted."""
        self._notes[what] += count

    def message(self, role: str, content: Any) -> None:
        """A plain message of any role but tool."""
        self._groups.append(_Group({"role": role, "content": content}))

    def assistant(self, key: str = "") -> AssistantDraft:
        """The assistant message known by `key`: begun now, or continued when the key was seen before."""
        group = self._by_key.get(key) if key else None
        if group is None:
            group = _Group({"role": "assistant", "content": None})
            self._groups.append(group)
            if key:
                self._by_key[key] = group
        return AssistantDraft(self, group)

    def result(self, call_id: str, content: Any, name: str = "") -> None:
        """The result of a call; one that answers no known call gets a call of its own, so that no text is lost."""
        group = self._by_call.get(call_id)
        if group is None or call_id not in group.waiting:
            if group is not None:
                self.note("a call had more than one result; the later one was given a call of its own")
            else:
                self.note("a result answered no recorded call; a call was added for it")
            group = self._adopt(call_id, name)
        group.waiting.remove(call_id)
        message: Message = {"role": "tool", "tool_call_id": call_id, "content": content}
        if name:
            message["name"] = name
        group.results.append(message)

    def meter(self, draft: AssistantDraft, usage: CanonicalUsage, model: str = "", cost: float | None = None) -> None:
        """Usage of the call that produced a message; the latest word on one message wins."""
        self._metered = [entry for entry in self._metered if entry.group is not draft.group]
        self._metered.append(_Metered(draft.group, usage, model, cost))
        self.model(model)

    def model(self, name: str) -> None:
        """A model that was used."""
        if name:
            self._models[name] = None

    def build(self) -> ImportedSession:
        """The finished session; calls that never got a result are given a stub, except at the very end."""
        messages: list[Message] = []
        places: dict[int, int] = {}
        for position, group in enumerate(self._groups):
            places[id(group)] = len(messages)
            self._finish(group, is_last=position == len(self._groups) - 1)
            messages.append(group.message)
            messages.extend(group.results)
        usage = tuple(
            CallUsage(places[id(entry.group)], entry.usage, entry.model, entry.cost)
            for entry in sorted(self._metered, key=lambda entry: places[id(entry.group)])
        )
        notes = tuple(f"{what} ({count})" if count > 1 else what for what, count in self._notes.items())
        return ImportedSession(
            messages=messages,
            format=self.format,
            id=self.id,
            tools=self.tools,
            usage=usage,
            models=tuple(self._models),
            skipped_lines=self.skipped_lines,
            notes=notes,
            title=self.title,
            started=self.started,
        )

    def _finish(self, group: _Group, *, is_last: bool) -> None:
        if group.message["role"] == "assistant" and group.parts:
            group.message["content"] = _content(group.parts)
        if group.waiting and not (is_last and not group.results):
            for call_id in group.waiting:
                self.note("a call had no recorded result; a stub stands in its place")
                group.results.append({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
            group.waiting = []

    def _adopt(self, call_id: str, name: str) -> _Group:
        draft = self.assistant()
        draft.call(call_id, name or UNKNOWN_TOOL, "{}")
        return draft.group


@dataclass(frozen=True, slots=True)
class AssistantDraft:
    """An assistant message while it is being put together."""

    builder: TranscriptBuilder
    group: _Group

    def text(self, text: str) -> None:
        """A piece of text."""
        if text:
            self.group.parts.append({"type": "text", "text": text})

    def part(self, part: Any) -> None:
        """Any other content part, carried along as it is."""
        self.group.parts.append(part)

    def call(self, call_id: str, name: str, arguments: Any) -> None:
        """A tool call; arguments are JSON text or any JSON value."""
        text = arguments if isinstance(arguments, str) else encode_json(arguments).decode()
        calls = self.group.message.setdefault("tool_calls", [])
        calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": text}})
        self.group.waiting.append(call_id)
        self.builder._by_call[call_id] = self.group


def _content(parts: list[Any]) -> Any:
    """Text alone becomes a plain string, as most hosts write it; anything else stays a list of parts."""
    if all(isinstance(part, dict) and part.get("type") == "text" and len(part) == 2 for part in parts):
        return "\n\n".join(part["text"] for part in parts) if len(parts) > 1 else parts[0]["text"]
    return parts
