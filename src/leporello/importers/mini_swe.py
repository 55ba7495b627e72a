"""mini-swe-agent trajectories: one JSON object with OpenAI messages, each carrying its raw response in `extra`."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder
from leporello.importers.session import ImportedSession
from leporello.importers.source import Source
from leporello.usage import CanonicalUsage

NAME = "mini-swe-agent"


def matches(source: Source) -> bool:
    """An object with `messages` and either its own format mark or an `info` block."""
    value = source.value
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return False
    return "mini" in str(value.get("trajectory_format") or "") or "model_stats" in (value.get("info") or {})


def read(source: Source) -> list[ImportedSession]:
    """The trajectory as one session."""
    value = source.value
    builder = TranscriptBuilder(NAME)
    builder.id = str(value.get("instance_id") or source.path.name.removesuffix(".traj.json"))
    for message in value["messages"]:
        if isinstance(message, dict):
            _message(builder, message)
        else:
            builder.skipped_lines += 1
    return [builder.build()]


def _message(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    role = message.get("role")
    content = message.get("content")
    if role == "assistant":
        _assistant(builder, message)
    elif role == "tool":
        builder.result(str(message.get("tool_call_id") or ""), content)
    elif role == "exit":
        builder.note("the final submission, which the model never saw, was left out")
    else:
        builder.message(str(role), content)


def _assistant(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    draft = builder.assistant()
    draft.text(str(message.get("content") or ""))
    for call in message.get("tool_calls") or ():
        body = call.get("function") or {}
        draft.call(str(call.get("id") or ""), str(body.get("name") or ""), body.get("arguments") or "{}")
    extra = message.get("extra")
    response = extra.get("response") if isinstance(extra, dict) else None
    if isinstance(response, dict) and isinstance(response.get("usage"), dict):
        cost = extra.get("cost") if isinstance(extra, dict) else None
        builder.meter(draft, CanonicalUsage.parse(response["usage"]), str(response.get("model") or ""), cost)
