"""A conversation in memory: search over its messages, and its archive as the recovery tools read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from leporello.events import Span
from leporello.messages import Message
from leporello.recall.base import DEFAULT_TOKENS, ArchivedFold, RecallMode, RecallQuery, Window
from leporello.recall.memory_index import MemoryIndex
from leporello.recall.question import understand
from leporello.recall.ranking import containing, rank
from leporello.recall.vectors import Embedding, LineVectors, fused
from leporello.recall.windows import Count, choose, render
from leporello.tokens import TokenCounter


class MemoryRecall:
    def __init__(
        self,
        messages: Iterable[Mapping[str, Any]] = (),
        count: Count | None = None,
        embedding: Embedding | None = None,
    ) -> None:
        self._collection = MemoryIndex()
        self._vectors = LineVectors(embedding) if embedding is not None else None
        self._count = count or TokenCounter.for_model(None).text
        self._newest = 0
        for message in messages:
            self.add(self._newest + 1, message)

    def add(self, number: int, message: Mapping[str, Any]) -> None:
        self._collection.add(number, message)
        self._newest = number

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first."""
        question = understand(query.text, plainly=query.mode is RecallMode.WORDS)
        scored = rank(self._collection, question)
        if not scored and not question.is_question:
            scored = containing(self._collection, query.text)
        if self._vectors is not None and question.is_question:
            scored = fused(scored, self._vectors.nearest(self._collection, query.text))
        if query.roles:
            entries, entry_of = self._collection.entries, self._collection.entry_of
            scored = [found for found in scored if entries[entry_of[found.line]].passage.role in query.roles]
        return choose(self._collection, scored, self._count, query.max_tokens, query.limit)

    def answer(self, text: str, max_tokens: int = DEFAULT_TOKENS) -> str:
        """One search as text: what a model reads."""
        return render(self.search(RecallQuery(text, max_tokens)))


class MemoryArchive:
    """Messages (numbered from 1) and folds, held in memory."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        self._folds: list[ArchivedFold] = []
        self._recall = MemoryRecall()
        for message in messages:
            self.append(message)

    def append(self, message: Message) -> int:
        """Add the next message and return its number."""
        self._messages.append(message)
        self._recall.add(len(self._messages), message)
        return len(self._messages)

    def add_fold(self, fold: ArchivedFold) -> None:
        self._folds.append(fold)

    def newest(self) -> int:
        """Number of the newest message; 0 when there is none."""
        return len(self._messages)

    def read(self, span: Span) -> Iterator[tuple[int, Message]]:
        last = min(span.last, len(self._messages))
        for number in range(max(1, span.first), last + 1):
            yield number, self._messages[number - 1]

    def folds(self) -> Sequence[ArchivedFold]:
        """All folds, oldest first."""
        return tuple(self._folds)

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first."""
        return self._recall.search(query)
