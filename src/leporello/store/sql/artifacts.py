"""What a conversation keeps beside its messages: artifacts, pins, ledger snapshots and small state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.errors import InputError, NotFound
from leporello.messages import decode_json, hash_bytes
from leporello.store.records import ArtifactInfo, LedgerSnapshot, Pin
from leporello.store.sql.database import Database, Transaction
from leporello.store.sql.encoding import LONGEST_KEY, hash_key, hash_text, pack, pack_body, seconds, unpack, unpack_body
from leporello.store.sql.locking import LARGEST_NUMBER, STORE_ITSELF, hold, locate, shown, to_json

LEDGERS_KEPT = 3
"""The ledger is a function of the log: older snapshots only save work."""


class SqlArtifacts:
    """`Artifacts` of the port."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def put(self, conversation: str, data: bytes, name: str = "") -> str:
        handle = hash_bytes(data)
        body = pack_body(data)
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            tx.run(
                "INSERT INTO artifacts (conversation, hash, number, size, name, created, body) "
                "SELECT ?, ?, count(*) + 1, ?, ?, ?, ? FROM artifacts WHERE conversation = ? ON CONFLICT DO NOTHING",
                *(held.key, hash_key(handle), len(data), pack(name), self._db.now(), body, held.key),
            )
        return handle

    def get(self, conversation: str, handle: str) -> bytes:
        with self._db.read() as tx:
            row = tx.row(
                "SELECT body FROM artifacts WHERE conversation = ? AND hash = ?",
                locate(tx, conversation)[0],
                _handle_key(handle),
            )
        if row is None:
            raise NotFound(f"{shown(conversation)} has no artifact {shown(handle)}.")
        return unpack_body(row[0], f"artifact {shown(handle)}")

    def all(self, conversation: str) -> list[ArtifactInfo]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT hash, size, name, created FROM artifacts WHERE conversation = ? ORDER BY number",
                locate(tx, conversation)[0],
            )
        return [ArtifactInfo(hash_text(key), size, unpack(name), seconds(at)) for key, size, name, at in rows]


def _handle_key(handle: str) -> bytes:
    try:
        return hash_key(handle)
    except ValueError:
        raise NotFound(f"{shown(handle)} is not the handle of an artifact.") from None


class SqlPins:
    """`Pins` of the port."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, conversation: str, number: int, note: str = "") -> None:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            if not 1 <= number <= held.last:
                raise NotFound(f"{shown(conversation)} has no message m{number} to pin.")
            tx.run(
                "INSERT INTO pins (conversation, number, note, created) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (conversation, number) DO UPDATE SET note = excluded.note",
                *(held.key, number, pack(note), self._db.now()),
            )

    def remove(self, conversation: str, number: int) -> bool:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            if not 1 <= number <= held.last:
                return False
            return tx.run("DELETE FROM pins WHERE conversation = ? AND number = ?", held.key, number) > 0

    def all(self, conversation: str) -> list[Pin]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT number, note, created FROM pins WHERE conversation = ? ORDER BY number",
                locate(tx, conversation)[0],
            )
        return [Pin(number, unpack(note), seconds(created)) for number, note, created in rows]


class SqlLedgers:
    """`Ledgers` of the port."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def save(self, conversation: str, snapshot: LedgerSnapshot) -> None:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            if not 0 <= snapshot.base <= held.last:
                raise InputError(f"The log ends at m{held.last}; a ledger can't stand at m{snapshot.base}.")
            save_ledger(tx, held.key, snapshot)

    def latest(self, conversation: str, version: int, upto: int | None = None) -> LedgerSnapshot | None:
        bound = LARGEST_NUMBER if upto is None else min(upto, LARGEST_NUMBER)
        with self._db.read() as tx:
            row = tx.row(
                "SELECT base, data FROM ledgers WHERE conversation = ? AND version = ? AND base <= ? "
                "ORDER BY base DESC LIMIT 1",
                *(locate(tx, conversation)[0], version, bound),
            )
        return None if row is None else LedgerSnapshot(row[0], version, unpack_body(row[1], "a ledger snapshot"))


def save_ledger(tx: Transaction, key: int, snapshot: LedgerSnapshot) -> None:
    """Keep a snapshot and drop the oldest."""
    tx.run(
        "INSERT INTO ledgers (conversation, base, version, data) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (conversation, base, version) DO UPDATE SET data = excluded.data",
        *(key, snapshot.base, snapshot.version, pack_body(snapshot.data)),
    )
    tx.run(
        "DELETE FROM ledgers WHERE conversation = ? AND base < "
        "(SELECT min(base) FROM (SELECT base FROM ledgers WHERE conversation = ? ORDER BY base DESC LIMIT ?) newest)",
        *(key, key, LEDGERS_KEPT),
    )


class SqlState:
    """`State` of the port."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, conversation: str | None, key: str) -> Any:
        with self._db.read() as tx:
            row = tx.row(
                "SELECT count, value FROM state WHERE conversation = ? AND key = ?",
                self._find(tx, conversation),
                _state_key(key),
            )
        return None if row is None else _value(row[0], row[1])

    def set(self, conversation: str | None, key: str, value: Any) -> None:
        data = pack_body(to_json(value, f"The value of {shown(key)}"))
        with self._db.write() as tx:
            tx.run(
                "INSERT INTO state (conversation, key, count, value) VALUES (?, ?, NULL, ?) "
                "ON CONFLICT (conversation, key) DO UPDATE SET count = NULL, value = excluded.value",
                *(self._hold(tx, conversation), _state_key(key), data),
            )

    def add(self, conversation: str | None, key: str, amount: int = 1) -> int:
        with self._db.write() as tx:
            row = tx.row(
                "INSERT INTO state (conversation, key, count, value) VALUES (?, ?, ?, NULL) "
                "ON CONFLICT (conversation, key) DO UPDATE SET count = COALESCE(state.count, 0) + excluded.count, "
                "value = NULL RETURNING count",
                *(self._hold(tx, conversation), _state_key(key), amount),
            )
        assert row is not None, "INSERT ... RETURNING gives a row"
        count: int = row[0]
        return count

    def remove(self, conversation: str | None, key: str) -> bool:
        with self._db.write() as tx:
            found = self._hold(tx, conversation)
            return tx.run("DELETE FROM state WHERE conversation = ? AND key = ?", found, _state_key(key)) > 0

    def items(self, conversation: str | None) -> Mapping[str, Any]:
        with self._db.read() as tx:
            rows = tx.rows(
                "SELECT key, count, value FROM state WHERE conversation = ? ORDER BY key", self._find(tx, conversation)
            )
        return {unpack(key): _value(count, value) for key, count, value in rows}

    def _find(self, tx: Transaction, conversation: str | None) -> int:
        return STORE_ITSELF if conversation is None else locate(tx, conversation)[0]

    def _hold(self, tx: Transaction, conversation: str | None) -> int:
        return STORE_ITSELF if conversation is None else hold(self._db, tx, conversation).key


def _state_key(key: str) -> str:
    packed = pack(key)
    if not packed or len(packed) > LONGEST_KEY:
        raise InputError(f"A key of the state has 1 to {LONGEST_KEY} characters.")
    return packed


def _value(count: int | None, value: bytes | None) -> Any:
    return count if value is None else decode_json(unpack_body(value, "a state value"))
