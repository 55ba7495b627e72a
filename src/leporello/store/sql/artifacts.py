"""Artifacts: large outputs, stored whole under the hash of their bytes."""

from __future__ import annotations

from leporello.errors import NotFound
from leporello.messages import hash_bytes
from leporello.store.records import ArtifactInfo
from leporello.store.sql.encoding import hash_key, hash_text, pack, pack_body, seconds, shown, unpack, unpack_body
from leporello.store.sql.part import StorePart


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
        """The bytes of a handle."""
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
