"""The inbox of each conversation: messages to its agent are stored before they are answered, and each is answered once.

An inbox message is appended to the log in the same transaction that records its number here, so that it is
not appended again after a crash.

Once an inbox message has ended, its column `text` holds only the hash of the text: enough to recognise the same message
when it is sent again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.errors import InboxConflict, InboxFull, NotFound
from leporello.messages import Message, hash_bytes
from leporello.store.records import InboxMessage
from leporello.store.sql.database import Row, StorePart, Transaction, integer, key_of
from leporello.store.sql.encoding import (
    LARGEST_NUMBER,
    decode_text,
    encode_text,
    name_key,
    pack,
    pack_body,
    pack_json,
    shown,
    unpack,
    unpack_body,
    unpack_json,
)
from leporello.store.sql.log import append_prepared, prepare_message

KEPT = 1_000
"""Inbox messages that are remembered for each conversation: an id that comes again after so many others is new."""

_SELECT = "SELECT id, number, text, attempts, message, cancelled, outcome FROM inbox WHERE conversation = ?"


class Inbox(StorePart):
    """Messages to the agent of a conversation. Each is stored before it is answered, and answered once."""

    def enqueue(self, conversation: str, id: str, text: str, most: int | None = None) -> InboxMessage:
        """Store a message durably; when the id is known, return the one that is there.

        Raises `InboxConflict` when that one has another text, `InboxFull` when `most` messages wait already.
        """
        data = encode_text(text)
        with self._locked(conversation) as (tx, locked):
            known = _find(tx, locked.key, id)
            if known is not None:
                if not _has_text(known, data):
                    raise InboxConflict(
                        f"The id {shown(id)} stands for another text in {shown(conversation)}. Choose a new id."
                    )
                return _inbox_message(conversation, known)
            waiting = integer(tx, "SELECT count(*) FROM inbox WHERE conversation = ? AND ended IS NULL", locked.key)
            if most is not None and waiting >= most:
                raise InboxFull(f"{most} messages wait for {shown(conversation)} already. Send this one again later.")
            number = integer(tx, "SELECT max(number) FROM inbox WHERE conversation = ?", locked.key) + 1
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
            _known(tx, locked.key, conversation, id)
            tx.run(
                "UPDATE inbox SET attempts = attempts + 1 WHERE conversation = ? AND name = ? AND ended IS NULL",
                *(locked.key, name_key(id)),
            )
            return _inbox_message(conversation, _known(tx, locked.key, conversation, id))

    def append_to_log(self, conversation: str, id: str, message: Message) -> int:
        """Append a message's text to the log, once and for all; returns its number there, also when repeated."""
        prepared = [prepare_message(message, 0)]
        with self._locked(conversation) as (tx, locked):
            known = _inbox_message(conversation, _known(tx, locked.key, conversation, id)).message
            if known is not None:
                return known
            (number,) = append_prepared(tx, conversation, prepared, [self._db.now()])
            tx.run(
                "UPDATE inbox SET message = ? WHERE conversation = ? AND name = ?", *(number, locked.key, name_key(id))
            )
        return number

    def end(self, conversation: str, id: str, outcome: Mapping[str, Any]) -> None:
        """Record how a message ended; the first outcome stands."""
        data = pack_json(dict(outcome), f"The outcome of {shown(id)}")
        with self._locked(conversation) as (tx, locked):
            row = _known(tx, locked.key, conversation, id)
            number = row[1]
            tx.run(
                "UPDATE inbox SET ended = ?, outcome = ?, text = ? "
                "WHERE conversation = ? AND number = ? AND ended IS NULL",
                *(self._db.now(), data, pack_body(_hash(_text(row))), locked.key, number),
            )
            tx.run(
                "DELETE FROM inbox WHERE conversation = ? AND number <= ? AND ended IS NOT NULL",
                *(locked.key, number - KEPT),
            )

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


def _find(tx: Transaction, key: int, id: str) -> Row | None:
    return tx.row(f"{_SELECT} AND name = ?", key, name_key(id))


def _known(tx: Transaction, key: int, conversation: str, id: str) -> Row:
    row = _find(tx, key, id)
    if row is None:
        raise NotFound(f"{shown(conversation)} has no inbox message {shown(id)}.")
    return row


def _text(row: Row) -> bytes:
    """The text of a message; its hash once it has ended."""
    return unpack_body(row[2], "an inbox message")


def _hash(text: bytes) -> bytes:
    return hash_bytes(text).encode()


def _has_text(row: Row, text: bytes) -> bool:
    """Whether a message has this text. One that ended before hashes were stored matches any text."""
    stored = _text(row)
    return stored == text if row[6] is None else stored in (b"", _hash(text))


def _inbox_message(conversation: str, row: Row) -> InboxMessage:
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
