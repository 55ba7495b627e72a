"""Search: candidates from the database's index, ranked by the one BM25 that all databases share.

The documents that hold the most and the rarest words of the query are candidates; how often a word occurs in them, and
how long they are, decides the order. Fragments are looked up by their trigrams and checked letter by letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from leporello.store.records import Hit, SearchMode, SearchQuery
from leporello.store.sql.database import Database, Transaction
from leporello.store.sql.encoding import millis, pack, pack_key, seconds
from leporello.store.sql.indexing import Indexer
from leporello.store.sql.locking import locate
from leporello.text_features.bm25 import Statistics, rank, rarity
from leporello.text_features.words import index_words, joined_words, query_words

LEAST_FRAGMENT = 3
_CANDIDATES_PER_HIT = 4
_FEWEST_CANDIDATES = 60
_MOST_POSTINGS = 600
_POSTINGS_PER_CANDIDATE = 15
"""Looking at more documents for one query does not find better ones, only slower."""

Place: TypeAlias = tuple[int, ...]
"""Where a document stands in the index of its database."""


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

    def condition(self) -> tuple[str, list[object]]:
        """A condition on the documents table `d`, without the conversation."""
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


class Finder(Protocol):
    """How one database looks into its index."""

    def statistics(self, tx: Transaction, words: Sequence[str]) -> Statistics:
        """How many documents there are, how long, and how many hold each word."""

    def holding(self, tx: Transaction, words: Sequence[str], scope: SearchScope, limit: int) -> list[tuple[Place, int]]:
        """Documents that hold all these words, newest first, with their lengths."""

    def load(self, tx: Transaction, places: Sequence[Place]) -> list[SearchCandidate]:
        """Documents by their places."""

    def by_fragment(self, tx: Transaction, fragment: str, scope: SearchScope, limit: int) -> list[SearchCandidate]:
        """Documents that contain the fragment (case folded), newest first."""


class SqlIndex:
    """`Index` of the port."""

    def __init__(self, db: Database, indexer: Indexer, finder: Finder) -> None:
        self._db = db
        self._indexer = indexer
        self._finder = finder

    def pending(self) -> int:
        return self._indexer.pending()

    def catch_up(self, limit: int | None = None) -> int:
        return self._indexer.catch_up(limit)

    def search(self, query: SearchQuery) -> list[Hit]:
        if query.limit <= 0 or not query.text.strip():
            return []
        if query.catch_up:
            self._indexer.finish(query.conversation)
        with self._db.read() as tx:
            scope = _scope(tx, query)
            hits: list[Hit] = []
            if query.mode is not SearchMode.FRAGMENT:
                hits = self._words(tx, query, scope)
            if query.mode is SearchMode.FRAGMENT or (query.mode is SearchMode.HYBRID and _wants_fragments(query, hits)):
                seen = {(hit.conversation, hit.number, hit.start) for hit in hits}
                found = self._fragments(tx, query, scope)
                hits.extend(hit for hit in found if (hit.conversation, hit.number, hit.start) not in seen)
        return hits[: query.limit]

    def _words(self, tx: Transaction, query: SearchQuery, scope: SearchScope) -> list[Hit]:
        words = [*query_words(query.text), *joined_words(query.text)]
        if not words:
            return []
        statistics = self._finder.statistics(tx, words)
        wanted = max(_FEWEST_CANDIDATES, query.limit * _CANDIDATES_PER_HIT)
        places = best_places(tx, self._finder, statistics, scope, wanted)
        candidates = self._finder.load(tx, places) if places else []
        # Equal answers stand in a fixed order, the newest first.
        candidates.sort(key=lambda item: (-item.created, item.conversation, -item.number, item.chunk))
        ranked = rank(
            dict.fromkeys(words, 1.0),
            ((candidate, index_words(candidate.text)) for candidate in candidates),
            statistics,
            query.limit,
        )
        return [_hit(candidate, score, query) for candidate, score in ranked]

    def _fragments(self, tx: Transaction, query: SearchQuery, scope: SearchScope) -> list[Hit]:
        fragment = query.text.strip()
        if len(fragment) < LEAST_FRAGMENT:
            return []
        candidates = self._finder.by_fragment(tx, fragment, scope, query.limit * _CANDIDATES_PER_HIT)
        return [_hit(candidate, 0.0, query) for candidate in candidates]


def _wants_fragments(query: SearchQuery, hits: Sequence[Hit]) -> bool:
    """A piece of a name is looked for inside words, too; a question is not."""
    return not hits or (len(hits) < query.limit and len(query.text.split()) == 1)


def best_places(tx: Transaction, finder: Finder, statistics: Statistics, scope: SearchScope, limit: int) -> list[Place]:
    """The documents most worth ranking: those that hold the most and the rarest words of the query.

    Words are looked up from the rarest on until enough documents were seen; a word in every second document finds
    nothing that the rarer ones did not.
    """
    enough = max(_MOST_POSTINGS, limit * _POSTINGS_PER_CANDIDATE)
    words = sorted(statistics.containing, key=lambda word: (statistics.containing[word], word))
    few = limit if scope.narrow else limit // 8
    sums: dict[Place, float] = {}
    lengths: dict[Place, int] = {}
    seen = 0
    for word in words:
        if seen >= few and seen + statistics.containing[word] > enough:
            break
        weight = rarity(statistics.documents, statistics.containing[word])
        found = finder.holding(tx, [word], scope, enough)
        seen += len(found)
        for place, length in found:
            sums[place] = sums.get(place, 0.0) + weight
            lengths[place] = length
    if seen >= enough and len(words) > 1:
        # Of common words only the newest documents were seen; what holds all words is worth a look wherever it is.
        together = sum(rarity(statistics.documents, statistics.containing[word]) for word in words)
        for place, length in finder.holding(tx, words, scope, limit):
            sums[place], lengths[place] = together, length
    return sorted(sums, key=lambda place: (-sums[place], lengths[place], place))[:limit]


def holds_fragment(text: str, fragment: str) -> bool:
    """Whether a text contains a fragment, whatever the case."""
    return fragment.casefold() in text.casefold()


def _scope(tx: Transaction, query: SearchQuery) -> SearchScope:
    return SearchScope(
        key=None if query.conversation is None else locate(tx, query.conversation)[0],
        roles=tuple(map(pack_key, query.roles)),
        tools=tuple(map(pack_key, query.tools)),
        since=None if query.since is None else millis(query.since),
        until=None if query.until is None else millis(query.until),
        about=tuple(
            (column, pack(value))
            for column, value in (("platform", query.platform), ("model", query.model), ("owner", query.owner))
            if value is not None
        ),
    )


def _hit(candidate: SearchCandidate, score: float, query: SearchQuery) -> Hit:
    return Hit(
        conversation=candidate.conversation,
        number=candidate.number,
        role=candidate.role,
        tool=candidate.tool,
        created_at=seconds(candidate.created),
        score=score,
        start=candidate.start,
        text=candidate.text,
        query=query.text,
    )
