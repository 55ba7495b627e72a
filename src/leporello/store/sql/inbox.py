"""The inbox of each conversation: letters are written down before they are answered, and each is answered once.

A letter's message enters the log in the same transaction that notes its number on the letter, so that a reader who
died in between is never followed by one who enters it again.

Of a letter that has ended the column `text` holds only the hash of what it said: enough to tell the same letter, sent
again, from another one under its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.errors import InboxFull, LetterConflict, NotFound
from leporello.messages import Message, decode_json, hash_bytes
from leporello.store.base import InboxMessage
from leporello.store.sql.database import Database, Row, Transaction
from leporello.store.sql.encoding import name_key, pack, pack_body, unpack, unpack_body
from leporello.store.sql.locking import LARGEST_NUMBER, hold, locate, shown, to_json
from leporello.store.sql.log import append_prepared, prepare_message
from leporello.store.sql.schema import Migration

KEPT = 1_000
"""Letters that are remembered for each conversation: an id that comes again after so many others is a new letter."""

_INBOX = """
CREATE TABLE inbox (
    conversation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    name {blob} NOT NULL,
    id TEXT NOT NULL,
    created BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    message BIGINT,
    cancelled SMALLINT NOT NULL,
    ended BIGINT,
    text {blob} NOT NULL,
    outcome {blob},
    PRIMARY KEY (conversation, number)
)"""

_TURNS = """
CREATE TABLE turns (
    conversation BIGINT NOT NULL PRIMARY KEY,
    token BIGINT NOT NULL,
    owner TEXT NOT NULL,
    expires BIGINT NOT NULL
)"""

STATEMENTS = (
    _INBOX,
    "CREATE UNIQUE INDEX inbox_by_name ON inbox (conversation, name)",
    "CREATE INDEX inbox_waiting ON inbox (conversation, number) WHERE ended IS NULL",
    _TURNS,
)

_SELECT = "SELECT id, number, text, attempts, message, cancelled, outcome FROM inbox WHERE conversation = ?"


def inbox_migration(name: str) -> Migration:
    """The tables of inbox and turns, under the number they have in a database."""
    return Migration(name, STATEMENTS)


class SqlInbox:
    """`Inbox` of the port."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def post(self, conversation: str, id: str, text: str, most: int | None = None) -> InboxMessage:
        said = text.encode("utf-8", "surrogatepass")
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            known = _find(tx, held.key, id)
            if known is not None:
                if not _says(known, said):
                    raise LetterConflict(
                        f"The id {shown(id)} stands for another text in {shown(conversation)}. Choose a new id."
                    )
                return _letter(conversation, known)
            counted = tx.row("SELECT count(*) FROM inbox WHERE conversation = ? AND ended IS NULL", held.key)
            if most is not None and counted and counted[0] >= most:
                raise InboxFull(f"{most} letters wait for {shown(conversation)} already. Send this one again later.")
            newest = tx.row("SELECT max(number) FROM inbox WHERE conversation = ?", held.key)
            number = (newest[0] if newest and newest[0] else 0) + 1
            tx.run(
                "INSERT INTO inbox (conversation, number, name, id, created, attempts, cancelled, text) "
                "VALUES (?, ?, ?, ?, ?, 0, 0, ?)",
                *(held.key, number, name_key(id), pack(id), self._db.now(), pack_body(said)),
            )
        return InboxMessage(conversation, id, number, text)

    def get(self, conversation: str, id: str) -> InboxMessage:
        with self._db.read() as tx:
            row = _find(tx, locate(tx, conversation)[0], id)
        if row is None:
            raise NotFound(f"{shown(conversation)} has no letter {shown(id)}.")
        return _letter(conversation, row)

    def waiting(self, conversation: str, limit: int | None = None) -> list[InboxMessage]:
        most = LARGEST_NUMBER if limit is None else limit
        with self._db.read() as tx:
            key, _ = locate(tx, conversation)
            rows = tx.rows(f"{_SELECT} AND ended IS NULL ORDER BY number LIMIT ?", key, most)
        return [_letter(conversation, row) for row in rows]

    def begin(self, conversation: str, id: str) -> InboxMessage:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            _known(tx, held.key, conversation, id)
            tx.run(
                "UPDATE inbox SET attempts = attempts + 1 WHERE conversation = ? AND name = ? AND ended IS NULL",
                *(held.key, name_key(id)),
            )
            return _letter(conversation, _known(tx, held.key, conversation, id))

    def enter(self, conversation: str, id: str, message: Message) -> int:
        prepared = [prepare_message(message, 0)]
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            known = _letter(conversation, _known(tx, held.key, conversation, id)).message
            if known is not None:
                return known
            (number,) = append_prepared(tx, conversation, prepared, [self._db.now()])
            tx.run(
                "UPDATE inbox SET message = ? WHERE conversation = ? AND name = ?",
                *(number, held.key, name_key(id)),
            )
        return number

    def end(self, conversation: str, id: str, outcome: Mapping[str, Any]) -> None:
        data = pack_body(to_json(dict(outcome), f"The outcome of {shown(id)}"))
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            row = _known(tx, held.key, conversation, id)
            number = row[1]
            tx.run(
                "UPDATE inbox SET ended = ?, outcome = ?, text = ? "
                "WHERE conversation = ? AND number = ? AND ended IS NULL",
                *(self._db.now(), data, pack_body(_hash(unpack_body(row[2], "a letter"))), held.key, number),
            )
            tx.run(
                "DELETE FROM inbox WHERE conversation = ? AND number <= ? AND ended IS NOT NULL",
                *(held.key, number - KEPT),
            )

    def cancel(self, conversation: str) -> int:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            return tx.run("UPDATE inbox SET cancelled = 1 WHERE conversation = ? AND ended IS NULL", held.key)

    def cancelled(self, conversation: str) -> list[str]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT id FROM inbox WHERE conversation = ? AND ended IS NULL AND cancelled = 1",
                locate(tx, conversation)[0],
            )
        return [unpack(id) for (id,) in rows]

    def stranded(self, limit: int = 100) -> list[str]:
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
        raise NotFound(f"{shown(conversation)} has no letter {shown(id)}.")
    return row


def _hash(said: bytes) -> bytes:
    return hash_bytes(said).encode()


def _says(row: Row, said: bytes) -> bool:
    """Whether a letter says this. Of one that ended before hashes were kept nobody knows: it gets the benefit."""
    kept = unpack_body(row[2], "a letter")
    return kept == said if row[6] is None else kept in (b"", _hash(said))


def _letter(conversation: str, row: Row) -> InboxMessage:
    id, number, text, attempts, message, cancelled, outcome = row
    return InboxMessage(
        conversation,
        unpack(id),
        number,
        unpack_body(text, "a letter").decode("utf-8", "surrogatepass") if outcome is None else "",
        attempts,
        message,
        bool(cancelled),
        None if outcome is None else decode_json(unpack_body(outcome, "an outcome")),
    )
