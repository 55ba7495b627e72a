"""A conversation as a file: JSON lines for programs, Markdown for people. Written message by message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leporello.messages import Message, PartKind, calls_of, is_result, parse_json, parts_of, result_id, role_of
from leporello.present.conversation_details import message_json
from leporello.present.output import json_text
from leporello.present.text import iso, safe, safe_block
from leporello.store import Store
from leporello.store.records import ConversationRecord, ViewLine

_TICKS = re.compile(r"`{3,}")
_LONGEST_TITLE = 500


def json_lines(store: Store, record: ConversationRecord, view: bool) -> Iterator[str]:
    """One message a line, with its id and time; of the view, also which fold a line is and what was shortened."""
    if not view:
        for stored in store.log.iterate(record.id, last=record.messages):
            yield json_text(message_json(stored)) + "\n"
        return
    for line in store.views.view(record.id).lines:
        item = {"id": _id(line), "fold": line.fold, "shortened": line.shortened, "message": line.message}
        yield json_text(item) + "\n"


def markdown(store: Store, record: ConversationRecord, view: bool) -> Iterator[str]:
    """The whole conversation, or the view, to be read."""
    title = safe(record.metadata.title[:_LONGEST_TITLE]).strip() or safe(record.id[:_LONGEST_TITLE])
    yield f"# {title}\n\n"
    yield f"Conversation `{safe(record.id[:_LONGEST_TITLE])}`, {record.messages:,} messages, "
    yield f"{iso(record.created_at)} to {iso(record.updated_at)}."
    yield " What the model sees now.\n" if view else "\n"
    if view:
        for line in store.views.view(record.id).lines:
            yield _section(_id(line) or f"{line.fold or 'written by a compaction'}", "", line.message)
        return
    for stored in store.log.iterate(record.id, last=record.messages):
        yield _section(stored.id, iso(stored.created_at), stored.message)


def _id(line: ViewLine) -> str | None:
    return None if line.number is None else f"m{line.number}"


def _section(id: str, at: str, message: Message) -> str:
    role = safe(role_of(message)[:100]) or "no role"
    if is_result(message) and result_id(message):
        role += f" (result of {safe(result_id(message)[:100])})"
    heading = " · ".join(part for part in (safe(id), role, at) if part)
    return f"\n## {heading}\n" + "".join(f"\n{block}\n" for block in _blocks(message))


def _blocks(message: Message) -> Iterator[str]:
    for part in parts_of(message):
        if part.kind is PartKind.THINKING:
            yield _quoted(part.text)
        elif not part.text:
            yield f"*[{part.kind.value}]*"
        elif is_result(message):
            # Output of a program is no prose: as Markdown it would come out mangled.
            yield _fenced(part.text)
        else:
            yield safe_block(part.text).strip("\n")
    for key in ("reasoning_content", "reasoning"):
        thought = message.get(key)
        if isinstance(thought, str) and thought.strip():
            yield _quoted(thought)
    for call in calls_of(message):
        language = "json" if parse_json(call.arguments) is not None else ""
        yield f"Calls `{safe(call.name[:100])}` ({safe(call.id[:100]) or 'no id'}):\n\n" + _fenced(
            call.arguments, language
        )


def _fenced(text: str, language: str = "") -> str:
    clean = safe_block(text).strip("\n")
    longest = max((len(run) for run in _TICKS.findall(clean)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{clean}\n{fence}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in safe_block(text).strip("\n").split("\n"))
