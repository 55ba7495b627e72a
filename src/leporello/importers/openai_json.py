"""OpenAI messages in any wrapping: a list, an object, one per line; exports of Hermes and our own, runs of benchmarks.

Messages that a provider would take as they are stay untouched, extra fields included. Only a list with broken pairs is
put together anew.
"""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import AssistantDraft, TranscriptBuilder, call_of, plain, result_of
from leporello.importers.source import (
    Format,
    ImportedSession,
    Record,
    SourceFile,
    as_text,
    identifier,
    mapping,
    moment,
    objects,
)
from leporello.lazy_regex import lazy_regex
from leporello.messages import ROLES
from leporello.turns import ViolationKind, validate

HARMLESS = frozenset((ViolationKind.NEIGHBOURS, ViolationKind.LATE_SYSTEM, ViolationKind.NO_USER))
_LOOSE_CALLS = frozenset(("tool_call", "function_call"))
_LOOSE_RESULTS = frozenset(("tool_result", "function_result", "function_call_output"))


def _is_openai(source: SourceFile) -> bool:
    if isinstance(source.value, list | dict):
        return any(message.text("role") in ROLES for message in _document(source).objects("messages")[:20])
    return any("role" in record and ("content" in record or "message" in record) for record in source.records[:50])


def _document(source: SourceFile) -> Record:
    if isinstance(source.value, dict):
        return Record(source.value)
    return Record(messages=source.value if isinstance(source.value, list) else source.records)


def session_of(document: Record, format_name: str = "openai", skipped: int = 0) -> ImportedSession:
    """A session from `{messages, system?, tools?, id?, model?}`."""
    raw = document.sequence("messages")
    messages = objects(raw)
    builder = TranscriptBuilder(format_name, skipped_lines=skipped + len(raw) - len(messages))
    _head(builder, document)
    is_fine = _is_fine(raw)
    builder.at(builder.started)
    for message in messages:
        builder.at(message.get("timestamp"))
        if not is_fine:
            _take(builder, message)
            continue
        draft = builder.verbatim(message)
        if message.get("role") == "assistant":
            _meter(draft, message)
    return builder.build()


def _is_fine(raw: list[Any]) -> bool:
    """Whether a provider would take the messages as they are."""
    if not all(isinstance(m, dict) and Record(m).text("role") in ROLES and "content" in m for m in raw):
        return False
    # Anthropic's results stand inside user messages: they validate, and yet are no OpenAI messages.
    if any(block.kind in ("tool_use", "tool_result") for m in raw for block in objects(m["content"])):
        return False
    return all(violation.fault in HARMLESS for violation in validate(raw))


def _head(builder: TranscriptBuilder, document: Record) -> None:
    builder.id = document.id("session_id", "id")
    builder.title = document.text("title")
    builder.started = document.text("session_start", "started_at")
    builder.model(document.text("model"))
    builder.tools = [_tool(tool) for tool in document.objects("tools")]
    system = document.get("system") or document.get("system_prompt")
    if system and not any(m.text("role") == "system" for m in document.objects("messages")[:1]):
        builder.message("system", plain(system))


def _tool(tool: Record) -> Record:
    """A tool schema in OpenAI's form; Anthropic's is rewrapped."""
    if isinstance(tool.get("function"), dict) or "input_schema" not in tool:
        return tool
    named = {"name": tool.get("name"), "description": tool.get("description", "")}
    return Record(type="function", function={**named, "parameters": tool["input_schema"]})


def _take(builder: TranscriptBuilder, message: Record) -> None:
    role, kind = message.text("role"), message.kind
    content, inner = message.get("content"), message.get("message")
    if content is None and isinstance(inner, dict | str):
        content = inner.get("content") if isinstance(inner, dict) else inner
    if role == "assistant":
        _assistant(builder, message, content)
    elif role in ("tool", "function"):
        builder.result(message.id("tool_call_id"), plain(content), message.text("name", "tool_name"))
    elif role == "session_meta":
        builder.tools = builder.tools or [_tool(tool) for tool in message.objects("tools")]
    elif role:
        builder.heard(content if content is not None else "", role)
    elif kind in _LOOSE_CALLS:
        builder.assistant().call(*call_of(message))
    elif kind in _LOOSE_RESULTS:
        builder.result(*result_of(message))
    elif kind:
        builder.note(f"a line of kind {kind!r} was left out")


def _assistant(builder: TranscriptBuilder, message: Record, content: Any) -> None:
    reasoning = message.text("reasoning_content", "reasoning")
    draft = builder.answer(content, message.get("tool_calls"), reasoning)
    if isinstance(message.get("function_call"), dict):
        legacy = message.inner("function_call")
        draft.call("", legacy.text("name"), legacy.get("arguments"))
    _meter(draft, message)


def _meter(draft: AssistantDraft, message: Record) -> None:
    draft.meter(message.get("usage"), message.text("model"), message.number("cost"))


def _read_openai(source: SourceFile) -> list[ImportedSession]:
    return [session_of(_document(source), skipped=0 if isinstance(source.value, list | dict) else source.broken_lines)]


OPENAI = Format("openai", _is_openai, _read_openai)


# -- Hermes exports: one object per session, as a file or as a line of JSON lines


def _read_hermes(source: SourceFile) -> list[ImportedSession]:
    documents = _hermes_documents(source)
    found = [document for document in documents if _is_hermes_session(document)]
    broken = len(documents) - len(found) + (source.broken_lines if documents is source.records else 0)
    return [session_of(document, "hermes", broken if document is found[0] else 0) for document in found]


def _hermes_documents(source: SourceFile) -> list[Record]:
    return [Record(source.value)] if isinstance(source.value, dict) else source.records


def _is_hermes_session(document: Record) -> bool:
    """An object with a session id, a platform or source, and messages."""
    has_id = "session_id" in document or "id" in document
    is_hermes = any(key in document for key in ("platform", "source", "session_start", "message_count"))
    return has_id and is_hermes and isinstance(document.get("messages"), list)


HERMES = Format("hermes", lambda source: any(map(_is_hermes_session, _hermes_documents(source)[:3])), _read_hermes)


# -- What `leporello sessions export` writes: one message a line, with its id and time. Read back as it was.

_MESSAGE_ID = lazy_regex(r"m[1-9][0-9]*")


def _is_exported(source: SourceFile) -> bool:
    """Every line looked at has our ids and wraps a message; a folded view has lines without an id and is not read."""
    records = source.records[:50]
    return bool(records) and all(map(_is_exported_line, records))


def _read_exported(source: SourceFile) -> list[ImportedSession]:
    records = list(filter(_is_exported_line, source.records))
    return [
        ImportedSession(
            messages=[record["message"] for record in records],
            format="leporello",
            times=tuple(moment(record["at"]) for record in records),
            skipped_lines=source.broken_lines + len(source.records) - len(records),
        )
    ]


def _is_exported_line(record: Record) -> bool:
    is_message = "role" in record.inner("message") and "at" in record
    return is_message and _MESSAGE_ID.fullmatch(record.text("id")) is not None


EXPORTED = Format("leporello", _is_exported, _read_exported)


# -- mini-swe-agent: one object with OpenAI messages, each carrying its raw response in `extra`


def _is_mini_swe(source: SourceFile) -> bool:
    """An object with `messages` and either the format's own mark or its `info` block."""
    value = mapping(source.value)
    if not isinstance(value.get("messages"), list):
        return False
    return "mini" in value.text("trajectory_format") or "model_stats" in value.inner("info")


def _read_mini_swe(source: SourceFile) -> list[ImportedSession]:
    value = mapping(source.value)
    messages = objects(value["messages"])
    builder = TranscriptBuilder("mini-swe-agent", skipped_lines=len(value["messages"]) - len(messages))
    builder.id = value.id("instance_id") or source.path.name.removesuffix(".traj.json")
    for message in messages:
        extra = message.inner("extra")
        builder.at(extra.get("timestamp"))
        if message.get("role") == "exit":
            builder.note("the final submission, which the model never saw, was left out")
            continue
        draft = _take_step(builder, message, message.id("tool_call_id"))
        if draft is not None:
            response = extra.inner("response")
            draft.meter(response.get("usage"), response.text("model"), extra.number("cost"))
    return [builder.build()]


def _take_step(builder: TranscriptBuilder, message: Record, call_id: str) -> AssistantDraft | None:
    """A message of a run; the draft of an answer. `call_id` is that of the call which a result answers."""
    role, content = message.text("role"), message.get("content")
    if role == "assistant":
        return builder.answer(content, message.get("tool_calls"))
    if role == "tool":
        builder.result(call_id, plain(content))
    else:
        builder.message(role, plain(content))
    return None


MINI_SWE = Format("mini-swe-agent", _is_mini_swe, _read_mini_swe)


# -- SWE-agent: `history` holds the messages as the model saw them, `trajectory` the steps once more


def _is_swe_agent(source: SourceFile) -> bool:
    """An object with both a history and a trajectory."""
    value = mapping(source.value)
    return isinstance(value.get("history"), list) and isinstance(value.get("trajectory"), list)


def _read_swe_agent(source: SourceFile) -> list[ImportedSession]:
    """The history as one session. Observations that were recorded as user messages stay such."""
    builder = TranscriptBuilder("swe-agent")
    builder.id = source.path.stem
    for message in objects(mapping(source.value)["history"]):
        ids = message.sequence("tool_call_ids")
        _take_step(builder, message, identifier(ids[0]) if ids else message.id("tool_call_id"))
    return [builder.build()]


SWE_AGENT = Format("swe-agent", _is_swe_agent, _read_swe_agent)


# -- tau-bench (`traj` in OpenAI's format) and tau2 (`messages` with plain calls): many short conversations in one file


def _tau_runs(source: SourceFile) -> list[Record]:
    value = source.value
    return objects(value.get("simulations") if isinstance(value, dict) else value)


def _tau_messages(run: Record) -> list[Any] | None:
    found = run.get("traj") if isinstance(run.get("traj"), list) else run.get("messages")
    return found if isinstance(found, list) else None


def _tau_session(run: Record) -> ImportedSession:
    name = f"{run.id('task_id')}/{run.id('trial') or '0'}"
    if isinstance(run.get("traj"), list):
        return session_of(Record(messages=run["traj"], id=name), "tau-bench")
    builder = TranscriptBuilder("tau-bench")
    builder.id = run.id("id") or name
    builder.started = run.text("start_time")
    for message in objects(_tau_messages(run)):
        builder.at(message.get("timestamp"))
        role, content = message.text("role"), message.get("content")
        if role == "assistant":
            draft = builder.answer(content, message.get("tool_calls"), message.text("reasoning"))
            raw = message.inner("raw_data")
            usage = raw.get("usage") if isinstance(raw.get("usage"), dict) else message.get("usage")
            draft.meter(usage, raw.text("model"), message.number("cost"))
        elif role == "tool" and message.get("requestor") != "user":
            builder.result(message.id("id", "tool_call_id"), as_text(content))
        elif role == "tool":
            builder.note("a result of the user's own tools, which the agent never saw, was left out")
        elif content is not None:
            builder.message(role, content)
        else:
            builder.note("a call of the user's own tools, which the agent never saw, was left out")
    return builder.build()


TAU = Format(
    "tau-bench",
    lambda source: any("task_id" in run and _tau_messages(run) is not None for run in _tau_runs(source)[:3]),
    lambda source: [_tau_session(run) for run in _tau_runs(source) if _tau_messages(run) is not None],
)
