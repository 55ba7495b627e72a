"""The search index of PostgreSQL: the same words in a GIN index, and `pg_trgm` over the text for fragments.

A tsvector made from an array keeps each word once and no positions; how often a word occurs is counted when candidates
are ranked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from leporello.store.sql.database import Row, Transaction, integer
from leporello.store.sql.encoding import pack, unpack
from leporello.store.sql.indexing import CANDIDATE, IndexedChunk, Place, SearchCandidate, SearchScope, holds_fragment
from leporello.store.sql.schema import Migration, table
from leporello.text_features.words import Statistics

_DOCUMENTS = table(
    "documents",
    "number, chunk",
    "number int, chunk int, start int, created int, role text, tool text, length int, text text, words TSVECTOR",
)
INDEX = Migration(
    "0003-search",
    (
        "CREATE EXTENSION IF NOT EXISTS pg_trgm",
        _DOCUMENTS.create,
        "CREATE INDEX documents_by_word ON documents USING gin (words)",
        "CREATE INDEX documents_by_fragment ON documents USING gin (text gin_trgm_ops)",
        "CREATE TABLE index_state (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    ),
)

_MOST_COUNTED = 5000
"""A word in more documents than this is simply common; how common no longer matters."""
_TOTALS_SECONDS = 30.0
_FEW = 50_000
"""So many documents are counted; of more, the server's own estimate is good enough."""

_CANDIDATE = CANDIDATE.format(text="text")
_NEWEST_FIRST = "ORDER BY d.created DESC, d.conversation DESC, d.number DESC, d.chunk DESC"


class PostgresIndexTables:
    """`IndexTables` on GIN."""

    def __init__(self) -> None:
        self._totals: tuple[float, int, int] | None = None

    def add(self, tx: Transaction, key: int, documents: Sequence[IndexedChunk]) -> None:
        # The watermark is moved at the end; that this transaction will do so must be known to `lock_out_writers` before
        # it holds anything, or each would wait for the other.
        tx.run("LOCK TABLE conversations IN ROW SHARE MODE")
        tx.many(
            "INSERT INTO documents (conversation, number, chunk, start, created, role, tool, length, text, words) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, array_to_tsvector(?::text[])) ON CONFLICT DO NOTHING",
            [(*item.columns(key), pack(item.text), sorted(set(item.words))) for item in documents],
        )

    def remove(self, tx: Transaction, key: int) -> None:
        tx.run("DELETE FROM documents WHERE conversation = ?", key)

    def lock_out_writers(self, tx: Transaction) -> None:
        # Every other transaction that writes begins with a lock in this table; reading goes on.
        tx.run("LOCK TABLE conversations IN EXCLUSIVE MODE")

    def clear(self, tx: Transaction) -> None:
        tx.run("TRUNCATE documents")

    def statistics(self, tx: Transaction, words: Sequence[str]) -> Statistics:
        documents, total = self._collection(tx)
        containing = {}
        for word in words:
            count = integer(
                tx,
                "SELECT count(*) FROM (SELECT 1 FROM documents d WHERE d.words @@ ?::tsquery LIMIT ?) counted",
                *(_query([word]), _MOST_COUNTED),
            )
            if count:
                containing[word] = count
        return Statistics(documents, total / documents if documents else 0.0, containing)

    def holding(self, tx: Transaction, words: Sequence[str], scope: SearchScope, limit: int) -> list[tuple[Place, int]]:
        condition, params = scope.condition()
        rows = tx.rows(
            "SELECT d.conversation, d.number, d.chunk, d.length FROM documents d "  # noqa: S608 - constants
            f"WHERE d.words @@ ?::tsquery{condition} "
            f"{_NEWEST_FIRST} LIMIT ?",
            *(_query(words), *params, limit),
        )
        return [(row[:3], row[3]) for row in rows]

    def load(self, tx: Transaction, places: Sequence[Place]) -> list[SearchCandidate]:
        rows = tx.rows(
            f"{_CANDIDATE} (d.conversation, d.number, d.chunk) IN "  # noqa: S608 - constants
            "(SELECT * FROM unnest(?::bigint[], ?::bigint[], ?::bigint[]))",
            *([place[part] for place in places] for part in range(3)),
        )
        return [_candidate(row) for row in rows]

    def by_fragment(self, tx: Transaction, fragment: str, scope: SearchScope, limit: int) -> list[SearchCandidate]:
        condition, params = scope.condition()
        spellings = {fragment, fragment.lower(), fragment.upper(), fragment.capitalize()}
        patterns = [f"%{_literal(pack(spelling))}%" for spelling in sorted(spellings)]
        rows = tx.rows(
            f"{_CANDIDATE} d.text ILIKE ANY (?::text[]){condition} {_NEWEST_FIRST} LIMIT ?", *(patterns, *params, limit)
        )
        return [found for found in map(_candidate, rows) if holds_fragment(found.text, fragment)]

    def _collection(self, tx: Transaction) -> tuple[int, int]:
        """Documents and words in all; counted now and then, because ranking needs no more."""
        now = time.monotonic()
        if self._totals is None or now - self._totals[0] > _TOTALS_SECONDS:
            self._totals = (now, *_count(tx))
        return self._totals[1:]


def _count(tx: Transaction) -> tuple[int, int]:
    estimate = tx.row("SELECT reltuples FROM pg_class WHERE oid = to_regclass('documents')") or (0,)
    if estimate[0] < _FEW:
        row = tx.row("SELECT count(*), COALESCE(SUM(d.length), 0) FROM documents d") or (0, 0)
        return int(row[0]), int(row[1])
    sample = tx.row("SELECT COALESCE(avg(d.length), 0) FROM documents d TABLESAMPLE SYSTEM (1)") or (0,)
    return int(estimate[0]), int(estimate[0] * sample[0])


def _query(words: Sequence[str]) -> str:
    # Our words are letters, digits and underscores: quoting is enough.
    return " & ".join(f"'{word}'" for word in words)


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _candidate(row: Row) -> SearchCandidate:
    return SearchCandidate.from_row(row, unpack(row[-1]))
