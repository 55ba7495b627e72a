"""What search asks of a database: the tables of SQLite and PostgreSQL differ, the search above them does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from leporello.store.sql.database import Row, Transaction
from leporello.store.sql.encoding import pack_key, unpack
from leporello.text_features.bm25 import Statistics

Place: TypeAlias = tuple[int, ...]
"""The key of a document in the index of its database."""

CANDIDATE = (
    "SELECT f.id, d.number, d.chunk, d.start, d.created, d.role, d.tool, d.{text} FROM documents d "
    "JOIN sessions f ON f.conversation = d.conversation AND f.ordinal = 1 WHERE"
)


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """One chunk as the index keeps it."""

    number: int
    chunk: int
    start: int
    created: int
    role: str
    tool: str
    text: str
    words: list[str]

    def columns(self, key: int) -> tuple[Any, ...]:
        """The columns every database keeps of a chunk, except its text."""
        place = (key, self.number, self.chunk, self.start, self.created)
        return (*place, pack_key(self.role), pack_key(self.tool), len(self.words))


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The filters of a query in the form of the tables."""

    key: int | None
    roles: tuple[str, ...]
    tools: tuple[str, ...]
    since: int | None
    until: int | None
    about: tuple[tuple[str, str], ...] = ()
    """Columns of the conversation's newest session, and what they must hold."""

    @property
    def narrow(self) -> bool:
        """Whether a filter leaves out most documents, so that a common word may well be a rare one here."""
        return (
            self.key is not None
            or bool(self.roles or self.tools or self.about)
            or self.since is not None
            or self.until is not None
        )

    def condition(self, with_conversation: bool = True) -> tuple[str, list[object]]:
        """A condition on the documents table `d`."""
        parts: list[str] = []
        params: list[object] = []
        for column, values in (("d.role", self.roles), ("d.tool", self.tools)):
            if values:
                parts.append(f"{column} IN ({', '.join('?' * len(values))})")
                params.extend(values)
        for test, moment in (("d.created >= ?", self.since), ("d.created <= ?", self.until)):
            if moment is not None:
                parts.append(test)
                params.append(moment)
        if self.about:
            held = " AND ".join(f"s.{column} = ?" for column, _ in self.about)
            parts.append(
                "EXISTS (SELECT 1 FROM conversations c JOIN sessions s ON s.conversation = c.conversation "  # noqa: S608
                f"AND s.ordinal = c.tip WHERE c.conversation = d.conversation AND {held})"
            )
            params.extend(value for _, value in self.about)
        if with_conversation and self.key is not None:
            parts.append("d.conversation = ?")
            params.append(self.key)
        return "".join(f" AND {part}" for part in parts), params


@dataclass(frozen=True, slots=True)
class SearchCandidate:
    """A document that may answer a query."""

    conversation: str
    number: int
    chunk: int
    start: int
    created: int
    role: str
    tool: str
    text: str

    @classmethod
    def from_row(cls, row: Row, text: str) -> SearchCandidate:
        """A row of `CANDIDATE` whose text was decoded."""
        id, number, chunk, start, created, role, tool, _ = row
        return cls(unpack(id), number, chunk, start, created, unpack(role), unpack(tool), text)


class IndexTables(Protocol):
    """The index of one database."""

    def add(self, tx: Transaction, key: int, documents: Sequence[IndexedChunk]) -> None:
        """Write documents of a conversation."""

    def remove(self, tx: Transaction, key: int) -> None:
        """Remove a conversation."""

    def lock_out_writers(self, tx: Transaction) -> None:
        """Wait until no other transaction writes to the store, and block new ones. Must come before `clear`."""

    def clear(self, tx: Transaction) -> None:
        """Empty the whole index."""

    def statistics(self, tx: Transaction, words: Sequence[str]) -> Statistics:
        """How many documents there are, how long, and how many hold each word."""

    def holding(self, tx: Transaction, words: Sequence[str], scope: SearchScope, limit: int) -> list[tuple[Place, int]]:
        """Documents that hold all these words, newest first, with their lengths."""

    def load(self, tx: Transaction, places: Sequence[Place]) -> list[SearchCandidate]:
        """Documents by their places."""

    def by_fragment(self, tx: Transaction, fragment: str, scope: SearchScope, limit: int) -> list[SearchCandidate]:
        """Documents that contain the fragment (case folded), newest first."""


def holds_fragment(text: str, fragment: str) -> bool:
    """Whether a text contains a fragment, whatever the case."""
    return fragment.casefold() in text.casefold()
