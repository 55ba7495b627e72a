"""The chain of sessions of a conversation: their ids in the directory, their metadata and system prompts."""

from __future__ import annotations

import secrets

from leporello.errors import InputError, NotFound, StoreConflict
from leporello.messages import decode_json, hash_bytes
from leporello.store.records import COMPRESSION, Metadata, SessionRecord
from leporello.store.sql.database import Row, StorePart, Transaction, locate, unknown
from leporello.store.sql.encoding import (
    decode_text,
    encode_text,
    hash_key,
    name_key,
    pack,
    pack_body,
    seconds,
    shown,
    to_json,
    unpack,
    unpack_body,
)

SESSION = (
    "s.id, f.id, s.ordinal, s.parent, s.started, s.ended, s.end_reason, s.first, "
    "s.title, s.platform, s.model, s.owner, s.custom"
)
"""The columns of a session, without its prompt."""
FIRST = "JOIN sessions f ON f.conversation = s.conversation AND f.ordinal = 1"
PROMPT = "LEFT JOIN prompts p ON p.conversation = s.conversation AND p.hash = s.prompt"
IN_FORCE = (
    "(SELECT COALESCE(SUM(CASE k.kind WHEN 'compaction' THEN 1 WHEN 'undo' THEN -1 ELSE 0 END), 0) "
    "FROM generations k WHERE k.conversation = c.conversation)"
)
"""How many compactions of a conversation were not undone."""
SELECT_SESSION = f"SELECT {SESSION}, p.body FROM sessions s {FIRST} {PROMPT} WHERE"  # noqa: S608 - constants


class Sessions(StorePart):
    """The sessions that a conversation is made of: a compaction ends one and begins the next."""

    def get(self, id: str) -> SessionRecord:
        with self._db.read() as tx:
            return read_session(tx, *locate(tx, id))

    def all(self, conversation: str) -> list[SessionRecord]:
        """The chain, oldest first."""
        rows = self._rows(conversation, f"{SELECT_SESSION} s.conversation = ? ORDER BY s.ordinal")
        return [session_record(row) for row in rows]

    def children(self, session_id: str) -> list[SessionRecord]:
        """Sessions that name this one as their parent: its continuation, branches and sub-agents."""
        with self._db.read() as tx:
            rows = tx.rows(
                f"{SELECT_SESSION} s.parent_name = ? ORDER BY s.started, s.conversation, s.ordinal",
                name_key(session_id),
            )
        return [session_record(row) for row in rows]

    def get_compression_tip(self, id: str) -> str:
        """The newest continuation of a session.

        Follows children only where the parent ended by compression and the child, of the same conversation, started at
        or after that end.
        """
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
                    *(key, ordinal, name_key(unpack(row[0])), row[1]),
                )
                if child is None:
                    break
                row, ordinal = child[:3], child[3]
            return unpack(row[0])


def new_id() -> str:
    return secrets.token_hex(8)


def register_id(tx: Transaction, id: str, key: int, ordinal: int) -> None:
    """Give an id to a session. Raises `StoreConflict` when it is taken."""
    registered = tx.run(
        "INSERT INTO directory (name, conversation, ordinal) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        *(name_key(id), key, ordinal),
    )
    if not registered:
        raise StoreConflict(f"The id {shown(id)} is taken. Open that conversation, or choose another id.")


def insert_session(tx: Transaction, key: int, ordinal: int, id: str, parent: str | None, now: int, first: int) -> None:
    """A session row without metadata."""
    tx.run(
        "INSERT INTO sessions (conversation, ordinal, id, parent, parent_name, started, first, title, platform, model, "
        "owner, custom) VALUES (?, ?, ?, ?, ?, ?, ?, '', '', '', '', ?)",
        *(key, ordinal, pack(id)),
        *((None, None) if parent is None else (pack(parent), name_key(parent))),
        *(now, first, b"{}"),
    )


def write_metadata(tx: Transaction, key: int, ordinal: int, metadata: Metadata) -> None:
    """Set the metadata of a session. Secrets in its title are masked: titles stand in lists and on pages."""
    # Loaded by whoever writes.
    from leporello.redact import redact  # noqa: PLC0415

    texts = (metadata.title, metadata.platform, metadata.model, metadata.owner)
    if not all(isinstance(text, str) for text in texts):
        raise InputError("Title, platform, model and owner of a conversation are texts.")
    texts = (redact(metadata.title), *texts[1:])
    tx.run(
        "UPDATE sessions SET title = ?, platform = ?, model = ?, owner = ?, custom = ?, prompt = ? "
        "WHERE conversation = ? AND ordinal = ?",
        *map(pack, texts),
        to_json(dict(metadata.custom), "Custom metadata"),
        *(write_prompt(tx, key, metadata.system_prompt), key, ordinal),
    )


def write_prompt(tx: Transaction, key: int, prompt: str | None) -> bytes | None:
    """Keep a system prompt once per conversation; returns its hash."""
    if prompt is None:
        return None
    data = encode_text(prompt)
    digest = hash_key(hash_bytes(data))
    tx.run(
        "INSERT INTO prompts (conversation, hash, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        *(key, digest, pack_body(data)),
    )
    return digest


def read_session(tx: Transaction, key: int, ordinal: int) -> SessionRecord:
    row = tx.row(f"{SELECT_SESSION} s.conversation = ? AND s.ordinal = ?", key, ordinal)
    if row is None:
        raise NotFound("The session is gone: its conversation was deleted meanwhile.")
    return session_record(row)


def session_record(row: Row) -> SessionRecord:
    """A row of `SELECT_SESSION`; the prompt may be NULL."""
    id, first_id, ordinal, parent, started, ended, reason, first, title, platform, model, owner, custom, prompt = row
    metadata = Metadata(
        title=unpack(title),
        platform=unpack(platform),
        model=unpack(model),
        owner=unpack(owner),
        system_prompt=None if prompt is None else decode_text(unpack_body(prompt, "a prompt")),
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
