"""What the recovery tools read of a stored conversation: the log by number, the folds by id, and a search.

A conversation of ordinary length is searched line by line in memory, indexed when first asked and kept up to date. In a
very long one the store's index names the candidates and only those are looked at closely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leporello.events import Span
from leporello.messages import Message
from leporello.recall.base import ArchivedFold, RecallQuery, Window
from leporello.recall.memory import MemoryRecall
from leporello.recall.stored import RecallScope, StoreRecall
from leporello.recall.vectors import StaticVectors
from leporello.store.base import Store

MOST_IN_MEMORY = 4_000


class StoredArchive:
    """The archive of one conversation in a store."""

    def __init__(
        self, store: Store, conversation: str, most_in_memory: int = MOST_IN_MEMORY, *, by_meaning: bool = False
    ) -> None:
        self._store = store
        self._conversation = conversation
        self._most_in_memory = most_in_memory
        self._by_meaning = by_meaning
        self._recall: MemoryRecall | None = None
        self._known = 0

    def newest(self) -> int:
        """Number of the newest message."""
        return self._store.log.count(self._conversation)

    def read(self, span: Span) -> Iterator[tuple[int, Message]]:
        """The messages of a span in order."""
        for stored in self._store.log.iterate(self._conversation, span.first, span.last):
            yield stored.number, stored.message

    def folds(self) -> Sequence[ArchivedFold]:
        """All folds, oldest first."""
        found = self._store.views.folds(self._conversation)
        return [ArchivedFold(fold.id, fold.covered, fold.text, fold.children) for fold in found]

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first."""
        newest = self.newest()
        if newest > self._most_in_memory:
            self._recall = None
            return StoreRecall(self._store, RecallScope(self._conversation)).search(query)
        if self._recall is None:
            self._recall = MemoryRecall(embedding=StaticVectors.load() if self._by_meaning else None)
            self._known = 0
        for number, message in self.read(Span(self._known + 1, newest)):
            self._recall.add(number, message)
            self._known = number
        return self._recall.search(query)
