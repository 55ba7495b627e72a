"""`MemoryArchive`: a conversation in memory as the recovery tools read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from leporello.events import Span
from leporello.messages import Message
from leporello.recall.base import FoldRecord, RecallQuery, Window
from leporello.recall.memory import MemoryRecall


class MemoryArchive:
    """Messages (numbered from 1) and folds, held in memory."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        self._folds: list[FoldRecord] = []
        self._recall = MemoryRecall()
        for message in messages:
            self.append(message)

    def append(self, message: Message) -> int:
        """Add the next message and return its number."""
        self._messages.append(message)
        self._recall.add(len(self._messages), message)
        return len(self._messages)

    def add_fold(self, fold: FoldRecord) -> None:
        """Remember a fold."""
        self._folds.append(fold)

    def newest(self) -> int:
        """Number of the newest message; 0 when there is none."""
        return len(self._messages)

    def read(self, span: Span) -> Iterator[tuple[int, Message]]:
        """The messages of a span in order, with their numbers."""
        last = min(span.last, len(self._messages))
        for number in range(max(1, span.first), last + 1):
            yield number, self._messages[number - 1]

    def folds(self) -> Sequence[FoldRecord]:
        """All folds, oldest first."""
        return tuple(self._folds)

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first."""
        return self._recall.search(query)
