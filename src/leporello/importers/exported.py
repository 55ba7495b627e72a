"""What `leporello sessions export` writes: one message a line, with its id and time. Read back as it was."""

from __future__ import annotations

import re
from typing import Any

from leporello.importers.source import ImportedSession, SourceFile, mapping, moment, text

NAME = "leporello"
_ID = re.compile(r"m[1-9][0-9]*")


def matches(source: SourceFile) -> bool:
    """Every line looked at has our ids and wraps a message; a folded view has lines without an id and is not read."""
    records = source.records[:50]
    return bool(records) and all(_is_ours(record) for record in records)


def read(source: SourceFile) -> list[ImportedSession]:
    """The messages untouched, whatever they hold."""
    records = [record for record in source.records if _is_ours(record)]
    return [
        ImportedSession(
            messages=[record["message"] for record in records],
            format=NAME,
            times=tuple(moment(record["at"]) for record in records),
            skipped_lines=source.broken_lines + len(source.records) - len(records),
        )
    ]


def _is_ours(record: dict[str, Any]) -> bool:
    is_message = "role" in mapping(record.get("message")) and "at" in record
    return is_message and _ID.fullmatch(text(record.get("id"))) is not None
