"""Conversations: made, found, listed, changed, branched off and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from leporello.deprecation import moved_attribute
from leporello.errors import InputError, NotFound
from leporello.store.records import (
    COMPRESSION,
    ConversationFilter,
    ConversationKind,
    ConversationRecord,
    Metadata,
    Page,
    Pulse,
)
from leporello.store.sql.database import (
    KEY_OF_NAME,
    Conditions,
    Database,
    Row,
    StorePart,
    Transaction,
    integer,
    lock,
    rows_in,
    unknown,
)
from leporello.store.sql.encoding import LARGEST_NUMBER, millis, name_key, pack, pack_entries, seconds, shown, unpack
from leporello.store.sql.schema import COLUMNS, insert
from leporello.store.sql.sessions import (
    FIRST,
    IN_FORCE,
    PROMPT,
    SESSION,
    Sessions,
    insert_session,
    new_id,
    read_session,
    register_id,
    session_record,
    write_metadata,
)

_CONVERSATION = f"{IN_FORCE}, c.kind, c.generation, c.last, c.created, c.updated"
_TIP = "JOIN sessions s ON s.conversation = c.conversation AND s.ordinal = c.tip"
_SELECT_RECORD = (
    f"SELECT {_CONVERSATION}, {SESSION}, p.body "  # noqa: S608 - constants
    f"FROM conversations c {_TIP} {FIRST} {PROMPT} WHERE c.conversation ="
)
_LISTED = (
    f"SELECT {_CONVERSATION}, c.conversation, {SESSION}, NULL FROM conversations c {_TIP} {FIRST} "  # noqa: S608
    "WHERE (c.updated, c.conversation) < (?, ?) AND (c.updated, c.conversation) >= (?, ?)"
)
_BLOCK_END = (
    "SELECT c.updated, c.conversation FROM conversations c WHERE (c.updated, c.conversation) < (?, ?) "
    "ORDER BY c.updated DESC, c.conversation DESC LIMIT 1 OFFSET ?"
)
_BLOCK_LENGTH = 2_000
_MOST_BLOCKS = 10  # a page looks at so many conversations at most, however few of them its filter lets through
_METADATA = tuple(field.name for field in fields(Metadata))


_MOVED = {"session": "get", "sessions": "all", "children": "children", "get_compression_tip": "get_compression_tip"}
"""Methods of earlier versions, and what they are called in `Sessions`."""


class Conversations(StorePart):
    """Conversations. Wherever a conversation is asked for, any id of its chain will do."""

    def __init__(self, db: Database, remove_from_index: Callable[[Transaction, int], None]) -> None:
        super().__init__(db)
        self._remove_from_index = remove_from_index

    def create(
        self,
        id: str | None = None,
        metadata: Metadata | None = None,
        kind: ConversationKind = ConversationKind.ROOT,
        parent_session_id: str | None = None,
        created_at: float | None = None,
    ) -> ConversationRecord:
        """A new conversation with its first session. Raises `StoreConflict` when the id is taken; None makes one up.

        A sub-agent names the session that started it; that never makes it a continuation.
        """
        chosen = new_id() if id is None else id
        now = self._moment(created_at)
        with self._db.write() as tx:
            key = _insert_conversation(tx, chosen, kind, now)
            insert_session(tx, key, 1, chosen, parent_session_id, now, 1)
            write_metadata(tx, key, 1, metadata or Metadata())
            tx.run(insert("generations"), key, 0, "start", 0, 0, 0, 0, 1, now, pack_entries(()))
            return _conversation(tx, key)

    def find(self, id: str) -> ConversationRecord | None:
        """The conversation any id of the chain belongs to, with its tip; None when there is none."""
        with self._db.read() as tx:
            row = tx.row(f"{_SELECT_RECORD} {KEY_OF_NAME}", name_key(id))
        return None if row is None else _record(row[:6], row[6:])

    def resolve(self, id: str) -> ConversationRecord:
        """The same; raises `NotFound` when there is none."""
        found = self.find(id)
        if found is None:
            raise unknown(id)
        return found

    def pulse(self, id: str) -> Pulse:
        """How far the conversation has come: one row, cheap enough for polling."""
        with self._db.read() as tx:
            rows = _pulses(tx, [id])
        if not rows:
            raise unknown(id)
        return rows[id]

    def pulses(self, ids: Sequence[str]) -> dict[str, Pulse]:
        """How far those of the conversations have come that exist."""
        with self._db.read() as tx:
            return _pulses(tx, ids)

    def exists(self, id: str) -> bool:
        """Whether any conversation or session has this id."""
        return bool(self.existing([id]))

    def existing(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that a conversation or session has."""
        names = {name_key(id): id for id in ids}
        with self._db.read() as tx:
            rows = rows_in(tx, "SELECT name FROM directory WHERE name IN", list(names))
            return {names[bytes(name)] for (name,) in rows}

    def update(self, conversation: str, **changes: Any) -> ConversationRecord:
        """Change fields of `Metadata` (title, platform, model, owner, system_prompt, custom) of the tip."""
        wrong = sorted(set(changes) - set(_METADATA))
        if wrong:
            raise InputError(f"A conversation has no {', '.join(wrong)}; it has {', '.join(_METADATA)}.")
        with self._locked(conversation) as (tx, locked):
            metadata = read_session(tx, locked.key, locked.tip).metadata
            write_metadata(tx, locked.key, locked.tip, replace(metadata, **changes))
            return _conversation(tx, locked.key)

    def end(self, conversation: str, reason: str, at: float | None = None) -> None:
        """Mark the tip as ended (exit, reset, expiry), now or at a recorded time. Ending twice keeps the first."""
        if reason == COMPRESSION:
            raise InputError("Only a committed compaction ends a session by compression.")
        with self._locked(conversation) as (tx, locked):
            tx.run(
                "UPDATE sessions SET ended = ?, end_reason = ? "
                "WHERE conversation = ? AND ordinal = ? AND ended IS NULL",
                *(self._moment(at), pack(reason), locked.key, locked.tip),
            )

    def reopen(self, conversation: str) -> None:
        """Continue an ended conversation in the same session."""
        with self._locked(conversation) as (tx, locked):
            tx.run(
                "UPDATE sessions SET ended = NULL, end_reason = NULL WHERE conversation = ? AND ordinal = ?",
                *(locked.key, locked.tip),
            )

    def branch(
        self, conversation: str, at: int, id: str | None = None, created_at: float | None = None
    ) -> ConversationRecord:
        """A new conversation that begins as this one was after message `at`: same numbers, same view."""
        chosen = new_id() if id is None else id
        with self._locked(conversation) as (tx, locked):
            if not 1 <= at <= locked.last:
                raise NotFound(f"{shown(conversation)} has no message m{at}; its log ends at m{locked.last}.")
            origin = integer(
                tx,
                "SELECT max(ordinal) FROM sessions WHERE conversation = ? AND (first <= ? OR ordinal = 1)",
                *(locked.key, at),
            )
            now = self._moment(created_at)
            key = _insert_conversation(tx, chosen, ConversationKind.BRANCH, now)
            insert_session(tx, key, 1, chosen, read_session(tx, locked.key, origin).id, now, at + 1)
            write_metadata(tx, key, 1, read_session(tx, locked.key, locked.tip).metadata)
            _copy_history(tx, locked.key, key, at)
            return _conversation(tx, key)

    def page(self, where: ConversationFilter | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """A page of conversations, newest activity first; without their system prompts.

        Walks down the index of last activity, block by block, so that no page looks at everything.
        """
        conditions = _conditions(where or ConversationFilter())
        place = _place(cursor)
        if limit <= 0:
            return Page((), None)
        found: list[Row] = []
        with self._db.read() as tx:
            for _ in range(_MOST_BLOCKS):
                end = tx.row(_BLOCK_END, *place, _BLOCK_LENGTH - 1)
                found += tx.rows(
                    f"{_LISTED}{conditions.sql} ORDER BY c.updated DESC, c.conversation DESC LIMIT ?",
                    *(*place, *(end or (0, 0)), *conditions.params, limit + 1 - len(found)),
                )
                if len(found) > limit:
                    found.pop()
                    place = found[-1][5:7]
                    break
                if end is None:
                    return _page(found, None)
                place = end[:2]
        return _page(found, f"{place[0]}-{place[1]}")

    def each(self, where: ConversationFilter | None = None, at_a_time: int = 500) -> Iterator[ConversationRecord]:
        """Conversations page by page, newest activity first; without their system prompts."""
        cursor: str | None = None
        while True:
            found = self.page(where, at_a_time, cursor)
            yield from found.conversations
            cursor = found.cursor
            if cursor is None:
                return

    def delete(self, conversation: str) -> None:
        """Remove a conversation with everything it has, indexes included."""
        with self._locked(conversation) as (tx, locked):
            self._delete(tx, locked.key)

    def prune(self, before: float, dry_run: bool = False) -> list[str]:
        """Delete ended conversations without pins whose last activity is older; returns their ids."""
        moment = millis(before)
        with self._db.read() as tx:
            old = tx.rows(
                "SELECT f.id FROM conversations c JOIN sessions f ON f.conversation = c.conversation AND f.ordinal = 1 "
                "WHERE c.updated < ? ORDER BY c.updated",
                moment,
            )
        pruned = []
        for (packed,) in old:
            with self._db.write() as tx:
                try:
                    key = lock(self._db, tx, unpack(packed)).key
                except NotFound:
                    continue
                if _may_prune(tx, key, moment):
                    pruned.append(unpack(packed))
                    if not dry_run:
                        self._delete(tx, key)
        return pruned

    def _delete(self, tx: Transaction, key: int) -> None:
        self._remove_from_index(tx, key)
        for (packed,) in tx.rows("SELECT id FROM sessions WHERE conversation = ?", key):
            tx.run("DELETE FROM directory WHERE name = ?", name_key(unpack(packed)))
        for table in (*COLUMNS, "conversations"):
            tx.run(f"DELETE FROM {table} WHERE conversation = ?", key)  # noqa: S608 - our own table names

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(Sessions(self._db), moved_attribute(self, name, _MOVED, "Store.sessions"))


def _insert_conversation(tx: Transaction, id: str, kind: ConversationKind, now: int) -> int:
    """A conversation row and the directory entry of its first session; returns the key."""
    key = integer(
        tx,
        "INSERT INTO conversations (kind, created, updated, last, indexed, dirty, generation, tip) "
        "VALUES (?, ?, ?, 0, 0, 0, 0, 1) RETURNING conversation",
        *(kind.value, now, now),
    )
    register_id(tx, id, key, 1)
    return key


def _copy_history(tx: Transaction, source: int, target: int, at: int) -> None:
    """Fill a new, empty conversation with what another had when message `at` was its newest.

    The copy is complete, so that either conversation can be deleted, moved or compacted without the other.
    """

    def copy(table: str, condition: str = "", *params: Any) -> None:
        columns = ", ".join(COLUMNS[table])
        # A branch has one session.
        values = columns.replace("ordinal", "1")
        tx.run(
            f"INSERT INTO {table} (conversation, {columns}) "  # noqa: S608 - constants
            f"SELECT ?, {values} FROM {table} WHERE conversation = ?{condition}",
            *(target, source, *params),
        )

    copy("messages", " AND number <= ? ORDER BY number", at)
    copy("hashes", " AND number <= ?", at)
    copy("pins", " AND number <= ?", at)
    copy("ledgers", " AND base <= ?", at)
    copy("stated_values", " AND message <= ?", at)
    tx.run("UPDATE stated_values SET replaced_by = NULL WHERE conversation = ? AND replaced_by > ?", target, at)
    # The view in force when the message was the newest, and those before it (for undo).
    copy("generations", " AND log_last <= ?", at)
    copy("folds", " AND generation IN (SELECT generation FROM generations WHERE conversation = ?)", target)
    copy("artifacts")
    tx.run(
        "UPDATE conversations SET last = ?, dirty = 1, generation = "
        "(SELECT max(generation) FROM generations WHERE conversation = ?) WHERE conversation = ?",
        *(at, target, target),
    )


def _may_prune(tx: Transaction, key: int, before: int) -> bool:
    row = tx.row(
        f"SELECT 1 FROM conversations c {_TIP} "  # noqa: S608 - constants
        "WHERE c.conversation = ? AND c.updated < ? AND s.ended IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.conversation = c.conversation)",
        *(key, before),
    )
    return row is not None


def _pulses(tx: Transaction, ids: Sequence[str]) -> dict[str, Pulse]:
    names = {name_key(id): id for id in ids}
    rows = rows_in(
        tx,
        "SELECT d.name, c.last, c.generation, c.updated, s.ended FROM directory d "  # noqa: S608 - constants
        f"JOIN conversations c ON c.conversation = d.conversation {_TIP} WHERE d.name IN",
        list(names),
    )
    return {
        names[bytes(name)]: Pulse(last, generation, seconds(updated), ended is None)
        for name, last, generation, updated, ended in rows
    }


def _conversation(tx: Transaction, key: int) -> ConversationRecord:
    row = tx.row(f"{_SELECT_RECORD} ?", key)
    if row is None:
        raise NotFound("The conversation was deleted meanwhile.")
    return _record(row[:6], row[6:])


def _record(row: Row, session: Row) -> ConversationRecord:
    tip = session_record(session)
    compactions, kind, generation, last, created, updated = row
    times = seconds(created), seconds(updated)
    return ConversationRecord(tip.conversation, ConversationKind(kind), tip, generation, last, *times, int(compactions))


def _page(rows: list[Row], cursor: str | None) -> Page:
    return Page(tuple(_record(row[:6], row[7:]) for row in rows), cursor)


def _place(cursor: str | None) -> Row:
    """Where a page begins: behind this time and conversation."""
    if cursor is None:
        return LARGEST_NUMBER, LARGEST_NUMBER
    updated, _, key = cursor.partition("-")
    if not (updated.isdecimal() and key.isdecimal()) or max(int(updated), int(key)) > LARGEST_NUMBER:
        raise InputError(f"{shown(cursor)} is not a cursor of a listing. Begin again without one.")
    return int(updated), int(key)


def _conditions(where: ConversationFilter) -> Conditions:
    found = Conditions()
    found.add("s.platform = ?", where.platform)
    found.add("s.model = ?", where.model)
    found.add("s.owner = ?", where.owner)
    found.add("c.kind = ?", where.kind)
    found.add("c.updated >= ?", where.active_since, millis)
    found.add("c.updated < ?", where.active_before, millis)
    if where.open is not None:
        found.sql += f" AND s.ended IS {'NULL' if where.open else 'NOT NULL'}"
    return found
