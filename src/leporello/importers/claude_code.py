"""Claude Code session files: JSON lines of `user`, `assistant` and bookkeeping records.

One call to the model is spread over several lines with the same `message.id`, its results may stand between them. The
lines of sub-agents are marked and become sessions of their own, and so do the turns that the user went back on.
"""

from __future__ import annotations

from leporello.importers.builder import COMPACTED, TranscriptBuilder, call_of, plain, result_of
from leporello.importers.source import Format, ImportedSession, Record, SourceFile, as_text, objects, text
from leporello.importers.tree import RecordedLine, ThreadReader
from leporello.messages import message_hash

_SYNTHETIC = "<synthetic>"
_NOTICES = ("{", "<task-notification>")
"""How the program's own queued notices begin."""
_ASIDES = ("<local-command-", "<command-", "<bash-")
"""How lines begin that record a command typed at the prompt, which the model did not answer."""


def _is_claude_code(source: SourceFile) -> bool:
    """User or assistant lines that carry a session id and a message with Anthropic's roles."""
    return any(
        record.kind in ("user", "assistant") and "sessionId" in record and "content" in record.inner("message")
        for record in source.records[:500]
    )


def _read_claude_code(source: SourceFile) -> list[ImportedSession]:
    """The main thread first, then sub-agents and abandoned branches."""
    records, repeated = _unrepeated(source.records)
    main, others = _threads(records)
    reader = ThreadReader("claude-code", _fill)
    nodes = [RecordedLine(r.id("uuid"), r.id("parentUuid", "logicalParentUuid"), r) for r in main]
    first, *branches = reader.branches(nodes, _rivals, source.broken_lines)
    if repeated:
        first.note("a line was recorded twice; the second was left out", repeated)
    if others:
        first.note("a sub-agent's thread stands beside this one", len(others))
    agents = [reader.read(thread, "sub-agent", f"/{name}") for name, thread in others.items()]
    return [builder.build() for builder in (first, *agents, *branches)]


def _unrepeated(records: list[Record]) -> tuple[list[Record], int]:
    """Resuming a session copies lines: the same line with the same id counts once."""
    seen = set()
    kept = []
    for record in records:
        if isinstance(record.get("message"), dict) and record.get("uuid"):
            key = (record.id("uuid"), message_hash(record["message"]))
            if key in seen:
                continue
            seen.add(key)
        kept.append(record)
    return kept, len(records) - len(kept)


def _threads(records: list[Record]) -> tuple[list[Record], dict[str, list[Record]]]:
    """The main thread, and the threads of sub-agents by name. A file of one sub-agent alone has that as its main."""
    main: list[Record] = []
    others: dict[str, list[Record]] = {}
    thread_of: dict[str, str] = {}
    for record in records:
        if not record.get("isSidechain"):
            main.append(record)
            continue
        uuid, parent = record.id("uuid"), record.id("parentUuid")
        name = record.id("agentId") or thread_of.get(parent) or uuid
        thread_of[uuid] = name
        others.setdefault(name, []).append(record)
    if not any(_is_spoken(record) for record in main) and others:
        return records, {}
    return main, {name: thread for name, thread in others.items() if any(map(_is_spoken, thread))}


def _is_spoken(record: Record) -> bool:
    return record.kind in ("user", "assistant") and isinstance(record.get("message"), dict)


def _rivals(one: Record, other: Record) -> bool:
    """Two prompts at the same place, or two answers to the same line: the user went back."""
    if _is_prompt(one) and _is_prompt(other):
        return True
    first, second = (record.inner("message").id("id") for record in (one, other))
    return one.kind == other.kind == "assistant" and "" not in (first, second) and first != second


def _is_prompt(record: Record) -> bool:
    if record.kind != "user" or record.get("isMeta") or record.get("isCompactSummary"):
        return False
    content = record.inner("message").get("content")
    if any(block.kind == "tool_result" for block in objects(content)):
        return False
    return not as_text(plain(content)).startswith(_ASIDES)


def _fill(builder: TranscriptBuilder, records: list[Record]) -> None:
    queued = _delivered_from_queue(records)
    for record in records:
        if id(record) in queued:
            builder.note("words queued while the agent worked stand where they were handed over")
            builder.message("user", queued[id(record)])
        else:
            _take(builder, record)


def _delivered_from_queue(records: list[Record]) -> dict[int, str]:
    """Words typed while the agent worked, by the line that says they were handed over.

    Most get a line of their own as well; only those that don't are given here.
    """
    spoken = "\n".join(as_text(plain(record.inner("message").get("content"))) for record in records)
    waiting: list[str] = []
    delivered: dict[int, str] = {}
    for record in records:
        if record.kind != "queue-operation":
            continue
        operation = record.get("operation")
        if operation == "enqueue":
            waiting.append(record.text("content"))
        elif operation == "popAll":
            waiting.clear()  # the user took them back into the editor
        elif operation in ("remove", "dequeue") and waiting:
            words = waiting.pop(0)
            if words and not words.startswith(_NOTICES) and words not in spoken:
                delivered[id(record)] = words
    return delivered


def _take(builder: TranscriptBuilder, record: Record) -> None:
    kind = record.kind
    builder.at(record.get("timestamp"))
    builder.id = builder.id or record.id("sessionId")
    if _is_spoken(record):
        _message(builder, record, record.inner("message"))
    elif kind == "attachment":
        _attachment(builder, record.inner("attachment"))
    elif kind == "tool_use":
        builder.assistant().call(*call_of(record))
    elif kind == "tool_result":
        builder.result(*result_of(record))
    elif kind == "system" and record.get("subtype") == "compact_boundary":
        builder.note(COMPACTED)
    elif kind in ("summary", "custom-title", "ai-title"):
        title = record.get("customTitle") or record.get("aiTitle") or record.get("summary")
        builder.title = builder.title or text(title)


def _message(builder: TranscriptBuilder, record: Record, message: Record) -> None:
    if record.get("isCompactSummary"):
        return
    builder.started = builder.started or record.text("timestamp")
    if record.kind == "user":
        builder.heard(message.get("content"))
        return
    draft = builder.answer(message.get("content"), key=message.id("id") or record.id("uuid"))
    if message.text("model") != _SYNTHETIC:
        draft.meter(message.get("usage"), message.text("model"))


def _attachment(builder: TranscriptBuilder, attachment: Record) -> None:
    kind = attachment.kind
    if kind == "queued_command":
        builder.heard(attachment.get("prompt"))
    elif kind == "file":
        file = attachment.inner("content").inner("file")
        path = attachment.text("filename") or file.text("filePath")
        builder.exchange("attached_file", {"path": path}, file.as_text("content"))
    else:
        builder.note(f"an attachment of kind {kind!r} was left out")


CLAUDE_CODE = Format("claude-code", _is_claude_code, _read_claude_code)
