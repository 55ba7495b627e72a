"""tau-bench results (`traj` in OpenAI's format) and tau2 simulations (`messages` with plain calls): short talks."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, call_of, speak
from leporello.importers.openai_json import session_of
from leporello.importers.source import ImportedSession, SourceFile, amount, as_text, identifier, mapping, objects, text
from leporello.usage import CanonicalUsage

NAME = "tau-bench"


def matches(source: SourceFile) -> bool:
    """A list of runs with a task id, or an object that holds it."""
    return any("task_id" in run and _messages(run) is not None for run in _runs(source)[:3])


def read(source: SourceFile) -> list[ImportedSession]:
    """One session per run."""
    return [_session(run) for run in _runs(source) if _messages(run) is not None]


def _runs(source: SourceFile) -> list[dict[str, Any]]:
    value = source.value
    return objects(value.get("simulations") if isinstance(value, dict) else value)


def _messages(run: dict[str, Any]) -> list[Any] | None:
    found = run.get("traj") if isinstance(run.get("traj"), list) else run.get("messages")
    return found if isinstance(found, list) else None


def _session(run: dict[str, Any]) -> ImportedSession:
    name = f"{identifier(run.get('task_id'))}/{identifier(run.get('trial')) or '0'}"
    if isinstance(run.get("traj"), list):
        return session_of({"messages": run["traj"], "id": name}, NAME)
    builder = TranscriptBuilder(NAME)
    builder.id = identifier(run.get("id")) or name
    builder.started = text(run.get("start_time"))
    for message in objects(_messages(run)):
        builder.at(message.get("timestamp"))
        _take(builder, message)
    return builder.build()


def _take(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    role = text(message.get("role"))
    if role == "assistant":
        _assistant(builder, message)
    elif role == "tool" and message.get("requestor") != "user":
        builder.result(identifier(message.get("id") or message.get("tool_call_id")), as_text(message.get("content")))
    elif role == "tool":
        builder.note("a result of the user's own tools, which the agent never saw, was left out")
    elif message.get("content") is not None:
        builder.message(role, message["content"])
    else:
        builder.note("a call of the user's own tools, which the agent never saw, was left out")


def _assistant(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    draft = builder.assistant()
    reasoning = text(message.get("reasoning"))
    if reasoning:
        draft.part({"type": "reasoning", "text": reasoning})
    speak(draft, message.get("content"))
    for call in objects(message.get("tool_calls")):
        draft.call(*call_of(call))
    raw = mapping(message.get("raw_data"))
    usage = raw.get("usage") if isinstance(raw.get("usage"), dict) else message.get("usage")
    if isinstance(usage, dict):
        builder.meter(draft, CanonicalUsage.parse(usage), text(raw.get("model")), amount(message.get("cost")))
