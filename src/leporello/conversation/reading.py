"""Reading back what is folded: search, and raw messages paged by tokens."""

from __future__ import annotations

import re
from typing import Any

from leporello.errors import InputError
from leporello.records import Span
from leporello.store.base import Store
from leporello.store.records import Hit, SearchQuery
from leporello.tokens import TokenCounter

_RANGE = re.compile(r"m(\d+)(?:-m?(\d+))?$")


class Reader:
    """Reads one conversation."""

    def __init__(self, store: Store, conversation: str, counter: TokenCounter) -> None:
        self._store = store
        self._conversation = conversation
        self._counter = counter

    def search(self, query: str, limit: int) -> list[Hit]:
        """The best chunks, best first."""
        return self._store.index.search(SearchQuery(query, self._conversation, limit=limit))

    def span_of(self, id: str) -> Span:
        """The messages an id stands for."""
        match = _RANGE.match(id.strip())
        if match:
            first = int(match[1])
            return Span(first, int(match[2] or first))
        if re.fullmatch(r"f\d+", id.strip()):
            return self._store.views.fold(self._conversation, id.strip()).covered
        raise InputError(f"{id!r} is not an id; use m12, m10-m20 or f3")

    def expand(self, id: str, page: int, max_tokens: int) -> dict[str, Any]:
        """One page of the raw messages behind an id; a message larger than a page stands alone on it."""
        pages: list[list[dict[str, Any]]] = [[]]
        used = 0
        for stored in self._store.log.span(self._conversation, self.span_of(id)):
            size = self._counter.message(stored.message)
            if used + size > max_tokens and pages[-1]:
                pages.append([])
                used = 0
            pages[-1].append({"id": stored.id, "message": stored.message})
            used += size
        if not 1 <= page <= len(pages):
            raise InputError(f"{id} has {len(pages)} pages, there is no page {page}")
        return {"id": id, "page": page, "pages": len(pages), "messages": pages[page - 1]}
