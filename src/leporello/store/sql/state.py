"""What a conversation keeps beside its messages: pins, ledger snapshots, values by key, and large outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from leporello.errors import InputError, NotFound
from leporello.events import Span
from leporello.messages import hash_bytes
from leporello.store.records import ArtifactInfo, LedgerSnapshot, Pin, StatedValue
from leporello.store.sql.database import STORE_ITSELF, StorePart, Transaction, integer, lock
from leporello.store.sql.encoding import (
    LARGEST_NUMBER,
    LONGEST_KEY,
    hash_key,
    hash_text,
    pack,
    pack_body,
    pack_json,
    seconds,
    shown,
    unpack,
    unpack_body,
    unpack_json,
)
from leporello.store.sql.schema import insert

LEDGERS_KEPT = 3  # the ledger is a function of the log: older snapshots only save work


class Pins(StorePart):
    """Messages that must survive."""

    def add(self, conversation: str, number: int, note: str = "") -> None:
        """Pin a message; pinning again replaces the note."""
        with self._locked(conversation) as (tx, locked):
            if not 1 <= number <= locked.last:
                raise NotFound(f"{shown(conversation)} has no message m{number} to pin.")
            tx.run(
                insert("pins", " ON CONFLICT (conversation, number) DO UPDATE SET note = excluded.note"),
                *(locked.key, number, pack(note), self._db.now()),
            )

    def remove(self, conversation: str, number: int) -> bool:
        """Remove a pin; False when there was none."""
        with self._locked(conversation) as (tx, locked):
            if not 1 <= number <= locked.last:
                return False
            return tx.run("DELETE FROM pins WHERE conversation = ? AND number = ?", locked.key, number) > 0

    def all(self, conversation: str) -> list[Pin]:
        """All pins in the order of their messages."""
        rows = self._rows(conversation, "SELECT number, note, created FROM pins WHERE conversation = ? ORDER BY number")
        return [Pin(number, unpack(note), seconds(created)) for number, note, created in rows]


class Ledgers(StorePart):
    """Snapshots of the ledger, so that it need not be rebuilt from the log."""

    def save(self, conversation: str, snapshot: LedgerSnapshot) -> None:
        """Store a snapshot; only the newest few are kept."""
        with self._locked(conversation) as (tx, locked):
            if not 0 <= snapshot.base <= locked.last:
                raise InputError(f"The log ends at m{locked.last}; a ledger can't stand at m{snapshot.base}.")
            save_ledger(tx, locked.key, snapshot)

    def latest(self, conversation: str, version: int, upto: int | None = None) -> LedgerSnapshot | None:
        """The newest snapshot of this version whose base is at most `upto`."""
        row = self._row(
            conversation,
            "SELECT base, data FROM ledgers WHERE conversation = ? AND version = ? AND base <= ? "
            "ORDER BY base DESC LIMIT 1",
            *(version, LARGEST_NUMBER if upto is None else min(upto, LARGEST_NUMBER)),
        )
        return None if row is None else LedgerSnapshot(row[0], version, unpack_body(row[1], "a ledger snapshot"))


def save_ledger(tx: Transaction, key: int, snapshot: LedgerSnapshot) -> None:
    """Store a snapshot with its values, and drop the oldest."""
    known = "SELECT COALESCE(max(base), 0) FROM ledgers WHERE conversation = ? AND version = ?"
    _write_values(tx, key, snapshot, integer(tx, known, key, snapshot.version))
    tx.run(
        insert("ledgers", " ON CONFLICT (conversation, base, version) DO UPDATE SET data = excluded.data"),
        *(key, snapshot.base, snapshot.version, pack_body(snapshot.data)),
    )
    tx.run(
        "DELETE FROM ledgers WHERE conversation = ? AND base < "
        "(SELECT min(base) FROM (SELECT base FROM ledgers WHERE conversation = ? ORDER BY base DESC LIMIT ?) newest)",
        *(key, key, LEDGERS_KEPT),
    )


_PUT_STATED = insert(
    "stated_values",
    " ON CONFLICT (conversation, message, digest) DO UPDATE SET subject = excluded.subject, value = excluded.value, "
    "replaced_by = excluded.replaced_by",
)


def _write_values(tx: Transaction, key: int, snapshot: LedgerSnapshot, before: int) -> None:
    """Write what was said, and what was replaced, since message `before`; all of it where nothing is known yet."""
    if before == 0:
        tx.run("DELETE FROM stated_values WHERE conversation = ?", key)
    for said in snapshot.values:
        if said.message > before or (said.replaced_by or 0) > before:
            digest = hashlib.blake2b(pack(said.text).encode(), digest_size=12).digest()
            texts = (pack(said.subject), pack(said.value), pack(said.text))
            tx.run(_PUT_STATED, *(key, said.message, digest, *texts, said.replaced_by, said.task))


class StatedValues(StorePart):
    """What conversations say about things, since when, and what replaced it. Written with the ledger."""

    def all(self, conversation: str, span: Span | None = None) -> list[StatedValue]:
        """Those that messages of a span give, in the order of the conversation."""
        wanted = span or Span(1, LARGEST_NUMBER)
        rows = self._rows(
            conversation,
            "SELECT s.subject, s.value, s.message, s.sentence, s.replaced_by, s.task, m.created FROM stated_values s "
            "JOIN messages m ON m.conversation = s.conversation AND m.number = s.message "
            "WHERE s.conversation = ? AND s.message BETWEEN ? AND ? ORDER BY s.message, s.digest",
            *(wanted.first, min(wanted.last, LARGEST_NUMBER)),
        )
        return [
            StatedValue(unpack(subject), unpack(value), message, unpack(text), replaced_by, task, seconds(created))
            for subject, value, message, text, replaced_by, task, created in rows
        ]


_SET_VALUE = (
    "INSERT INTO state (conversation, key, count, value) VALUES (?, ?, NULL, ?) "
    "ON CONFLICT (conversation, key) DO UPDATE SET count = NULL, value = excluded.value"
)
_REMOVE_VALUE = "DELETE FROM state WHERE conversation = ? AND key = ?"


class State(StorePart):
    """Small durable values by key, per conversation; `conversation=None` is the store's own."""

    def get(self, conversation: str | None, key: str) -> Any:
        """The JSON value, or None."""
        row = self._row(
            conversation, "SELECT count, value FROM state WHERE conversation = ? AND key = ?", _state_key(key)
        )
        return None if row is None else _value(*row)

    def set(self, conversation: str | None, key: str, value: Any) -> None:
        data = pack_json(value, f"The value of {shown(key)}")
        with self._db.write() as tx:
            tx.run(_SET_VALUE, self._lock(tx, conversation), _state_key(key), data)

    def add(self, conversation: str | None, key: str, amount: int = 1) -> int:
        """Add to a counter (0 when absent) and return it, atomically."""
        with self._db.write() as tx:
            return integer(
                tx,
                "INSERT INTO state (conversation, key, count, value) VALUES (?, ?, ?, NULL) "
                "ON CONFLICT (conversation, key) DO UPDATE SET count = COALESCE(state.count, 0) + excluded.count, "
                "value = NULL RETURNING count",
                *(self._lock(tx, conversation), _state_key(key), amount),
            )

    def remove(self, conversation: str | None, key: str) -> bool:
        """Delete a key; False when it was not there."""
        with self._db.write() as tx:
            found = self._lock(tx, conversation)
            return tx.run(_REMOVE_VALUE, found, _state_key(key)) > 0

    def items(self, conversation: str | None) -> Mapping[str, Any]:
        rows = self._rows(conversation, "SELECT key, count, value FROM state WHERE conversation = ? ORDER BY key")
        return {unpack(key): _value(count, value) for key, count, value in rows}

    def _lock(self, tx: Transaction, conversation: str | None) -> int:
        return STORE_ITSELF if conversation is None else lock(self._db, tx, conversation).key


def pack_state(values: Mapping[str, Any]) -> dict[str, bytes | None]:
    """Values as stored, for `write_state`; None stays None."""
    return {
        _state_key(key): None if value is None else pack_json(value, f"The value of {shown(key)}")
        for key, value in values.items()
    }


def write_state(tx: Transaction, key: int, values: Mapping[str, bytes | None]) -> None:
    """Set some values of a conversation, and remove those that are None."""
    for name, data in values.items():
        if data is None:
            tx.run(_REMOVE_VALUE, key, name)
        else:
            tx.run(_SET_VALUE, key, name, data)


def _state_key(key: str) -> str:
    packed = pack(key)
    if not packed or len(packed) > LONGEST_KEY:
        raise InputError(f"A key of the state has 1 to {LONGEST_KEY} characters.")
    return packed


def _value(count: int | None, value: bytes | None) -> Any:
    return count if value is None else unpack_json(value, "a state value")


class Artifacts(StorePart):
    """Large outputs; the same bytes are stored once per conversation."""

    def put(self, conversation: str, data: bytes, name: str = "") -> str:
        """Store bytes and return their handle."""
        handle = hash_bytes(data)
        body = pack_body(data)
        with self._locked(conversation) as (tx, locked):
            tx.run(
                "INSERT INTO artifacts (conversation, hash, number, size, name, created, body) "
                "SELECT ?, ?, count(*) + 1, ?, ?, ?, ? FROM artifacts WHERE conversation = ? ON CONFLICT DO NOTHING",
                *(locked.key, hash_key(handle), len(data), pack(name), self._db.now(), body, locked.key),
            )
        return handle

    def get(self, conversation: str, handle: str) -> bytes:
        try:
            digest = hash_key(handle)
        except ValueError:
            raise NotFound(f"{shown(handle)} is not the handle of an artifact.") from None
        row = self._row(conversation, "SELECT body FROM artifacts WHERE conversation = ? AND hash = ?", digest)
        if row is None:
            raise NotFound(f"{shown(conversation)} has no artifact {shown(handle)}.")
        return unpack_body(row[0], f"artifact {shown(handle)}")

    def all(self, conversation: str) -> list[ArtifactInfo]:
        """All artifacts of a conversation, oldest first."""
        rows = self._rows(
            conversation, "SELECT hash, size, name, created FROM artifacts WHERE conversation = ? ORDER BY number"
        )
        return [ArtifactInfo(hash_text(key), size, unpack(name), seconds(at)) for key, size, name, at in rows]
