"""A store copied into another, of the same kind or not, row by row and verified.

Each conversation is one transaction on the target and one snapshot of the source, so the source may be in use and a
copy that was interrupted holds whole conversations only. What can be derived (indexes, counts) and what is bound to
running processes (leases) is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leporello.errors import StoreCorrupt
from leporello.store.sql.common import STORE_ITSELF, shown
from leporello.store.sql.conversations import enter_directory
from leporello.store.sql.database import Database, Row, Transaction
from leporello.store.sql.texts import unpack

COLUMNS: dict[str, tuple[str, ...]] = {
    "sessions": (
        *("ordinal", "id", "parent", "parent_name", "started", "ended", "end_reason", "first"),
        *("title", "platform", "model", "owner", "custom", "prompt"),
    ),
    "prompts": ("hash", "body"),
    "messages": ("number", "created", "same_as", "body"),
    "hashes": ("hash", "number"),
    "generations": (
        *("generation", "kind", "state", "below", "base_last", "log_last", "ordinal", "created", "entries"),
    ),
    "attempts": (
        *("number", "created", "ordinal", "generation", "outcome", "engine", "summariser", "cause"),
        *("covered_first", "covered_last", "tokens_before", "tokens_after", "cost_nanos", "duration_millis", "report"),
    ),
    "folds": ("id", "number", "generation", "first", "last", "body"),
    "usage": (
        *("ordinal", "day", "model", "purpose", "calls", "input_tokens", "output_tokens", "cache_read_tokens"),
        *("cache_write_tokens", "reasoning_tokens", "cost_nanos", "unpriced_calls"),
    ),
    "artifacts": ("hash", "number", "size", "name", "created", "body"),
    "pins": ("number", "note", "created"),
    "ledgers": ("base", "version", "data"),
    "state": ("key", "count", "value"),
}
"""What is copied of each table, beside the conversation's key."""

LEFT_OUT = ("tools", "activity", "leases")
"""Tables that are derived, or mean nothing elsewhere."""

_BATCH = 500
_CONVERSATION = "kind, created, updated, last, generation, tip"


@dataclass(frozen=True, slots=True)
class Copied:
    """How much was copied."""

    conversations: int
    messages: int


Progress = Callable[[int, int], None]
"""Told after each conversation: how many are done, and of how many."""


def copy_database(source: Database, target: Database, progress: Progress | None = None) -> Copied:
    """Copy every conversation; `StoreConflict` when the target already has one of the ids."""
    with source.read() as tx:
        keys = [key for (key,) in tx.rows("SELECT conversation FROM conversations ORDER BY conversation")]
    messages = 0
    copied = 0
    for key in keys:
        number = _copy_conversation(source, target, key)
        if number is not None:
            copied += 1
            messages += number
        if progress is not None:
            progress(copied, len(keys))
    with source.read() as tx, target.write() as out:
        _insert(out, "state", STORE_ITSELF, rows_of(tx, "state", STORE_ITSELF), " ON CONFLICT DO NOTHING")
    return Copied(copied, messages)


def _copy_conversation(source: Database, target: Database, key: int) -> int | None:
    with source.read() as tx, target.write() as out:
        row = tx.row(f"SELECT {_CONVERSATION} FROM conversations WHERE conversation = ?", key)  # noqa: S608 - constants
        if row is None:
            return None
        made = out.row(
            f"INSERT INTO conversations ({_CONVERSATION}, indexed, dirty) "  # noqa: S608 - constants
            "VALUES (?, ?, ?, ?, ?, ?, 0, ?) RETURNING conversation",
            *row,
            1 if row[3] else 0,
        )
        assert made is not None, "INSERT ... RETURNING gives a row"
        for ordinal, id in tx.rows("SELECT ordinal, id FROM sessions WHERE conversation = ? ORDER BY ordinal", key):
            enter_directory(out, unpack(id), made[0], ordinal)
        for table in COLUMNS:
            _insert(out, table, made[0], rows_of(tx, table, key))
        if digest(tx, key) != digest(out, made[0]):
            first = tx.row("SELECT id FROM sessions WHERE conversation = ? AND ordinal = 1", key)
            raise StoreCorrupt(f"The copy of {shown(unpack(first[0])) if first else key} differs from its original.")
        last: int = row[3]
        return last


def digest(tx: Transaction, key: int) -> str:
    """A hash over everything that is copied of a conversation; equal in every database."""
    total = hashlib.blake2b(digest_size=16)
    for table in COLUMNS:
        total.update(table.encode())
        for row in rows_of(tx, table, key):
            total.update(repr(row).encode())
    return total.hexdigest()


def rows_of(tx: Transaction, table: str, key: int) -> Iterator[Row]:
    """The rows of a conversation in an order that does not depend on the database, large tables in batches."""
    select = f"SELECT {', '.join(COLUMNS[table])} FROM {table} WHERE conversation = ?"  # noqa: S608 - constants
    if table == "messages":
        last = tx.row("SELECT COALESCE(max(number), 0) FROM messages WHERE conversation = ?", key) or (0,)
        for start in range(1, last[0] + 1, _BATCH):
            yield from tx.rows(f"{select} AND number >= ? AND number < ? ORDER BY number", key, start, start + _BATCH)
    elif table == "artifacts":
        for (number,) in tx.rows("SELECT number FROM artifacts WHERE conversation = ? ORDER BY number", key):
            yield from tx.rows(f"{select} AND number = ?", key, number)
    else:
        yield from sorted(tx.rows(select, key), key=repr)


def _insert(out: Transaction, table: str, key: int, rows: Iterator[Row], ending: str = "") -> None:
    columns = COLUMNS[table]
    marks = ", ".join("?" * (len(columns) + 1))
    statement = f"INSERT INTO {table} (conversation, {', '.join(columns)}) VALUES ({marks}){ending}"  # noqa: S608
    batch: list[Sequence[Any]] = []
    for row in rows:
        batch.append((key, *row))
        if len(batch) >= _BATCH or table == "artifacts":
            out.many(statement, batch)
            batch = []
    if batch:
        out.many(statement, batch)
