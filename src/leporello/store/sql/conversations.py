"""Conversations, and the chain of sessions each is made of."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from leporello.errors import InputError, NotFound, StoreConflict
from leporello.messages import decode_json, hash_bytes
from leporello.redact import redact
from leporello.store.records import (
    COMPRESSION,
    ConversationFilter,
    ConversationKind,
    ConversationRecord,
    Metadata,
    Page,
    Pulse,
    SessionRecord,
)
from leporello.store.sql.branching import copy_history
from leporello.store.sql.database import Database, Row, Transaction
from leporello.store.sql.encoding import hash_key, millis, name_key, pack, pack_body, seconds, unpack, unpack_body
from leporello.store.sql.entries import pack_entries
from leporello.store.sql.locking import LARGEST_NUMBER, Held, hold, locate, shown, to_json, unknown
from leporello.store.sql.schema import CONVERSATION_TABLES

_SESSION = (
    "s.id, f.id, s.ordinal, s.parent, s.started, s.ended, s.end_reason, s.first, "
    "s.title, s.platform, s.model, s.owner, s.custom"
)
_FIRST = "JOIN sessions f ON f.conversation = s.conversation AND f.ordinal = 1"
_PROMPT = "LEFT JOIN prompts p ON p.conversation = s.conversation AND p.hash = s.prompt"
_TIP = "JOIN sessions s ON s.conversation = c.conversation AND s.ordinal = c.tip"
_LISTED = (
    f"SELECT c.kind, c.generation, c.last, c.created, c.updated, c.conversation, {_SESSION}, NULL "  # noqa: S608
    f"FROM conversations c {_TIP} {_FIRST} "
    "WHERE (c.updated, c.conversation) < (?, ?) AND (c.updated, c.conversation) >= (?, ?)"
)
_STRETCH = (
    "SELECT c.updated, c.conversation FROM conversations c WHERE (c.updated, c.conversation) < (?, ?) "
    "ORDER BY c.updated DESC, c.conversation DESC LIMIT 1 OFFSET ?"
)
_STRETCH_LENGTH = 2_000
_MOST_STRETCHES = 10
"""A page looks at so many conversations at most, however few of them its filter lets through."""
_BATCH = 500
_METADATA = tuple(field.name for field in fields(Metadata))

Forget = Callable[[Transaction, int], None]
"""Takes a conversation out of the search indexes."""


class SqlConversations:
    """`Conversations` of the port."""

    def __init__(self, db: Database, forget: Forget) -> None:
        self._db = db
        self._forget = forget

    def create(
        self,
        id: str | None = None,
        metadata: Metadata | None = None,
        kind: ConversationKind = ConversationKind.ROOT,
        parent_session_id: str | None = None,
        created_at: float | None = None,
    ) -> ConversationRecord:
        chosen = new_id() if id is None else id
        now = self._db.now() if created_at is None else millis(created_at)
        with self._db.write() as tx:
            key = insert_conversation(tx, chosen, kind, now)
            insert_session(tx, key, 1, chosen, parent_session_id, now, 1)
            write_metadata(tx, key, 1, metadata or Metadata())
            tx.run(
                "INSERT INTO generations (conversation, generation, kind, state, below, base_last, log_last, ordinal, "
                "created, entries) VALUES (?, 0, 'start', 0, 0, 0, 0, 1, ?, ?)",
                key,
                now,
                pack_body(pack_entries(())),
            )
            return _conversation(tx, key)

    def resolve(self, id: str) -> ConversationRecord:
        with self._db.read() as tx:
            return _conversation(tx, locate(tx, id)[0])

    def pulse(self, id: str) -> Pulse:
        with self._db.read() as tx:
            row = tx.row(
                "SELECT c.last, c.generation, c.updated FROM conversations c "
                "WHERE c.conversation = (SELECT d.conversation FROM directory d WHERE d.name = ?)",
                name_key(id),
            )
        if row is None:
            raise unknown(id)
        return Pulse(row[0], row[1], seconds(row[2]))

    def exists(self, id: str) -> bool:
        with self._db.read() as tx:
            return tx.row("SELECT 1 FROM directory WHERE name = ?", name_key(id)) is not None

    def existing(self, ids: Sequence[str]) -> set[str]:
        names = {name_key(id): id for id in ids}
        found: set[str] = set()
        with self._db.read() as tx:
            for start in range(0, len(names), _BATCH):
                some = list(names)[start : start + _BATCH]
                marks = ", ".join("?" * len(some))
                rows = tx.rows(f"SELECT name FROM directory WHERE name IN ({marks})", *some)  # noqa: S608
                found.update(names[bytes(name)] for (name,) in rows)
        return found

    def session(self, id: str) -> SessionRecord:
        with self._db.read() as tx:
            key, ordinal = locate(tx, id)
            return read_session(tx, key, ordinal)

    def sessions(self, conversation: str) -> list[SessionRecord]:
        with self._db.read() as tx:
            key, _ = locate(tx, conversation)
            rows = tx.rows(
                f"SELECT {_SESSION}, p.body FROM sessions s {_FIRST} {_PROMPT} "  # noqa: S608 - constants
                "WHERE s.conversation = ? ORDER BY s.ordinal",
                key,
            )
            return [_session(row) for row in rows]

    def children(self, session_id: str) -> list[SessionRecord]:
        with self._db.read() as tx:
            rows = tx.rows(
                f"SELECT {_SESSION}, p.body FROM sessions s {_FIRST} {_PROMPT} "  # noqa: S608 - constants
                "WHERE s.parent_name = ? ORDER BY s.started, s.conversation, s.ordinal",
                name_key(session_id),
            )
            return [_session(row) for row in rows]

    def get_compression_tip(self, id: str) -> str:
        with self._db.read() as tx:
            key, ordinal = locate(tx, id)
            row = tx.row(
                "SELECT id, ended, end_reason FROM sessions WHERE conversation = ? AND ordinal = ?", key, ordinal
            )
            if row is None:
                raise unknown(id)
            while row[2] == COMPRESSION:
                child = tx.row(
                    "SELECT id, ended, end_reason, ordinal FROM sessions WHERE conversation = ? AND ordinal > ? "
                    "AND parent_name = ? AND started >= ? ORDER BY ordinal LIMIT 1",
                    key,
                    ordinal,
                    name_key(unpack(row[0])),
                    row[1],
                )
                if child is None:
                    break
                row, ordinal = child[:3], child[3]
            return unpack(row[0])

    def update(self, conversation: str, **changes: Any) -> ConversationRecord:
        wrong = sorted(set(changes) - set(_METADATA))
        if wrong:
            raise InputError(f"A conversation has no {', '.join(wrong)}; it has {', '.join(_METADATA)}.")
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            metadata = read_session(tx, held.key, held.tip).metadata
            write_metadata(tx, held.key, held.tip, replace(metadata, **changes))
            return _conversation(tx, held.key)

    def end(self, conversation: str, reason: str, at: float | None = None) -> None:
        if reason == COMPRESSION:
            raise InputError("Only a committed compaction ends a session by compression.")
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            tx.run(
                "UPDATE sessions SET ended = ?, end_reason = ? "
                "WHERE conversation = ? AND ordinal = ? AND ended IS NULL",
                self._db.now() if at is None else millis(at),
                pack(reason),
                held.key,
                held.tip,
            )

    def reopen(self, conversation: str) -> None:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            tx.run(
                "UPDATE sessions SET ended = NULL, end_reason = NULL WHERE conversation = ? AND ordinal = ?",
                held.key,
                held.tip,
            )

    def branch(
        self, conversation: str, at: int, id: str | None = None, created_at: float | None = None
    ) -> ConversationRecord:
        chosen = new_id() if id is None else id
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            if not 1 <= at <= held.last:
                raise NotFound(f"{shown(conversation)} has no message m{at}; its log ends at m{held.last}.")
            origin = _session_at(tx, held, at)
            now = self._db.now() if created_at is None else millis(created_at)
            key = insert_conversation(tx, chosen, ConversationKind.BRANCH, now)
            insert_session(tx, key, 1, chosen, origin.id, now, at + 1)
            write_metadata(tx, key, 1, read_session(tx, held.key, held.tip).metadata)
            copy_history(tx, held.key, key, at)
            return _conversation(tx, key)

    def page(self, where: ConversationFilter | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """Walks down the index of last activity, a stretch at a time, so that no page looks at everything."""
        conditions, params = _conditions(where or ConversationFilter())
        place = _place(cursor)
        found: list[Row] = []
        with self._db.read() as tx:
            for _ in range(_MOST_STRETCHES if limit > 0 else 0):
                end = tx.row(_STRETCH, *place, _STRETCH_LENGTH - 1)
                found += tx.rows(
                    f"{_LISTED}{conditions} ORDER BY c.updated DESC, c.conversation DESC LIMIT ?",
                    *(*place, *(end or (0, 0)), *params, limit + 1 - len(found)),
                )
                if len(found) > limit:
                    found.pop()
                    place = found[-1][4:6]
                    break
                if end is None:
                    return Page(tuple(_record(row[:5], row[6:]) for row in found), None)
                place = end[:2]
        cursor = f"{place[0]}-{place[1]}" if limit > 0 else None
        return Page(tuple(_record(row[:5], row[6:]) for row in found), cursor)

    def delete(self, conversation: str) -> None:
        with self._db.write() as tx:
            self._delete(tx, hold(self._db, tx, conversation).key)

    def prune(self, before: float, dry_run: bool = False) -> list[str]:
        with self._db.read() as tx:
            old = tx.rows(
                "SELECT f.id FROM conversations c JOIN sessions f ON f.conversation = c.conversation AND f.ordinal = 1 "
                "WHERE c.updated < ? ORDER BY c.updated",
                millis(before),
            )
        pruned = []
        for (packed,) in old:
            with self._db.write() as tx:
                try:
                    held = hold(self._db, tx, unpack(packed))
                except NotFound:
                    continue
                if self._may_prune(tx, held, millis(before)):
                    pruned.append(unpack(packed))
                    if not dry_run:
                        self._delete(tx, held.key)
        return pruned

    def _may_prune(self, tx: Transaction, held: Held, before: int) -> bool:
        return (
            tx.row(
                "SELECT 1 FROM conversations c "
                "JOIN sessions s ON s.conversation = c.conversation AND s.ordinal = c.tip "
                "WHERE c.conversation = ? AND c.updated < ? AND s.ended IS NOT NULL "
                "AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.conversation = c.conversation)",
                held.key,
                before,
            )
            is not None
        )

    def _delete(self, tx: Transaction, key: int) -> None:
        self._forget(tx, key)
        for (packed,) in tx.rows("SELECT id FROM sessions WHERE conversation = ?", key):
            tx.run("DELETE FROM directory WHERE name = ?", name_key(unpack(packed)))
        for table in CONVERSATION_TABLES:
            tx.run(f"DELETE FROM {table} WHERE conversation = ?", key)  # noqa: S608 - our own table names
        tx.run("DELETE FROM conversations WHERE conversation = ?", key)


def new_id() -> str:
    """An id that nobody else has."""
    return secrets.token_hex(8)


def insert_conversation(tx: Transaction, id: str, kind: ConversationKind, now: int) -> int:
    """A conversation row and the directory entry of its first session; returns the key."""
    row = tx.row(
        "INSERT INTO conversations (kind, created, updated, last, indexed, dirty, generation, tip) "
        "VALUES (?, ?, ?, 0, 0, 0, 0, 1) RETURNING conversation",
        kind.value,
        now,
        now,
    )
    assert row is not None, "INSERT ... RETURNING gives a row"
    key: int = row[0]
    enter_directory(tx, id, key, 1)
    return key


def enter_directory(tx: Transaction, id: str, key: int, ordinal: int) -> None:
    """Give an id to a session; `StoreConflict` when it is taken."""
    entered = tx.run(
        "INSERT INTO directory (name, conversation, ordinal) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        name_key(id),
        key,
        ordinal,
    )
    if not entered:
        raise StoreConflict(f"The id {shown(id)} is taken. Open that conversation, or choose another id.")


def insert_session(tx: Transaction, key: int, ordinal: int, id: str, parent: str | None, now: int, first: int) -> None:
    """A session row without metadata."""
    tx.run(
        "INSERT INTO sessions (conversation, ordinal, id, parent, parent_name, started, first, title, platform, model, "
        "owner, custom) VALUES (?, ?, ?, ?, ?, ?, ?, '', '', '', '', ?)",
        key,
        ordinal,
        pack(id),
        None if parent is None else pack(parent),
        None if parent is None else name_key(parent),
        now,
        first,
        b"{}",
    )


def write_metadata(tx: Transaction, key: int, ordinal: int, metadata: Metadata) -> None:
    """Set the metadata of a session. Secrets in its title are masked: titles stand in lists and on pages."""
    texts = (metadata.title, metadata.platform, metadata.model, metadata.owner)
    if not all(isinstance(text, str) for text in texts):
        raise InputError("Title, platform, model and owner of a conversation are texts.")
    texts = (redact(metadata.title), *texts[1:])
    tx.run(
        "UPDATE sessions SET title = ?, platform = ?, model = ?, owner = ?, custom = ?, prompt = ? "
        "WHERE conversation = ? AND ordinal = ?",
        *map(pack, texts),
        to_json(dict(metadata.custom), "Custom metadata"),
        write_prompt(tx, key, metadata.system_prompt),
        key,
        ordinal,
    )


def write_prompt(tx: Transaction, key: int, prompt: str | None) -> bytes | None:
    """Keep a system prompt once per conversation; returns its hash."""
    if prompt is None:
        return None
    data = prompt.encode("utf-8", "surrogatepass")
    digest = hash_key(hash_bytes(data))
    tx.run(
        "INSERT INTO prompts (conversation, hash, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        key,
        digest,
        pack_body(data),
    )
    return digest


def read_session(tx: Transaction, key: int, ordinal: int) -> SessionRecord:
    """One session with its metadata."""
    row = tx.row(
        f"SELECT {_SESSION}, p.body FROM sessions s {_FIRST} {_PROMPT} "  # noqa: S608 - constants
        "WHERE s.conversation = ? AND s.ordinal = ?",
        key,
        ordinal,
    )
    if row is None:
        raise NotFound("The session is gone: its conversation was deleted meanwhile.")
    return _session(row)


def _session_at(tx: Transaction, held: Held, number: int) -> SessionRecord:
    """The session in which a message was appended."""
    row = tx.row(
        "SELECT max(ordinal) FROM sessions WHERE conversation = ? AND (first <= ? OR ordinal = 1)", held.key, number
    )
    return read_session(tx, held.key, row[0] if row else held.tip)


def _conversation(tx: Transaction, key: int) -> ConversationRecord:
    row = tx.row(
        f"SELECT c.kind, c.generation, c.last, c.created, c.updated, {_SESSION}, p.body "  # noqa: S608 - constants
        f"FROM conversations c {_TIP} {_FIRST} {_PROMPT} WHERE c.conversation = ?",
        key,
    )
    if row is None:
        raise NotFound("The conversation was deleted meanwhile.")
    return _record(row[:5], row[5:])


def _record(row: Row, session: Row) -> ConversationRecord:
    tip = _session(session)
    return ConversationRecord(
        id=tip.conversation,
        kind=ConversationKind(row[0]),
        tip=tip,
        generation=row[1],
        messages=row[2],
        created_at=seconds(row[3]),
        updated_at=seconds(row[4]),
    )


def _session(row: Row) -> SessionRecord:
    id, first_id, ordinal, parent, started, ended, reason, first, title, platform, model, owner, custom, prompt = row
    metadata = Metadata(
        # Stores of earlier versions hold titles as they were given.
        title=redact(unpack(title)),
        platform=unpack(platform),
        model=unpack(model),
        owner=unpack(owner),
        system_prompt=None if prompt is None else unpack_body(prompt, "a prompt").decode("utf-8", "surrogatepass"),
        custom=decode_json(custom),
    )
    return SessionRecord(
        id=unpack(id),
        conversation=unpack(first_id),
        ordinal=ordinal,
        parent_session_id=None if parent is None else unpack(parent),
        started_at=seconds(started),
        ended_at=None if ended is None else seconds(ended),
        end_reason=None if reason is None else unpack(reason),
        first=first,
        metadata=metadata,
    )


def _place(cursor: str | None) -> tuple[Any, ...]:
    """Where a page begins: behind this time and conversation."""
    if cursor is None:
        return LARGEST_NUMBER, LARGEST_NUMBER
    updated, _, key = cursor.partition("-")
    if not (updated.isdecimal() and key.isdecimal()) or max(int(updated), int(key)) > LARGEST_NUMBER:
        raise InputError(f"{shown(cursor)} is not a cursor of a listing. Begin again without one.")
    return int(updated), int(key)


def _conditions(where: ConversationFilter) -> tuple[str, list[Any]]:
    conditions, params = list[str](), list[Any]()
    columns = ("s.platform", where.platform), ("s.model", where.model), ("s.owner", where.owner), ("c.kind", where.kind)
    for column, value in columns:
        if value is not None:
            conditions.append(f" AND {column} = ?")
            params.append(pack(value))
    for test, moment in (("c.updated >= ?", where.active_since), ("c.updated < ?", where.active_before)):
        if moment is not None:
            conditions.append(f" AND {test}")
            params.append(millis(moment))
    if where.open is not None:
        conditions.append(f" AND s.ended IS {'NULL' if where.open else 'NOT NULL'}")
    return "".join(conditions), params
