"""Rows of sessions: their ids in the directory, their metadata and system prompts."""

from __future__ import annotations

import secrets

from leporello.errors import InputError, NotFound, StoreConflict
from leporello.messages import decode_json, hash_bytes
from leporello.redact import redact
from leporello.store.records import Metadata, SessionRecord
from leporello.store.sql.database import Row, Transaction
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
SELECT_SESSION = f"SELECT {SESSION}, p.body FROM sessions s {FIRST} {PROMPT} WHERE"  # noqa: S608 - constants


def new_id() -> str:
    """A random id."""
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
    """One session with its metadata."""
    row = tx.row(f"{SELECT_SESSION} s.conversation = ? AND s.ordinal = ?", key, ordinal)
    if row is None:
        raise NotFound("The session is gone: its conversation was deleted meanwhile.")
    return session_record(row)


def session_record(row: Row) -> SessionRecord:
    """A row of `SELECT_SESSION`; the prompt may be NULL."""
    id, first_id, ordinal, parent, started, ended, reason, first, title, platform, model, owner, custom, prompt = row
    metadata = Metadata(
        # Stores of earlier versions hold titles as they were given.
        title=redact(unpack(title)),
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
