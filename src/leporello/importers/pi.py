"""pi session files, and those of agents built on it: JSON lines of `message` entries linked into a tree.

Older files have no links; their lines follow one another.
"""

from __future__ import annotations

from leporello.importers.builder import COMPACTED, TranscriptBuilder, cache_aware_usage, plain
from leporello.importers.source import Format, ImportedSession, Record, SourceFile
from leporello.importers.tree import RecordedLine, ThreadReader


def _is_pi(source: SourceFile) -> bool:
    """`message` entries that wrap a message with a role, in a file without Claude Code's session ids."""
    return any(
        record.kind == "message" and "role" in record.inner("message") and "sessionId" not in record
        for record in source.records[:200]
    )


def _read_pi(source: SourceFile) -> list[ImportedSession]:
    """The branch that was gone on with first, then those that the user left."""
    header = next((record for record in source.records if record.kind in ("session", "session_start")), Record())
    nodes = [RecordedLine(r.id("id"), r.id("parentId"), r) for r in source.records if r is not header]

    def fill(builder: TranscriptBuilder, records: list[Record]) -> None:
        builder.id = header.id("id")
        builder.title = header.text("title")
        builder.started = header.text("timestamp")
        for record in records:
            _take(builder, record)

    return [builder.build() for builder in ThreadReader("pi", fill).branches(nodes, _rivals, source.broken_lines)]


def _rivals(one: Record, other: Record) -> bool:
    """Lines form a chain, so two spoken children of one line mean that the user went back."""
    return all(record.kind in ("message", "branch_summary") for record in (one, other))


def _take(builder: TranscriptBuilder, record: Record) -> None:
    entry = record.kind
    builder.at(record.get("timestamp"))
    if entry == "message" and isinstance(record.get("message"), dict):
        _message(builder, record.inner("message"))
    elif entry in ("compaction", "compact"):
        builder.note(COMPACTED)
    elif entry == "custom_message":
        # Context that an extension put in: the model saw it, the user did not write it.
        builder.exchange(record.text("customType") or "extension", {}, plain(record.get("content")))
    elif entry == "branch_summary":
        builder.note("a summary of a left branch was left out; the branch stands beside this session")


def _message(builder: TranscriptBuilder, message: Record) -> None:
    role = message.text("role")
    if role == "toolResult":
        builder.result(message.id("toolCallId"), plain(message.get("content")), message.text("toolName"))
    elif role == "assistant":
        _answer(builder, message)
    elif role == "bashExecution":
        # The user's own shell command, shown to the model.
        builder.exchange("bash", {"command": message.text("command")}, message.text("output"))
    else:
        builder.heard(message.get("content"), role)


def _answer(builder: TranscriptBuilder, message: Record) -> None:
    draft = builder.answer(message.get("content"))
    if isinstance(message.get("usage"), dict):
        usage = message.inner("usage")
        counts = cache_aware_usage(usage, ("input", "output", "cacheRead", "cacheWrite")) if "input" in usage else usage
        draft.meter(counts, message.text("model"), usage.inner("cost").number("total"))


PI = Format("pi", _is_pi, _read_pi)
