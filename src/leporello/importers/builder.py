"""Puts recorded pieces of any dialect together into a valid message list."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from leporello.importers.source import (
    CallUsage,
    ImportedSession,
    Record,
    as_text,
    identifier,
    mapping,
    moment,
    objects,
    sequence,
    text,
)
from leporello.messages import ROLES, Message, encode_json, parse_json
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage, written_for_an_hour

NO_RESULT = "[no result was recorded for this call]"
UNKNOWN_TOOL = "unknown_tool"

ADOPTED = "a result answered no recorded call; a call was added for it"
STUBBED = "a call had no recorded result; a stub stands in its place"
COMPACTED = "the recording agent compacted here; its summary was left out, the messages it covers are kept"
EMPTY = "an assistant message without any content was left out"


_Metered: TypeAlias = tuple[CanonicalUsage, str, float | None, int]


@dataclass(slots=True)
class _Group:
    """One message and the results that answer its calls, in order of arrival."""

    message: Message
    parts: list[Any] = field(default_factory=list)
    time: float | None = None
    results: list[Message] = field(default_factory=list)
    result_times: list[float | None] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    is_verbatim: bool = False
    metered: _Metered | None = None
    """Usage, model, cost and hour-long cache writes of the call that produced the message."""


class TranscriptBuilder:
    """Collects messages, calls, results and usage; `build` gives the finished session."""

    def __init__(self, format_name: str, kind: str = "main", skipped_lines: int = 0) -> None:
        self._format = format_name
        self._kind = kind
        self._skipped_lines = skipped_lines
        self.id = ""
        self.title = ""
        self.started = ""
        self.window: int | None = None
        self.output_is_partial = False
        """Whether the file records output tokens while they stream: then what was said tells more."""
        self.tools: list[Record] = []
        self._groups: list[_Group] = []
        self._by_key: dict[str, _Group] = {}
        self._by_call: dict[str, _Group] = {}
        self._open: list[_Group] = []
        self._models: dict[str, None] = {}
        self._notes: Counter[str] = Counter()
        self._unnamed = 0
        self._time: float | None = None

    def __len__(self) -> int:
        return len(self._groups)

    def note(self, what: str, count: int = 1) -> None:
        """Remember that something was left out or mended; equal notes are counted."""
        self._notes[what] += count

    def at(self, recorded: Any) -> None:
        """The time of what comes next, as a file writes it; what is no time is ignored."""
        self._time = moment(recorded) or self._time

    def message(self, role: str, content: Any) -> None:
        """A plain message of any role but tool."""
        if role not in ROLES or role in ("tool", "function"):
            self.note(f"a message of the unknown role {role!r} is shown as the user's")
            role = "user"
        self._groups.append(_Group({"role": role, "content": content}, time=self._time))

    def heard(self, content: Any, role: str = "user") -> None:
        """The content of a message to the model: results go to their calls, the rest is one message."""
        rest = []
        for block in sequence(content):
            if is_result(mapping(block)):
                self.result(*result_of(Record(block)))
            else:
                rest.append(block)
        if rest:
            self.message(role, plain(rest))
        elif content is not None and not isinstance(content, list):
            self.message(role, as_text(content))

    def verbatim(self, message: Message) -> AssistantDraft:
        """A message that is in OpenAI's format already, kept as it is with all its fields."""
        group = _Group(dict(message), time=self._time, is_verbatim=True)
        self._groups.append(group)
        return AssistantDraft(self, group)

    def assistant(self, key: str = "") -> AssistantDraft:
        """The assistant message known by `key`: begun now, or continued when the key was seen before."""
        group = self._by_key.get(key) if key else None
        if group is None:
            group = _Group({"role": "assistant", "content": None}, time=self._time)
            self._groups.append(group)
            if key:
                self._by_key[key] = group
        return AssistantDraft(self, group)

    def answer(self, content: Any, calls: Any = (), reasoning: str = "", key: str = "") -> AssistantDraft:
        """A whole assistant message whose calls stand beside its content."""
        draft = self.assistant(key)
        draft.reasoning(reasoning)
        draft.content(content)
        for call in objects(calls):
            draft.call(*call_of(call))
        return draft

    def result(self, call_id: str, content: Any, name: str = "") -> None:
        """The result of a call; one that answers no known call gets a call of its own, so that no text is lost.

        A result without an id answers the oldest open call.
        """
        while self._open and not self._open[0].waiting:
            self._open.pop(0)
        group = self._by_call.get(call_id) if call_id else next(iter(self._open), None)
        if group is None or (call_id and call_id not in group.waiting):
            self.note(ADOPTED)
            call_id, group = self._adopt(call_id, name, {})
        self._answer(group, call_id or group.waiting[0], content, name)

    def exchange(self, name: str, arguments: Any, content: Any) -> None:
        """A call and its result in one: for text that reached the model by a tool that was not recorded as one."""
        call_id, group = self._adopt("", name, arguments)
        self._answer(group, call_id, content, name)

    def model(self, name: str) -> None:
        if name:
            self._models[name] = None

    def build(self) -> ImportedSession:
        """The finished session; calls that never got a result are given a stub, except at the very end."""
        groups = [group for group in self._groups if self._has_content(group)]
        messages: list[Message] = []
        times: list[float | None] = []
        usage = []
        for position, group in enumerate(groups):
            self._finish(group, is_last=position == len(groups) - 1)
            if group.metered is not None:
                usage.append(self._usage(group, group.metered, len(messages)))
            messages += [group.message, *group.results]
            times += [group.time, *group.result_times]
        return ImportedSession(
            messages=messages,
            format=self._format,
            id=self.id,
            kind=self._kind,
            tools=[dict(tool) for tool in self.tools],
            usage=tuple(usage),
            times=tuple(times),
            models=tuple(self._models),
            skipped_lines=self._skipped_lines,
            notes=tuple(f"{what} ({count})" if count > 1 else what for what, count in self._notes.items()),
            title=self.title,
            started=self.started,
            window=self.window,
        )

    def _usage(self, group: _Group, metered: _Metered, index: int) -> CallUsage:
        usage, model, cost, long = metered
        if self.output_is_partial:
            said = TokenCounter.for_model(model or None).message(group.message)
            usage = replace(usage, output_tokens=max(usage.output_tokens, said))
        return CallUsage(index, usage, model, cost, long)

    def _has_content(self, group: _Group) -> bool:
        if group.is_verbatim or group.message["role"] != "assistant":
            return True
        if group.parts or group.message.get("tool_calls"):
            return True
        self.note(EMPTY)
        return False

    def _finish(self, group: _Group, *, is_last: bool) -> None:
        if group.parts:
            # Text alone becomes a plain string, as most hosts write it; anything else stays a list of parts.
            plain_text = all(mapping(part).kind == "text" and len(part) == 2 for part in group.parts)
            joined = "\n\n".join(part["text"] for part in group.parts) if plain_text else group.parts
            group.message["content"] = joined
        if is_last:
            return  # calls that wait at the very end are work in progress
        for call_id in group.waiting:
            self.note(STUBBED)
            group.results.append({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
            group.result_times.append(group.time)
        group.waiting = []

    def _answer(self, group: _Group, call_id: str, content: Any, name: str) -> None:
        group.waiting.remove(call_id)
        message: Message = {"role": "tool", "tool_call_id": call_id, "content": content}
        if name:
            message["name"] = name
        group.results.append(message)
        group.result_times.append(self._time)

    def _adopt(self, call_id: str, name: str, arguments: Any) -> tuple[str, _Group]:
        draft = self.assistant()
        return draft.call(call_id, name or UNKNOWN_TOOL, arguments), draft.group

    def _register(self, call_id: str, group: _Group) -> str:
        if not call_id:
            self._unnamed += 1
            call_id = f"call_{self._unnamed}"
        group.waiting.append(call_id)
        self._by_call[call_id] = group
        self._open.append(group)
        return call_id


@dataclass(frozen=True, slots=True)
class AssistantDraft:
    """An assistant message while it is being put together."""

    builder: TranscriptBuilder
    group: _Group

    @property
    def is_answered(self) -> bool:
        """Whether results have arrived: a later part belongs to the next call of the model."""
        return bool(self.group.results)

    def meter(self, usage: Any, model: str = "", cost: float | None = None) -> None:
        """Usage of the call that produced it, read or as reported; the latest word wins. Anything else is ignored."""
        long = 0
        if isinstance(usage, dict):
            long, usage = written_for_an_hour(usage), CanonicalUsage.parse(usage)
        if isinstance(usage, CanonicalUsage):
            self.group.metered = usage, model, cost, min(long, usage.cache_write_tokens)
            self.builder.model(model)

    def text(self, text: str) -> None:
        if text:
            self.group.parts.append({"type": "text", "text": text})

    def reasoning(self, words: str) -> None:
        """Thinking without a signature; empty reasoning is no content."""
        if words:
            self.group.parts.append({"type": "reasoning", "text": words})

    def content(self, content: Any) -> None:
        if isinstance(content, str):
            self.text(content)
        for block in sequence(content):
            if isinstance(block, str):
                self.text(block)
            elif isinstance(block, dict):
                self._block(Record(block))

    def _block(self, block: Record) -> None:
        kind = block.kind
        if is_call(block):
            self.call(*call_of(block))
        elif is_result(block):
            self.builder.result(*result_of(block))
        elif kind in _UNSIGNED or (block.get("thought") is True and kind not in _SIGNED):
            self.reasoning(block.text("think", "text", "content"))
        elif kind in _TEXT or (not kind and isinstance(block.get("text"), str)):
            self.text(block.text("text"))
        else:
            self.part(dict(block))

    def part(self, part: Any) -> None:
        """Any other content part, carried along as it is."""
        self.group.parts.append(part)

    def call(self, call_id: str, name: str, arguments: Any) -> str:
        """A tool call; arguments are JSON text or any JSON value. Gives the id, made up when none was recorded."""
        call_id = self.builder._register(call_id, self.group)
        body = {"name": name or UNKNOWN_TOOL, "arguments": self._json_text(arguments)}
        self.group.message.setdefault("tool_calls", []).append({"id": call_id, "type": "function", "function": body})
        return call_id

    def _json_text(self, arguments: Any) -> str:
        """Arguments must be JSON text; what a model wrote instead is kept inside a JSON object."""
        if not isinstance(arguments, str):
            return encode_json({} if arguments is None else arguments).decode()
        if not arguments.strip():
            return "{}"
        if parse_json(arguments) is not None:
            return arguments
        self.builder.note("arguments of a call were not JSON; they stand under `raw`")
        return encode_json({"raw": arguments}).decode()


_TEXT = frozenset(("text", "input_text", "output_text"))
_CALLS = frozenset(("tool_use", "toolCall", "tool_call", "tool-call", "server_tool_use"))
_RESULTS = frozenset(("tool_result", "toolResult", "tool-result"))
_SIGNED = frozenset(("thinking", "redacted_thinking"))
"""Thinking that stays as it is; that of other dialects gets one common shape."""
_UNSIGNED = frozenset(("reasoning", "think"))


def is_call(block: Record) -> bool:
    return block.kind in _CALLS or isinstance(block.get("functionCall"), dict)


def is_result(block: Record) -> bool:
    return block.kind in _RESULTS or isinstance(block.get("functionResponse"), dict)


def call_of(block: Record) -> tuple[str, str, Any]:
    """Id, name and arguments of a call block; the OpenAI form with a `function` inside included."""
    body = block.inner("functionCall") or block.inner("function") or block
    keys = ("arguments", "input", "args", "parameters")
    arguments: Any = next((body[key] for key in keys if body.get(key) is not None), {})
    call_id = identifier(block.get("id") or block.get("toolCallId") or body.get("id") or block.get("call_id"))
    return call_id, text(body.get("name") or block.get("toolName")), arguments


def result_of(block: Record) -> tuple[str, Any, str]:
    """Call id, content and tool name of a result block."""
    if isinstance(block.get("functionResponse"), dict):
        response = block.inner("functionResponse")
        return response.id("id"), _response_text(response.get("response")), response.text("name")
    call_id = block.id("tool_use_id", "toolCallId", "tool_call_id")
    content = next((block[key] for key in ("content", "output", "result", "text") if block.get(key) is not None), "")
    return call_id, plain(content), text(block.get("name") or block.get("toolName"))


def _response_text(response: Any) -> str:
    """Google's function responses wrap the output in an object."""
    fields = mapping(response)
    if set(fields) in ({"output"}, {"error"}, {"content"}, {"result"}):
        return as_text(next(iter(fields.values())))
    return as_text(response)


def plain(content: Any) -> Any:
    """Content without needless wrapping: text parts alone become a string, other parts stay a list."""
    if not isinstance(content, list):
        return as_text(content)
    if all(isinstance(part, str) or is_text(part) for part in content):
        return "\n".join(part if isinstance(part, str) else part["text"] for part in content)
    return content


def is_text(part: Any) -> bool:
    fields = mapping(part)
    return isinstance(fields.get("text"), str) and (fields.kind in _TEXT or not (fields.kind or "thought" in fields))


def texts(parts: Any) -> str:
    return "\n".join(filter(None, (part.text("text") for part in objects(parts))))


def cache_aware_usage(counts: dict[str, Any], fields: tuple[str, ...], reasoning: Any = None) -> CanonicalUsage:
    """Usage whose input leaves out what the cache served; `fields` name input, output, cache reads and cache writes."""
    given, output, read, written = (counts.get(field) for field in fields)
    return CanonicalUsage.parse(
        {
            "input_tokens": given,
            "output_tokens": output,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens_details": {"reasoning_tokens": reasoning},
        }
    )
