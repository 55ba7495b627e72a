"""The check-up: tests every rule the tables must obey, on all rows.

Hashes are computed again from what reads back, so a wrong reference can't pass. Damage is reported, never repaired:
only indexes can be rebuilt.
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from leporello.errors import InputError, StoreCorrupt, StoreError
from leporello.messages import encode_json, hash_bytes
from leporello.store.records import COMPRESSION
from leporello.store.sql.database import Database, Progress, Transaction, integer
from leporello.store.sql.encoding import hash_key, hash_text, name_key, unpack, unpack_body, unpack_entries
from leporello.store.sql.indexing import Indexer
from leporello.store.sql.log import decode_message

_BATCH = 1000
_EXISTS = "The file exists. A backup never overwrites; choose another name."
_OWNED = ("directory", "sessions", "messages", "hashes", "generations", "folds", "artifacts", "documents")


class Severity(StrEnum):
    DAMAGE = "damage"
    """Conversation data is wrong; restore from a backup."""
    INDEX = "index"
    """Only a search index is wrong; `repair` rebuilds it."""
    SPLIT = "split"
    """A conversation is in several logs; `leporello doctor --repair` joins them."""


class Finding(Struct, frozen=True):
    check: str
    severity: Severity
    where: str
    text: str


class Checkup(Struct, frozen=True):
    findings: tuple[Finding, ...]
    conversations: int
    messages: int
    artifacts: int
    pending: int
    """Messages that the index has not seen yet; no fault."""
    sizes: Mapping[str, int]
    """Bytes by table or index."""

    @property
    def clean(self) -> bool:
        return not self.findings


class Care(ABC):
    def __init__(self, db: Database, index: Indexer) -> None:
        self._db = db
        self._index = index

    def checkup(self, deep: bool = True, watch: Progress | None = None) -> Checkup:
        """Check chains, views, indexes and, when `deep`, every message and artifact against its hash."""
        findings = list(self._integrity()) if deep else []
        conversations = messages = artifacts = pending = 0
        try:
            with self._db.read() as tx:
                rows = tx.rows(
                    "SELECT c.conversation, s.id, c.last FROM conversations c LEFT JOIN sessions s "
                    "ON s.conversation = c.conversation AND s.ordinal = 1 ORDER BY c.conversation"
                )
                done, total = 0, sum(last for _, _, last in rows)
                for key, id, last in rows:
                    conversations += 1
                    where = unpack(id) if id is not None else f"conversation {key}"
                    findings.extend(_Examination(tx, key, where).findings(deep))
                    done += last
                    if watch is not None:
                        watch(done, total)
                findings.extend(_strays(tx))
                findings.extend(self._index_findings(tx))
                messages = integer(tx, "SELECT count(*) FROM messages")
                artifacts = integer(tx, "SELECT count(*) FROM artifacts")
            pending = self._index.pending()
        except StoreCorrupt as error:
            # A damaged page ends the reading here; what was found so far is still worth showing.
            findings.append(Finding("pages", Severity.DAMAGE, self._db.url, str(error)))
        try:
            sizes = self.sizes()
        except StoreError:
            sizes = {}
        return Checkup(tuple(findings), conversations, messages, artifacts, pending, sizes)

    def repair(self, watch: Progress | None = None) -> Checkup:
        """Rebuild the indexes (nothing else) and check again."""
        self._index.reset()
        done, total = 0, self._index.pending()
        while step := self._index.catch_up(_BATCH):
            done += step
            if watch is not None:
                watch(done, max(done, total))
        return self.checkup(watch=watch)

    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Bytes by table and index."""

    @abstractmethod
    def vacuum(self) -> None:
        """Give unused space back and merge the indexes. In an SQLite file no byte of what was deleted is left."""

    def backup(self, destination: str, watch: Progress | None = None) -> None:
        """Write a complete copy to a new SQLite file while the store is in use; it gets its name when it is whole."""
        wanted = Path(os.path.abspath(destination))
        if wanted.exists():
            raise InputError(_EXISTS, destination)
        begun = wanted.with_name(f".{wanted.name[:100]}.{secrets.token_hex(6)}.tmp")
        try:
            self._backup(str(begun), watch)
            _sync(begun)
            try:
                # Unlike renaming, this never takes another file's place.
                os.link(begun, wanted)
            except FileExistsError:
                raise InputError(_EXISTS, destination) from None
            except OSError:
                # Some disks know no links.
                begun.rename(wanted)
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{begun}{suffix}").unlink(missing_ok=True)

    @abstractmethod
    def _backup(self, destination: str, watch: Progress | None) -> None: ...

    @abstractmethod
    def _integrity(self) -> Iterator[Finding]:
        """Damage of the files or pages themselves."""

    @abstractmethod
    def _index_findings(self, tx: Transaction) -> Iterator[Finding]:
        """Faults of the search index."""


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Examination:
    def __init__(self, tx: Transaction, key: int, where: str) -> None:
        self._tx = tx
        self._key = key
        self._where = where

    def findings(self, deep: bool) -> Iterator[Finding]:
        row = self._tx.row("SELECT last, indexed, generation, tip FROM conversations WHERE conversation = ?", self._key)
        if row is None:
            return
        last, indexed, generation, tip = row
        yield from self._log(last)
        yield from self._chain(tip, last)
        yield from self._views(generation, last)
        if indexed > last:
            yield Finding("index", Severity.INDEX, self._where, f"indexed up to m{indexed}, the log ends at m{last}")
        if deep:
            yield from self._messages(last)
            yield from self._artifacts()

    def _log(self, last: int) -> Iterator[Finding]:
        row = self._tx.row("SELECT count(*), min(number), max(number) FROM messages WHERE conversation = ?", self._key)
        count, first, newest = row if row else (0, None, None)
        if count != last or (count and (first, newest) != (1, last)):
            yield self._damage(
                "log", f"the log should be m1 to m{last}, it has {count} messages from m{first} to m{newest}"
            )
        lost = integer(
            self._tx,
            "SELECT count(*) FROM messages m LEFT JOIN messages o ON o.conversation = m.conversation "
            "AND o.number = m.same_as AND o.body IS NOT NULL "
            "WHERE m.conversation = ? AND m.body IS NULL AND o.number IS NULL",
            self._key,
        )
        if lost:
            yield self._damage("log", f"{lost} repeated messages point to one that is not there")

    def _chain(self, tip: int, last: int) -> Iterator[Finding]:
        rows = self._tx.rows(
            "SELECT ordinal, id, parent, started, ended, end_reason, first FROM sessions WHERE conversation = ? "
            "ORDER BY ordinal",
            self._key,
        )
        if [row[0] for row in rows] != list(range(1, tip + 1)):
            yield self._damage("chain", f"the chain should have sessions 1 to {tip}, it has {[row[0] for row in rows]}")
            return
        for ordinal, id, _, _, _, _, first in rows:
            named = self._tx.row("SELECT conversation, ordinal FROM directory WHERE name = ?", name_key(unpack(id)))
            if named != (self._key, ordinal):
                yield self._damage("chain", f"the directory does not know session {ordinal}")
            if not 1 <= first <= last + 1:
                yield self._damage("chain", f"session {ordinal} begins at m{first}, outside the log")
        for parent, child in pairwise(rows):
            if child[2] != parent[1] or parent[5] != COMPRESSION or parent[4] is None or child[3] < parent[4]:
                yield self._damage("chain", f"session {child[0]} is not the continuation of session {parent[0]}")
        if rows[-1][5] == COMPRESSION:
            yield self._damage("chain", "the newest session ended by compression but has no continuation")

    def _views(self, generation: int, last: int) -> Iterator[Finding]:
        rows = self._tx.rows(
            "SELECT generation, state, below, base_last, log_last, entries FROM generations WHERE conversation = ? "
            "ORDER BY generation",
            self._key,
        )
        if [row[0] for row in rows] != list(range(generation + 1)):
            yield self._damage("view", f"generations should be 0 to {generation}, they are {[row[0] for row in rows]}")
            return
        folds = {unpack(row[0]) for row in self._tx.rows("SELECT id FROM folds WHERE conversation = ?", self._key)}
        for number, state, below, base_last, log_last, packed in rows:
            if not (0 <= base_last <= log_last <= last and 0 <= below <= state <= number):
                yield self._damage("view", f"generation {number} does not fit the log")
            try:
                entries = unpack_entries(packed, f"generation {number}")
            except (StoreCorrupt, ValueError, KeyError, TypeError) as error:
                yield self._damage("view", f"generation {number} can't be read: {error}")
                continue
            if any(entry.ref is not None and not 1 <= entry.ref <= base_last for entry in entries):
                yield self._damage("view", f"generation {number} shows a message outside the log")
            if any(entry.fold is not None and entry.fold not in folds for entry in entries):
                yield self._damage("view", f"generation {number} shows a fold that is not stored")

    def _messages(self, last: int) -> Iterator[Finding]:
        known = integer(self._tx, "SELECT count(*) FROM hashes WHERE conversation = ?", self._key)
        bodies = integer(
            self._tx, "SELECT count(*) FROM messages WHERE conversation = ? AND body IS NOT NULL", self._key
        )
        if known != bodies:
            yield self._damage("hashes", f"{bodies} messages are stored, {known} hashes")
        for start in range(1, last + 1, _BATCH):
            rows = self._tx.rows(
                "SELECT m.number, m.body, h.hash FROM messages m LEFT JOIN hashes h ON h.conversation = m.conversation "
                "AND h.number = m.number WHERE m.conversation = ? AND m.number >= ? AND m.number < ? "
                "AND m.body IS NOT NULL ORDER BY m.number",
                *(self._key, start, start + _BATCH),
            )
            for number, body, stored in rows:
                yield from self._message(number, body, stored)

    def _message(self, number: int, body: bytes, stored: bytes | None) -> Iterator[Finding]:
        try:
            derived = hash_key(hash_bytes(encode_json(decode_message(body, f"m{number}"))))
        except StoreCorrupt as error:
            yield self._damage("hashes", str(error))
            return
        if stored is None or bytes(stored) != derived:
            yield self._damage("hashes", f"m{number} does not have the hash it was stored under")

    def _artifacts(self) -> Iterator[Finding]:
        for (digest,) in self._tx.rows("SELECT hash FROM artifacts WHERE conversation = ?", self._key):
            row = self._tx.row(
                "SELECT size, body FROM artifacts WHERE conversation = ? AND hash = ?", self._key, digest
            )
            handle = hash_text(bytes(digest))
            try:
                data = unpack_body(row[1], f"artifact {handle}") if row else b""
            except StoreCorrupt as error:
                yield self._damage("hashes", str(error))
                continue
            if row is None or row[0] != len(data) or hash_bytes(data) != handle:
                yield self._damage("hashes", f"artifact {handle} is not what was stored")

    def _damage(self, check: str, text: str) -> Finding:
        return Finding(check, Severity.DAMAGE, self._where, text)


def _strays(tx: Transaction) -> Iterator[Finding]:
    """Rows that belong to no conversation."""
    for table in _OWNED:
        count = integer(
            tx,
            f"SELECT count(*) FROM {table} t WHERE NOT EXISTS "  # noqa: S608 - our own table names
            "(SELECT 1 FROM conversations c WHERE c.conversation = t.conversation)",
        )
        if count:
            kind = Severity.INDEX if table == "documents" else Severity.DAMAGE
            yield Finding("strays", kind, table, f"{count} rows belong to no conversation")
