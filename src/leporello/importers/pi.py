"""pi session files, and those of agents built on it: JSON lines of `message` entries linked into a tree.

Older files have no links; their lines follow one another.
"""

from __future__ import annotations

from typing import Any

from leporello.importers.builder import COMPACTED, TranscriptBuilder, hear, plain, speak
from leporello.importers.source import ImportedSession, SourceFile, amount, identifier, kind_of, mapping, text
from leporello.importers.tree import Record, RecordedLine, split
from leporello.usage import CanonicalUsage

NAME = "pi"


def matches(source: SourceFile) -> bool:
    """`message` entries that wrap a message with a role, in a file without Claude Code's session ids."""
    return any(
        kind_of(record) == "message" and "role" in mapping(record.get("message")) and "sessionId" not in record
        for record in source.records[:200]
    )


def read(source: SourceFile) -> list[ImportedSession]:
    """The branch that was gone on with first, then those that the user left."""
    header = next((record for record in source.records if kind_of(record) in ("session", "session_start")), {})
    branches = split([_node(record) for record in source.records if record is not header], _rivals)
    builders = [_builder(branches.active, header, "main", "")]
    builders[0].skipped_lines = source.broken_lines
    builders += [_builder(way, header, "branch", f"/branch{n}") for n, way in enumerate(branches.abandoned, 1)]
    return [builder.build() for builder in builders]


def _node(record: Record) -> RecordedLine:
    return RecordedLine(identifier(record.get("id")), identifier(record.get("parentId")), record)


def _rivals(one: Record, other: Record) -> bool:
    """Lines form a chain, so two spoken children of one line mean that the user went back."""
    return all(kind_of(record) in ("message", "branch_summary") for record in (one, other))


def _builder(records: list[Record], header: Record, kind: str, suffix: str) -> TranscriptBuilder:
    builder = TranscriptBuilder(NAME)
    builder.kind = kind
    builder.id = identifier(header.get("id")) + suffix
    builder.title = text(header.get("title"))
    builder.started = text(header.get("timestamp"))
    for record in records:
        entry = kind_of(record)
        builder.at(record.get("timestamp"))
        if entry == "message" and isinstance(record.get("message"), dict):
            _message(builder, record["message"])
        elif entry in ("compaction", "compact"):
            builder.note(COMPACTED)
        elif entry == "custom_message":
            # Context that an extension put in: the model saw it, the user did not write it.
            builder.exchange(text(record.get("customType")) or "extension", {}, plain(record.get("content")))
        elif entry == "branch_summary":
            builder.note("a summary of a left branch was left out; the branch stands beside this session")
    return builder


def _message(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    role = text(message.get("role"))
    if role == "toolResult":
        call_id = identifier(message.get("toolCallId"))
        builder.result(call_id, plain(message.get("content")), text(message.get("toolName")))
    elif role == "assistant":
        _assistant(builder, message)
    elif role == "bashExecution":
        # The user's own shell command, shown to the model.
        builder.exchange("bash", {"command": text(message.get("command"))}, text(message.get("output")))
    else:
        hear(builder, message.get("content"), role)


def _assistant(builder: TranscriptBuilder, message: dict[str, Any]) -> None:
    draft = builder.assistant()
    speak(draft, message.get("content"))
    usage = message.get("usage")
    if isinstance(usage, dict):
        cost = amount(mapping(usage.get("cost")).get("total"))
        builder.meter(draft, _usage(usage), text(message.get("model")), cost)


def _usage(usage: dict[str, Any]) -> CanonicalUsage:
    if "input" not in usage:
        return CanonicalUsage.parse(usage)
    return CanonicalUsage.parse(
        {
            "input_tokens": usage.get("input"),
            "output_tokens": usage.get("output"),
            "cache_read_input_tokens": usage.get("cacheRead"),
            "cache_creation_input_tokens": usage.get("cacheWrite"),
        }
    )
