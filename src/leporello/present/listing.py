"""Conversations as a list: for programs, and for people as wide as their terminal."""

from __future__ import annotations

from typing import Any

from leporello.present.output import print_table, terminal_width
from leporello.present.text import iso, moment, short
from leporello.store.records import ConversationRecord

ID_WIDTH = 60
TITLE_WIDTH = 80
_WIDE = 110
"""A terminal of so many columns has room for platform and model in the list."""


def conversation_json(record: ConversationRecord) -> dict[str, Any]:
    metadata = record.metadata
    return {
        "id": record.id,
        "title": metadata.title,
        "kind": record.kind.value,
        "platform": metadata.platform,
        "model": metadata.model,
        "owner": metadata.owner,
        "open": record.open,
        "end_reason": record.tip.end_reason,
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "messages": record.messages,
        "sessions": record.tip.ordinal,
        "tip": record.tip.id,
        "generation": record.generation,
        "custom": dict(metadata.custom),
    }


def print_list(records: tuple[ConversationRecord, ...]) -> None:
    """The columns that there is room for."""
    width = terminal_width()
    whole = width is None or width >= _WIDE
    rows = [_list_row(record, whole) for record in records]
    about = ("platform", "model") if whole else ()
    headings = ("id", "active", "messages", "folds", "state", *about, "title")
    title = len(headings) - 1
    print_table(rows, headings, numbers=(2, 3), shrinking=(title, 6, 5, 0) if whole else (title, 0))


def _list_row(record: ConversationRecord, whole: bool) -> tuple[str, ...]:
    metadata = record.metadata
    about = (short(metadata.platform, 16), short(metadata.model, 28)) if whole else ()
    return (
        short(record.id, ID_WIDTH),
        moment(record.updated_at),
        f"{record.messages:,}",
        f"{record.tip.ordinal - 1:,}",
        "open" if record.open else "ended",
        *about,
        short(metadata.title, TITLE_WIDTH),
    )
