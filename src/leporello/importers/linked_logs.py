"""Recordings whose lines are linked into a tree (Claude Code, pi): the branch gone on with, and those left.

Files that allow going back keep every line and link each to its parent. A fork is two children of one line that are
rivals: the file's format says which children are (parallel tool results hang on one line too, and are none).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from leporello.importers.builder import COMPACTED, TranscriptBuilder, cache_aware_usage, call_of, plain, result_of
from leporello.importers.source import Format, ImportedSession, Record, SourceFile, any_line, as_text, objects, text
from leporello.messages import message_hash

Rivals: TypeAlias = Callable[[Record, Record], bool]


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """A line of the file with its links; `parent` is empty at the beginning."""

    id: str
    parent: str
    record: Record


@dataclass(frozen=True, slots=True)
class ThreadReader:
    """Reads the threads of one file: `fill` puts lines into a transcript."""

    format: str
    fill: Callable[[TranscriptBuilder, list[Record]], None]

    def read(self, records: list[Record], kind: str, suffix: str, skipped_lines: int = 0) -> TranscriptBuilder:
        """One thread; `suffix` tells its id from that of the main one."""
        builder = TranscriptBuilder(self.format, kind, skipped_lines)
        self.fill(builder, records)
        builder.id += suffix
        return builder

    def branches(self, nodes: Sequence[RecordedLine], rivals: Rivals, skipped_lines: int) -> list[TranscriptBuilder]:
        """The branch that was gone on with, and then those that the user left."""
        active, abandoned = split(nodes, rivals)
        left = [self.read(way, "branch", f"/branch{number}") for number, way in enumerate(abandoned, 1)]
        return [self.read(active, "main", "", skipped_lines), *left]


def split(nodes: Sequence[RecordedLine], rivals: Rivals) -> tuple[list[Record], list[list[Record]]]:
    """The lines that were gone on with, and for each fork the lines that one saw who was on the other way.

    The newest child at every fork is followed; lines whose parent is unknown follow the line before them.
    """
    parents = _parents(nodes)
    children: dict[int, list[int]] = defaultdict(list)
    for index, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(index)
    dead = _dead_ends(nodes, children, rivals)
    # For each line the dead end it belongs to, if any. Parents always stand before their children.
    owner: list[int | None] = []
    for index, parent in enumerate(parents):
        inherited = owner[parent] if parent is not None else None
        owner.append(index if index in dead else inherited)
    active = [node.record for index, node in enumerate(nodes) if owner[index] is None]
    return active, [_branch(nodes, parents, owner, root) for root in sorted(dead)]


def _parents(nodes: Sequence[RecordedLine]) -> list[int | None]:
    places: dict[str, int] = {}
    parents: list[int | None] = []
    for index, node in enumerate(nodes):
        known = places.get(node.parent, index - 1)
        parents.append(known if known >= 0 else None)
        if node.id:
            places[node.id] = index
    return parents


def _dead_ends(nodes: Sequence[RecordedLine], children: dict[int, list[int]], rivals: Rivals) -> set[int]:
    """First lines of abandoned branches: at a fork only the last of the rivals was gone on with."""
    dead = set()
    for siblings in children.values():
        for position, child in enumerate(siblings):
            later = siblings[position + 1 :]
            if any(rivals(nodes[child].record, nodes[other].record) for other in later):
                dead.add(child)
    return dead


def _branch(
    nodes: Sequence[RecordedLine], parents: list[int | None], owner: list[int | None], root: int
) -> list[Record]:
    """What stood in the file before the branch, other branches aside, and then the branch itself."""
    lineage: set[int | None] = {None}
    place = parents[root]
    while place is not None:
        lineage.add(owner[place])
        place = parents[place]
    return [
        node.record
        for index, node in enumerate(nodes)
        if owner[index] == root or (index < root and owner[index] in lineage)
    ]


# -- Claude Code: JSON lines of `user`, `assistant` and bookkeeping records. One call to the model is spread over lines
# with the same `message.id`, its results may stand between them. Sub-agents' lines are marked: sessions of their own.

_SYNTHETIC = "<synthetic>"
_NOTICES = ("{", "<task-notification>")  # how the program's own queued notices begin
_WINDOWS = (200_000, 1_000_000)
_ASIDES = ("<local-command-", "<command-", "<bash-")
"""How lines begin that record a command typed at the prompt, which the model did not answer."""


def _is_claude_line(line: Record) -> bool:
    return line.kind in ("user", "assistant") and "sessionId" in line and "content" in line.inner("message")


def _read_claude_code(source: SourceFile) -> list[ImportedSession]:
    """The main thread first, then sub-agents and abandoned branches."""
    records, repeated = _unrepeated(source.records)
    main, others = _threads(records)
    reader = ThreadReader("claude-code", _fill)
    nodes = [RecordedLine(r.id("uuid"), r.id("parentUuid", "logicalParentUuid"), r) for r in main]
    first, *branches = reader.branches(nodes, _rivals_claude, source.broken_lines)
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


def _rivals_claude(one: Record, other: Record) -> bool:
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
    builder.output_is_partial = True
    for record in records:
        if id(record) in queued:
            builder.note("words queued while the agent worked stand where they were handed over")
            builder.message("user", queued[id(record)])
        else:
            kind = record.kind
            builder.at(record.get("timestamp"))
            builder.id = builder.id or record.id("sessionId")
            if _is_spoken(record):
                _message_claude(builder, record, record.inner("message"))
            elif kind == "attachment":
                _attachment(builder, record.inner("attachment"))
            elif kind == "tool_use":
                builder.assistant().call(*call_of(record))
            elif kind == "tool_result":
                builder.result(*result_of(record))
            elif kind == "system" and record.get("subtype") == "compact_boundary":
                builder.note(COMPACTED)
                builder.window = builder.window or _window_shown(record.inner("compactMetadata"))
            elif kind in ("summary", "custom-title", "ai-title"):
                title = record.get("customTitle") or record.get("aiTitle") or record.get("summary")
                builder.title = builder.title or text(title)


def _window_shown(compaction: Record) -> int | None:
    """Left alone, the client compacts shortly before its window ends, and it knows two of them."""
    before = compaction.number("preTokens")
    if before is None or compaction.text("trigger") != "auto":
        return None
    return next((window for window in _WINDOWS if before <= window), None)


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


def _message_claude(builder: TranscriptBuilder, record: Record, message: Record) -> None:
    if record.get("isCompactSummary"):
        return
    builder.started = builder.started or record.text("timestamp")
    if record.kind == "user":
        builder.heard(message.get("content"))
        return
    draft = builder.answer(message.get("content"), key=message.id("id") or record.id("uuid"))
    if message.text("model") != _SYNTHETIC:
        draft.meter(message.get("usage"), message.text("model"))
        if draft.group.metered is not None and draft.group.metered[0].prompt_tokens > _WINDOWS[0]:
            builder.window = _WINDOWS[1]


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


CLAUDE_CODE = Format("claude-code", any_line(_is_claude_line, 500), _read_claude_code)


# -- pi, and agents built on it: `message` entries; older files have no links, their lines follow one another


def _is_pi_line(line: Record) -> bool:
    return line.kind == "message" and "role" in line.inner("message") and "sessionId" not in line


def _read_pi(source: SourceFile) -> list[ImportedSession]:
    """The branch that was gone on with first, then those that the user left."""
    header = next((record for record in source.records if record.kind in ("session", "session_start")), Record())
    nodes = [RecordedLine(r.id("id"), r.id("parentId"), r) for r in source.records if r is not header]

    def fill(builder: TranscriptBuilder, records: list[Record]) -> None:
        builder.id = header.id("id")
        builder.title = header.text("title")
        builder.started = header.text("timestamp")
        for record in records:
            entry = record.kind
            builder.at(record.get("timestamp"))
            if entry == "message" and isinstance(record.get("message"), dict):
                _message_pi(builder, record.inner("message"))
            elif entry in ("compaction", "compact"):
                builder.note(COMPACTED)
            elif entry == "custom_message":
                # Context that an extension put in: the model saw it, the user did not write it.
                builder.exchange(record.text("customType") or "extension", {}, plain(record.get("content")))
            elif entry == "branch_summary":
                builder.note("a summary of a left branch was left out; the branch stands beside this session")

    def rivals(one: Record, other: Record) -> bool:
        # Lines form a chain, so two spoken children of one line mean that the user went back.
        return all(record.kind in ("message", "branch_summary") for record in (one, other))

    return [builder.build() for builder in ThreadReader("pi", fill).branches(nodes, rivals, source.broken_lines)]


def _message_pi(builder: TranscriptBuilder, message: Record) -> None:
    role = message.text("role")
    if role == "toolResult":
        builder.result(message.id("toolCallId"), plain(message.get("content")), message.text("toolName"))
    elif role == "assistant":
        draft = builder.answer(message.get("content"))
        if isinstance(message.get("usage"), dict):
            usage = message.inner("usage")
            fields = ("input", "output", "cacheRead", "cacheWrite")
            counts = cache_aware_usage(usage, fields) if "input" in usage else usage
            draft.meter(counts, message.text("model"), usage.inner("cost").number("total"))
    elif role == "bashExecution":
        # The user's own shell command, shown to the model.
        builder.exchange("bash", {"command": message.text("command")}, message.text("output"))
    else:
        builder.heard(message.get("content"), role)


PI = Format("pi", any_line(_is_pi_line, 200), _read_pi)
