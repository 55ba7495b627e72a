"""Search: candidates from the database's index, ranked by the one BM25 that all databases share.

The documents that hold the most and the rarest words of the query are candidates; how often a word occurs in them, and
how long they are, decides the order. Fragments are looked up by their trigrams and checked character by character.
"""

from __future__ import annotations

from collections.abc import Sequence

from leporello.store.records import Hit, SearchMode, SearchQuery
from leporello.store.sql.database import Conditions, Transaction, key_of
from leporello.store.sql.encoding import millis, seconds
from leporello.store.sql.indexing import Indexer, IndexTables, Place, SearchCandidate, SearchScope
from leporello.text_features.words import Statistics, index_words, joined_words, query_words, rank, rarity

LEAST_FRAGMENT = 3
_CANDIDATES_PER_HIT = 4
_FEWEST_CANDIDATES = 60
_MOST_POSTINGS = 600
_POSTINGS_PER_CANDIDATE = 15
"""Looking at more documents for one query does not find better ones, only slower."""

_NEWEST_SESSION = (
    "EXISTS (SELECT 1 FROM conversations c JOIN sessions s ON s.conversation = c.conversation "
    "AND s.ordinal = c.tip WHERE c.conversation = d.conversation AND s.{column} = ?)"
)


class SearchIndex(Indexer):
    """Full-text search. Indexing lags behind a durable watermark; a search catches up first."""

    def search(self, query: SearchQuery) -> list[Hit]:
        """The best chunks, best first, at most one hit for each chunk of a message."""
        if query.limit <= 0 or not query.text.strip():
            return []
        if query.catch_up:
            self.finish(query.conversation)
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
        statistics = self.tables.statistics(tx, words)
        wanted = max(_FEWEST_CANDIDATES, query.limit * _CANDIDATES_PER_HIT)
        places = best_places(tx, self.tables, statistics, scope, wanted)
        candidates = self.tables.load(tx, places) if places else []
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
        candidates = self.tables.by_fragment(tx, fragment, scope, query.limit * _CANDIDATES_PER_HIT)
        return [_hit(candidate, 0.0, query) for candidate in candidates]


def _wants_fragments(query: SearchQuery, hits: Sequence[Hit]) -> bool:
    """A piece of a name is looked for inside words, too; a question is not."""
    return not hits or (len(hits) < query.limit and len(query.text.split()) == 1)


def best_places(
    tx: Transaction, tables: IndexTables, statistics: Statistics, scope: SearchScope, limit: int
) -> list[Place]:
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
        found = tables.holding(tx, [word], scope, enough)
        seen += len(found)
        for place, length in found:
            sums[place] = sums.get(place, 0.0) + weight
            lengths[place] = length
    if seen >= enough and len(words) > 1:
        # Of common words only the newest documents were seen; what holds all words is worth a look wherever it is.
        together = sum(rarity(statistics.documents, statistics.containing[word]) for word in words)
        for place, length in tables.holding(tx, words, scope, limit):
            sums[place], lengths[place] = together, length
    return sorted(sums, key=lambda place: (-sums[place], lengths[place], place))[:limit]


def _scope(tx: Transaction, query: SearchQuery) -> SearchScope:
    found = Conditions()
    found.add_any("d.role", query.roles)
    found.add_any("d.tool", query.tools)
    found.add("d.created >= ?", query.since, millis)
    found.add("d.created <= ?", query.until, millis)
    for column in ("platform", "model", "owner"):
        found.add(_NEWEST_SESSION.format(column=column), getattr(query, column))
    return SearchScope(None if query.conversation is None else key_of(tx, query.conversation), found)


def _hit(found: SearchCandidate, score: float, query: SearchQuery) -> Hit:
    place = (found.conversation, found.number, found.role, found.tool, seconds(found.created))
    return Hit(*place, score, found.start, found.text, query.text)
