"""Copying a store into another, of the same kind or not, row by row and verified."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leporello.errors import StoreConflict, StoreCorrupt
from leporello.store import Store
from leporello.store.sql.database import STORE_ITSELF, Database, Progress, Row, Transaction, integer
from leporello.store.sql.encoding import name_key, shown, unpack
from leporello.store.sql.schema import COLUMNS, NOT_COPIED, insert
from leporello.store.sql.sessions import register_id

_BATCH = 500
_COPIED = tuple(table for table in COLUMNS if table not in NOT_COPIED)
_CONVERSATION = "kind, created, updated, last, generation, tip"


@dataclass(frozen=True, slots=True)
class Copied:
    """How much was copied, and how many conversations were there already, all equal to their originals."""

    conversations: int
    messages: int
    equal: int = 0


def copy_database(source: Database, target: Database, watch: Progress | None = None) -> Copied:
    """Copy every conversation with all it has, and compare each copy with its original.

    Conversations that the target has already, equal in every row, are left alone, so that an interrupted copy can be
    continued. Raises `StoreConflict`, before anything is written, when one of them differs.
    """
    with source.read() as tx:
        keys = [key for (key,) in tx.rows("SELECT conversation FROM conversations ORDER BY conversation")]
    there = _already_there(source, target, keys)
    messages = 0
    copied = 0
    for done, key in enumerate(keys, 1):
        number = None if key in there else _copy_conversation(source, target, key)
        if number is not None:
            copied += 1
            messages += number
        if watch is not None:
            watch(done, len(keys))
    with source.read() as tx, target.write() as out:
        _insert(out, "state", STORE_ITSELF, rows_of(tx, "state", STORE_ITSELF), " ON CONFLICT DO NOTHING")
    return Copied(copied, messages, len(there))


def _already_there(source: Database, target: Database, keys: Sequence[int]) -> set[int]:
    """Conversations that the target has, every row equal; `StoreConflict` when an id of theirs means something else."""
    there: set[int] = set()
    differing: list[str] = []
    with source.read() as tx, target.read() as out:
        for key in keys:
            ids = _session_ids(tx, key)
            found = {
                row[0]
                for id in ids
                for row in out.rows("SELECT conversation FROM directory WHERE name = ?", name_key(id))
            }
            if len(found) == 1 and digest(tx, key) == digest(out, next(iter(found))):
                there.add(key)
            elif found:
                differing.append(shown(ids[0]))
    if differing:
        more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
        raise StoreConflict(
            f"{target.url} already has {', '.join(differing[:3])}{more}, and not the same as in {source.url}. "
            "Nothing was copied: delete them there, or copy into another store."
        )
    return there


def _session_ids(tx: Transaction, key: int) -> list[str]:
    rows = tx.rows("SELECT id FROM sessions WHERE conversation = ? ORDER BY ordinal", key)
    return [unpack(id) for (id,) in rows]


def _copy_conversation(source: Database, target: Database, key: int) -> int | None:
    with source.read() as tx, target.write() as out:
        row = tx.row(f"SELECT {_CONVERSATION} FROM conversations WHERE conversation = ?", key)  # noqa: S608 - constants
        if row is None:
            return None
        made = integer(
            out,
            f"INSERT INTO conversations ({_CONVERSATION}, indexed, dirty) "  # noqa: S608 - constants
            "VALUES (?, ?, ?, ?, ?, ?, 0, ?) RETURNING conversation",
            *(*row, 1 if row[3] else 0),
        )
        for ordinal, id in enumerate(_session_ids(tx, key), 1):
            register_id(out, id, made, ordinal)
        for table in _COPIED:
            _insert(out, table, made, rows_of(tx, table, key))
        if digest(tx, key) != digest(out, made):
            name = shown(next(iter(_session_ids(tx, key)), str(key)))
            raise StoreCorrupt(f"The copy of {name} differs from its original. It was not kept.")
        last: int = row[3]
        return last


def digest(tx: Transaction, key: int) -> str:
    """A hash over everything that is copied of a conversation; equal in every database."""
    total = hashlib.blake2b(digest_size=16)
    row = tx.row(f"SELECT {_CONVERSATION} FROM conversations WHERE conversation = ?", key)  # noqa: S608 - constants
    total.update(repr(row).encode())
    for table in _COPIED:
        total.update(table.encode())
        for row in rows_of(tx, table, key):
            total.update(repr(row).encode())
    return total.hexdigest()


def rows_of(tx: Transaction, table: str, key: int) -> Iterator[Row]:
    """The rows of a conversation in an order that does not depend on the database, large tables in batches."""
    select = f"SELECT {', '.join(COLUMNS[table])} FROM {table} WHERE conversation = ?"  # noqa: S608 - constants
    if table == "messages":
        last = integer(tx, "SELECT max(number) FROM messages WHERE conversation = ?", key)
        for start in range(1, last + 1, _BATCH):
            yield from tx.rows(f"{select} AND number >= ? AND number < ? ORDER BY number", key, start, start + _BATCH)
    elif table == "artifacts":
        for (number,) in tx.rows("SELECT number FROM artifacts WHERE conversation = ? ORDER BY number", key):
            yield from tx.rows(f"{select} AND number = ?", key, number)
    else:
        yield from sorted(tx.rows(select, key), key=repr)


def _insert(out: Transaction, table: str, key: int, rows: Iterator[Row], ending: str = "") -> None:
    statement = insert(table, ending)
    batch: list[Sequence[Any]] = []
    for row in rows:
        batch.append((key, *row))
        if len(batch) >= _BATCH or table == "artifacts":
            out.many(statement, batch)
            batch = []
    if batch:
        out.many(statement, batch)


def copy_store(source: Store, target: Store, watch: Progress | None = None) -> Copied:
    """`copy_database` for open stores."""
    return copy_database(source.database, target.database, watch)
