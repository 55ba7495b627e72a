"""Results of benchmarks, one JSON document with whole runs: mini-swe-agent, SWE-agent, tau-bench and tau2."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, plain
from leporello.importers.openai_json import session_of
from leporello.importers.source import (
    Format,
    ImportedSession,
    Record,
    SourceFile,
    as_text,
    identifier,
    mapping,
    objects,
)

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
        _take_mini_swe(builder, message, message.inner("extra"))
    return [builder.build()]


def _take_mini_swe(builder: TranscriptBuilder, message: Record, extra: Record) -> None:
    builder.at(extra.get("timestamp"))
    role, content = message.text("role"), message.get("content")
    if role == "assistant":
        response = extra.inner("response")
        draft = builder.answer(content, message.get("tool_calls"))
        draft.meter(response.get("usage"), response.text("model"), extra.number("cost"))
    elif role == "tool":
        builder.result(message.id("tool_call_id"), plain(content))
    elif role == "exit":
        builder.note("the final submission, which the model never saw, was left out")
    else:
        builder.message(role, plain(content))


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
        role, content = message.text("role"), message.get("content")
        if role == "assistant":
            builder.answer(content, message.get("tool_calls"))
        elif role == "tool":
            ids = [identifier(call_id) for call_id in message.sequence("tool_call_ids")]
            builder.result(ids[0] if ids else message.id("tool_call_id"), plain(content))
        else:
            builder.message(role, plain(content))
    return [builder.build()]


SWE_AGENT = Format("swe-agent", _is_swe_agent, _read_swe_agent)


# -- tau-bench (`traj` in OpenAI's format) and tau2 (`messages` with plain calls): many short conversations in one file


def _is_tau(source: SourceFile) -> bool:
    """A list of runs with a task id, or an object that holds it."""
    return any("task_id" in run and _tau_messages(run) is not None for run in _tau_runs(source)[:3])


def _read_tau(source: SourceFile) -> list[ImportedSession]:
    return [_tau_session(run) for run in _tau_runs(source) if _tau_messages(run) is not None]


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
        _take_tau(builder, message)
    return builder.build()


def _take_tau(builder: TranscriptBuilder, message: Record) -> None:
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


TAU = Format("tau-bench", _is_tau, _read_tau)
