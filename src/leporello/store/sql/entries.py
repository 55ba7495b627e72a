"""How entries of a view and reports of compactions are stored: as JSON.

Neighbouring references are written as one run, so the entries of a compaction take the room of its folds and not of its
tail: `[[1, 3], {"m": {...}, "f": "f1"}, [95, 120]]` shows m1 to m3, the fold f1, and m95 to m120.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from leporello.errors import InputError
from leporello.events import CompactionReport, Outcome, Span, Verification, ViewEntry
from leporello.store.sql.encoding import pack_json, unpack_json
from leporello.usage import CanonicalUsage


def pack_entries(entries: Sequence[ViewEntry]) -> bytes:
    """Entries as stored."""
    items: list[Any] = []
    for entry in entries:
        if entry.inline is None:
            if items and isinstance(items[-1], list) and items[-1][1] + 1 == entry.ref and entry.fold is None:
                items[-1][1] = entry.ref
            else:
                items.append([entry.ref, entry.ref])
        else:
            item: dict[str, Any] = {"m": entry.inline}
            if entry.ref is not None:
                item["r"] = entry.ref
            if entry.fold is not None:
                item["f"] = entry.fold
            items.append(item)
    return pack_json(items, "A view entry")


def unpack_entries(stored: bytes, where: str) -> tuple[ViewEntry, ...]:
    """The entries that `pack_entries` was given."""
    entries: list[ViewEntry] = []
    for item in unpack_json(stored, where):
        if isinstance(item, list):
            entries.extend(ViewEntry(ref=number) for number in range(item[0], item[1] + 1))
        else:
            entries.append(ViewEntry(ref=item.get("r"), inline=item["m"], fold=item.get("f")))
    return tuple(entries)


def check_entries(entries: Sequence[ViewEntry], last: int) -> None:
    """Refuse entries that could not be shown."""
    for index, entry in enumerate(entries):
        if entry.ref is None and entry.inline is None:
            raise InputError("an entry shows a stored message, a message of its own, or both", f"entry {index}")
        if entry.ref is not None and not 1 <= entry.ref <= last:
            raise InputError(f"m{entry.ref} is not among the {last} messages that were compacted", f"entry {index}")
        if entry.inline is not None and not isinstance(entry.inline, dict):
            raise InputError("an inline message is a dict", f"entry {index}")
        if entry.inline is None and entry.fold is not None:
            raise InputError("only an inline message carries a fold", f"entry {index}")


def runs(numbers: Iterable[int]) -> list[Span]:
    """Sorted numbers as spans without gaps."""
    spans: list[Span] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1].last + 1 == number:
            spans[-1] = Span(spans[-1].first, number)
        else:
            spans.append(Span(number, number))
    return spans


def pack_report(report: CompactionReport) -> bytes:
    """JSON bytes of a report. Values in its details that JSON can't carry become texts: a report is never refused."""
    return json.dumps(asdict(report), default=str, separators=(",", ":")).encode("ascii")


def unpack_report(data: bytes) -> CompactionReport:
    """The report that `pack_report` was given."""
    fields = json.loads(data)
    covered = fields["covered"]
    verification = fields["verification"]
    return CompactionReport(
        **{
            **fields,
            "outcome": Outcome(fields["outcome"]),
            "covered": None if covered is None else Span(**covered),
            "usage": CanonicalUsage(**fields["usage"]),
            "verification": Verification(**{**verification, "dropped": tuple(verification["dropped"])}),
            "warnings": tuple(fields["warnings"]),
        }
    )
