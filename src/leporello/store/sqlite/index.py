"""The search index of SQLite: two contentless FTS5 tables over the documents table.

`words` holds our own words, and for each document one more that names its conversation, so that a search in one
conversation costs what that conversation costs. `fragments` holds trigrams. Neither keeps positions, which makes them a
fraction of the usual size: candidates are ranked and checked by their text anyway. Document numbers only grow, as FTS5
likes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from leporello.store.sql.database import Row, Transaction, integer, rows_in
from leporello.store.sql.encoding import decode_text, encode_text, pack_body, unpack_body
from leporello.store.sql.indexing import CANDIDATE, IndexedChunk, Place, SearchCandidate, SearchScope, holds_fragment
from leporello.store.sql.schema import Migration
from leporello.text_features.words import FTS5_TOKENIZE, Statistics, index_words

_WORDS = (
    f"CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize=\"{FTS5_TOKENIZE}\", detail=none, columnsize=0)"
)
_FRAGMENTS = (
    "CREATE VIRTUAL TABLE fragments USING fts5(text, content='', tokenize='trigram', detail=none, columnsize=0)"
)
_VOCABULARY = "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, 'row')"

INDEX = Migration(
    "0002-search",
    (
        """
CREATE TABLE documents (
    document INTEGER PRIMARY KEY,
    conversation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    chunk BIGINT NOT NULL,
    start BIGINT NOT NULL,
    created BIGINT NOT NULL,
    role TEXT NOT NULL,
    tool TEXT NOT NULL,
    length BIGINT NOT NULL,
    body {blob} NOT NULL
)""",
        "CREATE TABLE index_state (name TEXT NOT NULL PRIMARY KEY, value) WITHOUT ROWID",
        _WORDS,
        _FRAGMENTS,
        _VOCABULARY,
    ),
)

_MOST_TRIGRAMS = 12
_NEWEST = 2**62
_PAGE = 200
_FRAGMENT_PAGE = "SELECT rowid FROM fragments WHERE fragments MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
_COMMON = 200
_MOST_REMEMBERED = 10_000

_CANDIDATE = CANDIDATE.format(text="body")


class SqliteIndexTables:
    """`IndexTables` on FTS5."""

    def __init__(self) -> None:
        self._common: dict[str, int] = {}
        self._counted_at = 0

    def add(self, tx: Transaction, key: int, documents: Sequence[IndexedChunk]) -> None:
        if not documents:
            return
        # A number is never given twice: the index may still have entries of a deleted document.
        newest = integer(tx, "SELECT value FROM index_state WHERE name = 'newest'")
        numbered = list(enumerate(documents, newest + 1))
        tx.many(
            "INSERT INTO documents (document, conversation, number, chunk, start, created, role, tool, length, "
            "body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((number, *item.columns(key), pack_body(encode_text(item.text))) for number, item in numbered),
        )
        _insert(tx, [(number, key, item.text, item.words) for number, item in numbered])
        count = len(documents)
        _change_totals(tx, newest=count, documents=count, words=sum(len(document.words) for document in documents))

    def remove(self, tx: Transaction, key: int) -> None:
        # Deleting a row of a contentless table needs all its old values, which takes long. Entries without a
        # document are never found; they go when the store is vacuumed.
        match = f'"{conversation_word(key)}"'
        gone = tx.row(
            "SELECT count(*), COALESCE(SUM(d.length), 0) FROM words JOIN documents d ON d.document = words.rowid "
            "WHERE words MATCH ?",
            match,
        ) or (0, 0)
        tx.run("DELETE FROM documents WHERE document IN (SELECT rowid FROM words WHERE words MATCH ?)", match)
        _change_totals(tx, documents=-gone[0], words=-gone[1], leftovers=gone[0])

    def sweep(self, tx: Transaction) -> None:
        """Make the index anew from its documents if it holds entries of deleted ones."""
        if not integer(tx, "SELECT value FROM index_state WHERE name = 'leftovers'"):
            return
        self._clear_entries(tx)
        after = 0
        while rows := tx.rows(
            "SELECT document, conversation, body FROM documents WHERE document > ? ORDER BY document LIMIT ?",
            after,
            _PAGE,
        ):
            texts = [(number, key, decode_text(unpack_body(body, f"document {number}"))) for number, key, body in rows]
            _insert(tx, [(number, key, text, index_words(text)) for number, key, text in texts])
            after = rows[-1][0]
        tx.run("DELETE FROM index_state WHERE name = 'leftovers'")

    def lock_out_writers(self, tx: Transaction) -> None:
        """A writing transaction is the only one of the file."""

    def clear(self, tx: Transaction) -> None:
        self._clear_entries(tx)
        tx.run("DELETE FROM documents")

    @staticmethod
    def _clear_entries(tx: Transaction) -> None:
        tx.run("INSERT INTO words (words) VALUES ('delete-all')")
        tx.run("INSERT INTO fragments (fragments) VALUES ('delete-all')")

    def statistics(self, tx: Transaction, words: Sequence[str]) -> Statistics:
        documents, total = totals(tx)
        length = total / documents if documents else 0.0
        return Statistics(documents, length, self._containing(tx, words, documents))

    def _containing(self, tx: Transaction, words: Sequence[str], documents: int) -> dict[str, int]:
        """How many documents hold each word. Counting a common word takes long, and it stays as common for a while."""
        if abs(documents - self._counted_at) * 100 > documents:
            self._common, self._counted_at = {}, documents
        common = self._common
        containing = {word: common[word] for word in words if word in common}
        unknown = [word for word in words if word not in containing]
        for word, count in rows_in(tx, "SELECT term, doc FROM vocabulary WHERE term IN", unknown):
            containing[word] = count
            if count >= _COMMON and len(common) < _MOST_REMEMBERED:
                common[word] = count
        return containing

    def holding(self, tx: Transaction, words: Sequence[str], scope: SearchScope, limit: int) -> list[tuple[Place, int]]:
        match = " AND ".join(f'"{word}"' for word in words)
        if scope.key is not None:
            match = f'"{conversation_word(scope.key)}" AND {match}'
        condition, params = scope.condition(with_conversation=False)
        rows = tx.rows(
            "SELECT d.document, d.length FROM words JOIN documents d ON d.document = words.rowid "  # noqa: S608
            f"WHERE words MATCH ?{condition} ORDER BY words.rowid DESC LIMIT ?",
            *(match, *params, limit),
        )
        return [((document,), length) for document, length in rows]

    def load(self, tx: Transaction, places: Sequence[Place]) -> list[SearchCandidate]:
        rows = rows_in(tx, f"{_CANDIDATE} d.document IN", [place[0] for place in places])
        return [_candidate(row) for row in rows]

    def by_fragment(self, tx: Transaction, fragment: str, scope: SearchScope, limit: int) -> list[SearchCandidate]:
        condition, params = scope.condition()
        match = " AND ".join(f'"{trigram}"' for trigram in _trigrams(_plain(fragment)))
        found: list[SearchCandidate] = []
        before = _NEWEST
        while len(found) < limit:
            page = tx.rows(_FRAGMENT_PAGE, match, before, _PAGE)
            if not page:
                break
            before = page[-1][0]
            marks = ", ".join("?" * len(page))
            rows = tx.rows(
                f"{_CANDIDATE} d.document IN ({marks}){condition} ORDER BY d.document DESC",
                *(*(document for (document,) in page), *params),
            )
            found.extend(item for item in map(_candidate, rows) if holds_fragment(item.text, fragment))
        return found[:limit]


def conversation_word(key: int) -> str:
    """The word that names a conversation."""
    # FTS5's ascii tokeniser takes any letter beyond ASCII as part of a word; none of our words has one.
    return f"§{key}"


def _trigrams(text: str) -> list[str]:
    # A few, spread over the text, are as selective as all of them.
    step = max(1, (len(text) - 2) // _MOST_TRIGRAMS)
    found = dict.fromkeys(text[start : start + 3] for start in range(0, len(text) - 2, step))
    return [trigram.replace('"', '""') for trigram in found]


def _plain(text: str) -> str:
    """A text SQLite can bind: no half surrogate pairs, no NUL (FTS5 would stop there)."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _candidate(row: Row) -> SearchCandidate:
    return SearchCandidate.from_row(row, decode_text(unpack_body(row[-1], f"the index entry of m{row[1]}")))


def totals(tx: Transaction) -> tuple[int, int]:
    """How many documents and words the index has, as counted when they were added."""
    counted: dict[str, int] = dict(tx.rows("SELECT name, value FROM index_state WHERE name IN ('documents', 'words')"))
    return int(counted.get("documents", 0)), int(counted.get("words", 0))


def _insert(tx: Transaction, entries: Sequence[tuple[int, int, str, Sequence[str]]]) -> None:
    """Index documents: number, conversation, text and words of each."""
    tx.many(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        ((number, " ".join((conversation_word(key), *words))) for number, key, _, words in entries),
    )
    tx.many(
        "INSERT INTO fragments (rowid, text) VALUES (?, ?)", ((number, _plain(text)) for number, _, text, _ in entries)
    )


def _change_totals(tx: Transaction, **amounts: int) -> None:
    for name, amount in amounts.items():
        tx.run(
            "INSERT INTO index_state (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
            name,
            amount,
        )
