"""SWE-agent trajectories: `history` holds the messages as the model saw them, `trajectory` the steps once more."""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import TranscriptBuilder, call_of, plain, speak
from leporello.importers.source import ImportedSession, SourceFile, identifier, mapping, objects, sequence, text

NAME = "swe-agent"


def matches(source: SourceFile) -> bool:
    """An object with both a history and a trajectory."""
    value = mapping(source.value)
    return isinstance(value.get("history"), list) and isinstance(value.get("trajectory"), list)


def read(source: SourceFile) -> list[ImportedSession]:
    """The history as one session. Observations that were recorded as user messages stay such."""
    value = mapping(source.value)
    builder = TranscriptBuilder(NAME)
    builder.id = source.path.stem
    for message in objects(value["history"]):
        _take(builder, message)
    return [builder.build()]


def _take(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    role = text(message.get("role"))
    content = plain(message.get("content"))
    if role == "assistant":
        draft = builder.assistant()
        speak(draft, message.get("content"))
        for call in objects(message.get("tool_calls")):
            draft.call(*call_of(call))
    elif role == "tool":
        ids = [identifier(call_id) for call_id in sequence(message.get("tool_call_ids"))]
        builder.result(ids[0] if ids else identifier(message.get("tool_call_id")), content)
    else:
        builder.message(role, content)
