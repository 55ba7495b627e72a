"""mini-swe-agent trajectories: one JSON object with OpenAI messages, each carrying its raw response in `extra`."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, call_of, plain, speak
from leporello.importers.source import ImportedSession, SourceFile, amount, identifier, mapping, objects, text
from leporello.usage import CanonicalUsage

NAME = "mini-swe-agent"


def matches(source: SourceFile) -> bool:
    """An object with `messages` and either the format's own mark or its `info` block."""
    value = mapping(source.value)
    if not isinstance(value.get("messages"), list):
        return False
    return "mini" in text(value.get("trajectory_format")) or "model_stats" in mapping(value.get("info"))


def read(source: SourceFile) -> list[ImportedSession]:
    value = mapping(source.value)
    builder = TranscriptBuilder(NAME)
    builder.id = identifier(value.get("instance_id")) or source.path.name.removesuffix(".traj.json")
    for message in value["messages"]:
        if isinstance(message, dict):
            builder.at(mapping(message.get("extra")).get("timestamp"))
            _message(builder, message)
        else:
            builder.skipped_lines += 1
    return [builder.build()]


def _message(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    role = text(message.get("role"))
    if role == "assistant":
        _assistant(builder, message)
    elif role == "tool":
        builder.result(identifier(message.get("tool_call_id")), plain(message.get("content")))
    elif role == "exit":
        builder.note("the final submission, which the model never saw, was left out")
    else:
        builder.message(role, plain(message.get("content")))


def _assistant(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    draft = builder.assistant()
    speak(draft, message.get("content"))
    for call in objects(message.get("tool_calls")):
        draft.call(*call_of(call))
    extra = mapping(message.get("extra"))
    response = mapping(extra.get("response"))
    if isinstance(response.get("usage"), dict):
        builder.meter(
            draft, CanonicalUsage.parse(response["usage"]), text(response.get("model")), amount(extra.get("cost"))
        )
