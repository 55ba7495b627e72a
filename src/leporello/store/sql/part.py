"""Finding a conversation by any id of its chain, locking it, and the base class of the store's parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from leporello.errors import NotFound
from leporello.store.sql.database import Database, Row, Transaction
from leporello.store.sql.encoding import millis, name_key, shown

STORE_ITSELF = 0
"""The conversation key under which the store keeps its own state."""


@dataclass(frozen=True, slots=True)
class Locked:
    """A conversation that is locked until the transaction ends."""

    key: int
    last: int
    generation: int
    tip: int


def locate(tx: Transaction, id: str) -> tuple[int, int]:
    """The conversation key and session ordinal of any id."""
    row = tx.row("SELECT conversation, ordinal FROM directory WHERE name = ?", name_key(id))
    if row is None:
        raise unknown(id)
    return row[0], row[1]


def key_of(tx: Transaction, conversation: str | None) -> int:
    """The key of a conversation; None is the store itself."""
    return STORE_ITSELF if conversation is None else locate(tx, conversation)[0]


def lock(db: Database, tx: Transaction, id: str) -> Locked:
    """Find a conversation and keep others from changing it in this transaction.

    Always the first lock that is taken, so that no two transactions wait for each other.
    """
    return Locked(*read_conversation(tx, id, "c.conversation, c.last, c.generation, c.tip", db.for_update))


def read_conversation(tx: Transaction, id: str, columns: str, ending: str = "") -> Row:
    """Some columns of a conversation, in one query."""
    row = tx.row(
        f"SELECT {columns} FROM conversations c "  # noqa: S608 - constants
        f"WHERE c.conversation = (SELECT d.conversation FROM directory d WHERE d.name = ?){ending}",
        name_key(id),
    )
    if row is None:
        raise unknown(id)
    return row


def unknown(id: str) -> NotFound:
    """The error for an id that no session has."""
    return NotFound(
        f"No conversation or session has the id {shown(id)}. `leporello sessions list` shows what there is."
    )


class StorePart:
    """Statements about one conversation. Their first parameter is always the conversation's key."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def _row(self, conversation: str | None, sql: str, *params: Any) -> Row | None:
        with self._db.read() as tx:
            return tx.row(sql, key_of(tx, conversation), *params)

    def _rows(self, conversation: str | None, sql: str, *params: Any) -> list[Row]:
        with self._db.read() as tx:
            return tx.rows(sql, key_of(tx, conversation), *params)

    def _moment(self, at: float | None) -> int:
        """A given time, or now, as stored."""
        return self._db.now() if at is None else millis(at)

    @contextmanager
    def _locked(self, conversation: str) -> Iterator[tuple[Transaction, Locked]]:
        """A write transaction in which the conversation is locked."""
        with self._db.write() as tx:
            yield tx, lock(self._db, tx, conversation)
