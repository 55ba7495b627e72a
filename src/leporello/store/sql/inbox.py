"""The inbox of each conversation, and the lease by which one process at a time answers in it or compacts it.

Messages to the agent are stored before they are answered, and each is answered once: an inbox message is appended to
the log in the same transaction that records its number here, so that it is not appended again after a crash.

Once an inbox message has ended, its column `text` holds only the hash of the text: enough to recognise the same message
when it is sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from leporello.errors import InboxConflict, InboxFull, LeaseLost, NotFound
from leporello.messages import Message, hash_bytes
from leporello.store.records import InboxMessage, Lease
from leporello.store.sql.database import KEY_OF_NAME, Database, Row, StorePart, Transaction, key_of
from leporello.store.sql.encoding import (
    LARGEST_NUMBER,
    decode_text,
    encode_text,
    millis,
    name_key,
    pack,
    pack_body,
    pack_json,
    seconds,
    shown,
    unpack,
    unpack_body,
    unpack_json,
)
from leporello.store.sql.log import append_prepared, prepare_message

DEFAULT_LEASE_SECONDS = 10.0


class Leases(StorePart):
    """The right to compact a conversation, or to answer in it, held by one owner at a time.

    Each kind of lease has its own table.
    """

    def __init__(self, db: Database, table: str) -> None:
        super().__init__(db)
        self._table = table

    def acquire(self, conversation: str, owner: str, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease | None:
        """Take the lease if it is free, expired or already this owner's; None while another holds it."""
        with self._locked(conversation) as (tx, locked):
            now = self._db.now()
            expires = now + millis(seconds)
            row = tx.row(
                f"INSERT INTO {self._table} (conversation, token, owner, expires) VALUES (?, 1, ?, ?) "  # noqa: S608
                f"ON CONFLICT (conversation) DO UPDATE SET token = {self._table}.token + 1, owner = excluded.owner, "
                f"expires = excluded.expires WHERE {self._table}.expires <= ? OR {self._table}.owner = excluded.owner "
                "RETURNING token",
                *(locked.key, pack(owner), expires, now),
            )
        return None if row is None else Lease(conversation, owner, row[0], expires / 1000)

    def renew(self, lease: Lease, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease:
        """Hold it longer. Raises `LeaseLost` when another owner took it over."""
        with self._locked(lease.conversation) as (tx, locked):
            expires = self._db.now() + millis(seconds)
            kept = tx.run(
                f"UPDATE {self._table} SET expires = ? WHERE conversation = ? AND token = ? AND expires > 0",  # noqa: S608
                *(expires, locked.key, lease.token),
            )
            if not kept:
                raise LeaseLost(f"The lease of {shown(lease.owner)} on {shown(lease.conversation)} was taken over.")
        return Lease(lease.conversation, lease.owner, lease.token, expires / 1000)

    def release(self, lease: Lease) -> None:
        """Give it back; does nothing when it is lost already."""
        with self._db.write() as tx:
            tx.run(
                f"UPDATE {self._table} SET expires = 0 WHERE conversation = {KEY_OF_NAME} AND token = ?",  # noqa: S608
                *(name_key(lease.conversation), lease.token),
            )

    def holder(self, conversation: str) -> Lease | None:
        row = self._row(conversation, f"SELECT owner, token, expires FROM {self._table} WHERE conversation = ?")  # noqa: S608
        if row is None or row[2] <= self._db.now():
            return None
        return Lease(conversation, unpack(row[0]), row[1], seconds(row[2]))


class Fence:
    """Holds the lease under which a worker writes. It changes from turn to turn; between turns there is none."""

    __slots__ = ("lease",)

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease


class FencedDatabase:
    """A `Database` that commits only while the lease of the fence is the newest."""

    def __init__(self, db: Database, fence: Fence) -> None:
        self._db = db
        self._fence = fence
        self.url = db.url
        self.for_update = db.for_update
        self.free_for_update = db.free_for_update
        self.now = db.now

    @property
    def read_only(self) -> bool:
        return self._db.read_only

    @contextmanager
    def write(self, durable: bool = True) -> Iterator[Transaction]:
        with self._db.write(durable) as tx:
            yield tx
            lease = self._fence.lease
            if lease is None:
                raise LeaseLost("This conversation may only be written to in a turn, and there is none now.")
            row = tx.row(
                f"SELECT t.token FROM turns t WHERE t.conversation = {KEY_OF_NAME}",  # noqa: S608 - a constant
                name_key(lease.conversation),
            )
            if row is None or row[0] != lease.token:
                raise LeaseLost(
                    f"The turn of {shown(lease.owner)} on {shown(lease.conversation)} was taken over. "
                    "Nothing was written; the new holder goes on with it."
                )

    def read(self) -> AbstractContextManager[Transaction]:
        return self._db.read()

    def close(self) -> None:
        """Does nothing: the database is closed where it was opened."""


KEPT = 1_000
"""Inbox messages that are remembered for each conversation: an id that comes again after so many others is new."""

_COLUMNS = ("id", "number", "text", "attempts", "message", "cancelled", "outcome")
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM inbox WHERE conversation = ?"  # noqa: S608 - constants
_ARRIVAL = (
    f"SELECT {', '.join(f'i.{name}' for name in _COLUMNS)}, "  # noqa: S608 - constants
    "(SELECT count(*) FROM inbox w WHERE w.conversation = ? AND w.ended IS NULL), "
    "(SELECT max(n.number) FROM inbox n WHERE n.conversation = ?) "
    "FROM (SELECT 1) one LEFT JOIN inbox i ON i.conversation = ? AND i.name = ?"
)
"""The message with a name, if there is one; how many wait; the highest number."""
_BEGIN = (
    "UPDATE inbox SET attempts = attempts + 1 WHERE conversation = ? AND number = "  # noqa: S608 - constants
    "(SELECT min(w.number) FROM inbox w WHERE w.conversation = ? AND w.ended IS NULL{chosen}) "
    f"RETURNING {', '.join(_COLUMNS)}"
)


class Inbox(StorePart):
    """Messages to the agent of a conversation. Each is stored before it is answered, and answered once."""

    def enqueue(self, conversation: str, id: str, text: str, most: int | None = None) -> InboxMessage:
        """Store a message durably; when the id is known, return the one that is there.

        Raises `InboxConflict` when that one has another text, `InboxFull` when `most` messages wait already.
        """
        data = encode_text(text)
        with self._locked(conversation) as (tx, locked):
            found = tx.row(_ARRIVAL, locked.key, locked.key, locked.key, name_key(id))
            assert found is not None, "the counts are there, whatever the inbox holds"
            *known, waiting, newest = found
            if known[0] is not None:
                if not _has_text(known, data):
                    raise InboxConflict(
                        f"The id {shown(id)} stands for another text in {shown(conversation)}. Choose a new id."
                    )
                return _inbox_message(conversation, known)
            if most is not None and waiting >= most:
                raise InboxFull(f"{most} messages wait for {shown(conversation)} already. Send this one again later.")
            number = (newest or 0) + 1
            tx.run(
                "INSERT INTO inbox (conversation, number, name, id, created, attempts, cancelled, text) "
                "VALUES (?, ?, ?, ?, ?, 0, 0, ?)",
                *(locked.key, number, name_key(id), pack(id), self._db.now(), pack_body(data)),
            )
        return InboxMessage(conversation, id, number, text)

    def get(self, conversation: str, id: str) -> InboxMessage:
        """One message. Raises `NotFound` when there is none with this id."""
        with self._db.read() as tx:
            return _inbox_message(conversation, _known(tx, key_of(tx, conversation), conversation, id))

    def waiting(self, conversation: str, limit: int | None = None) -> list[InboxMessage]:
        """Messages that have not ended, in the order of their arrival."""
        most = LARGEST_NUMBER if limit is None else limit
        rows = self._rows(conversation, f"{_SELECT} AND ended IS NULL ORDER BY number LIMIT ?", most)
        return [_inbox_message(conversation, row) for row in rows]

    def cancelled(self, conversation: str) -> list[str]:
        """Ids of messages that have not ended and were cancelled."""
        rows = self._rows(
            conversation, "SELECT id FROM inbox WHERE conversation = ? AND ended IS NULL AND cancelled = 1"
        )
        return [unpack(id) for (id,) in rows]

    def begin(self, conversation: str, id: str) -> InboxMessage:
        """Count an attempt to answer a message."""
        with self._locked(conversation) as (tx, locked):
            row = tx.row(_BEGIN.format(chosen=" AND w.name = ?"), locked.key, locked.key, name_key(id))
            return _inbox_message(conversation, row or _known(tx, locked.key, conversation, id))

    def begin_next(self, conversation: str) -> InboxMessage | None:
        """Count an attempt to answer the message that has waited longest; None when none waits."""
        with self._locked(conversation) as (tx, locked):
            row = tx.row(_BEGIN.format(chosen=""), locked.key, locked.key)
            return None if row is None else _inbox_message(conversation, row)

    def append_to_log(self, conversation: str, id: str, message: Message) -> int:
        """Append a message's text to the log, once and for all; returns its number there, also when repeated."""
        prepared = [prepare_message(message, 0)]
        with suppress(_NothingToAppend), self._db.write() as tx:
            locked = append_prepared(tx, conversation, prepared, [self._db.now()])
            entered = tx.run(
                "UPDATE inbox SET message = ? WHERE conversation = ? AND name = ? AND message IS NULL",
                *(locked.last, locked.key, name_key(id)),
            )
            if not entered:
                raise _NothingToAppend
            return locked.last
        known = self.get(conversation, id).message
        assert known is not None, "nobody takes a number away again"
        return known

    def end(
        self, conversation: str, id: str, outcome: Mapping[str, Any], text: str | None = None, turn: Lease | None = None
    ) -> None:
        """Record how a message ended; the first outcome stands.

        `text`: what the message says, if that is known. `turn`: given back at the same moment.
        """
        data = pack_json(dict(outcome), f"The outcome of {shown(id)}")
        with self._locked(conversation) as (tx, locked):
            said = _text(_known(tx, locked.key, conversation, id)) if text is None else encode_text(text)
            ended = tx.row(
                "UPDATE inbox SET ended = ?, outcome = ?, text = ? "
                "WHERE conversation = ? AND name = ? AND ended IS NULL RETURNING number",
                *(self._db.now(), data, pack_body(_hash(said)), locked.key, name_key(id)),
            )
            if ended is not None and ended[0] > KEPT:
                tx.run(
                    "DELETE FROM inbox WHERE conversation = ? AND number <= ? AND ended IS NOT NULL",
                    *(locked.key, ended[0] - KEPT),
                )
            if turn is not None:
                tx.run("UPDATE turns SET expires = 0 WHERE conversation = ? AND token = ?", locked.key, turn.token)

    def cancel(self, conversation: str) -> int:
        """Cancel all messages that have not ended; returns how many."""
        with self._locked(conversation) as (tx, locked):
            return tx.run("UPDATE inbox SET cancelled = 1 WHERE conversation = ? AND ended IS NULL", locked.key)

    def stranded(self, limit: int = 100) -> list[str]:
        """Conversations with messages that have not ended while nobody holds their turn."""
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT DISTINCT f.id FROM inbox i "
                "JOIN sessions f ON f.conversation = i.conversation AND f.ordinal = 1 "
                "LEFT JOIN turns t ON t.conversation = i.conversation "
                "WHERE i.ended IS NULL AND (t.expires IS NULL OR t.expires <= ?) LIMIT ?",
                *(self._db.now(), limit),
            )
        return [unpack(id) for (id,) in rows]


class _NothingToAppend(Exception):
    """A message is in the log already, or was never sent: what was claimed for it is taken back."""


def _known(tx: Transaction, key: int, conversation: str, id: str) -> Row:
    row = tx.row(f"{_SELECT} AND name = ?", key, name_key(id))
    if row is None:
        raise NotFound(f"{shown(conversation)} has no inbox message {shown(id)}.")
    return row


def _text(row: Sequence[Any]) -> bytes:
    """The text of a message; its hash once it has ended."""
    return unpack_body(row[2], "an inbox message")


def _hash(text: bytes) -> bytes:
    return hash_bytes(text).encode()


def _has_text(row: Sequence[Any], text: bytes) -> bool:
    """Whether a message has this text. One that ended before hashes were stored matches any text."""
    stored = _text(row)
    return stored == text if row[6] is None else stored in (b"", _hash(text))


def _inbox_message(conversation: str, row: Sequence[Any]) -> InboxMessage:
    id, number, _, attempts, message, cancelled, outcome = row
    return InboxMessage(
        conversation,
        unpack(id),
        number,
        decode_text(_text(row)) if outcome is None else "",
        attempts,
        message,
        bool(cancelled),
        None if outcome is None else unpack_json(outcome, "an outcome"),
    )
