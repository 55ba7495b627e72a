"""A conversation in memory: search over its messages, and its archive as the recovery tools read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leporello.recall.base import DEFAULT_TOKENS, Mode, RecallQuery, Window
from leporello.recall.collection import Collection
from leporello.recall.question import understand
from leporello.recall.ranking import containing, rank
from leporello.recall.vectors import Embedding, LineVectors, fused
from leporello.recall.windows import Count, choose, render
from leporello.tokens import TokenCounter


class MemoryRecall:
    """A conversation's messages, searchable."""

    def __init__(
        self,
        messages: Iterable[Mapping[str, Any]] = (),
        count: Count | None = None,
        embedding: Embedding | None = None,
    ) -> None:
        self._collection = Collection()
        self._vectors = LineVectors(embedding) if embedding is not None else None
        self._count = count or TokenCounter.for_model(None).text
        self._newest = 0
        for message in messages:
            self.add(self._newest + 1, message)

    def add(self, number: int, message: Mapping[str, Any]) -> None:
        """Take in the next message under its number in the log."""
        self._collection.add(number, message)
        self._newest = number

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first."""
        question = understand(query.text, plainly=query.mode is Mode.WORDS)
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
