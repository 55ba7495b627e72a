"""Keeping the search index up to date, behind a durable watermark.

Appending does not index. Each conversation remembers up to which message it is indexed; catching up reads what lies
beyond in batches, makes its words outside any transaction, and writes them together with the moved watermark. When two
processes catch up at once, the second finds the watermark moved and leaves its batch away.

Counts of messages and tools for insights are made on the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from leporello.errors import NotFound
from leporello.messages import Message, calls_of, is_result, result_id, role_of
from leporello.records import Span
from leporello.store.records import StoredMessage
from leporello.store.searchable import SEARCHABLE_VERSION, Mask, chunks_of
from leporello.store.sql.common import locate
from leporello.store.sql.database import Database, Transaction
from leporello.store.sql.log import read_spans
from leporello.store.sql.texts import millis, pack_key, unpack
from leporello.store.sql.usage import MILLIS_PER_DAY
from leporello.words import WORDS_VERSION, index_words

_BATCH_MESSAGES = 128
_BATCH_CHARACTERS = 200_000
"""A batch is one transaction, and short, because on SQLite an append waits for it."""
_LONGEST_GROUP = 64
INDEX_VERSION = f"{WORDS_VERSION}.{SEARCHABLE_VERSION}"


@dataclass(frozen=True, slots=True)
class Document:
    """One chunk as the index keeps it."""

    number: int
    chunk: int
    start: int
    created: int
    role: str
    tool: str
    text: str
    words: list[str]


@dataclass(slots=True)
class Batch:
    """What indexing a few messages writes."""

    first: int
    last: int
    documents: list[Document] = field(default_factory=list)
    days: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    """Day -> messages, characters."""
    tools: dict[tuple[int, str], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    """Day, tool -> calls, results, characters of results."""


class IndexTables(Protocol):
    """The index of one database: where documents go."""

    def add(self, tx: Transaction, key: int, documents: Sequence[Document]) -> None:
        """Write documents of a conversation."""

    def remove(self, tx: Transaction, key: int) -> None:
        """Take a conversation out."""

    def clear(self, tx: Transaction) -> None:
        """Empty the whole index."""


class _Overtaken(Exception):
    """Somebody else has indexed these messages meanwhile."""


class Indexer:
    """Moves the watermark."""

    def __init__(self, db: Database, tables: IndexTables, mask: Mask) -> None:
        self._db = db
        self._tables = tables
        self.mask = mask

    def pending(self) -> int:
        with self._db.read() as tx:
            row = tx.row("SELECT COALESCE(SUM(last - indexed), 0) FROM conversations WHERE dirty = 1")
        return int(row[0]) if row else 0

    def catch_up(self, limit: int | None = None, conversation: str | None = None) -> int:
        """Index up to `limit` messages, of one conversation if told so."""
        if self._db.read_only:
            return 0
        self._check_version()
        done = 0
        for id, start, last in self._behind(conversation):
            while start < last and (limit is None or done < limit):
                size = _BATCH_MESSAGES if limit is None else min(_BATCH_MESSAGES, limit - done)
                batch = self._prepare(id, start + 1, min(last, start + size))
                if not self._write(id, batch):
                    break
                done += batch.last - start
                start = batch.last
            if limit is not None and done >= limit:
                break
        return done

    def forget(self, tx: Transaction, key: int) -> None:
        """Take a conversation out of the index."""
        self._tables.remove(tx, key)

    def reset(self) -> None:
        """Empty the index; everything is to be indexed again."""
        with self._db.write() as tx:
            self._reset(tx)

    def _reset(self, tx: Transaction) -> None:
        self._tables.clear(tx)
        tx.run("DELETE FROM tools")
        tx.run("DELETE FROM activity")
        tx.run("UPDATE conversations SET indexed = 0, dirty = CASE WHEN last > 0 THEN 1 ELSE 0 END")
        tx.run("DELETE FROM index_state")
        tx.run("INSERT INTO index_state (name, value) VALUES ('version', ?)", INDEX_VERSION)

    def _check_version(self) -> None:
        """An index that was made by other rules is made anew: its words would not match a query's."""
        if not self.is_current():
            with self._db.write() as tx:
                if _version(tx) != INDEX_VERSION:
                    self._reset(tx)

    def is_current(self) -> bool:
        """Whether the index was made by the rules of this version."""
        with self._db.read() as tx:
            return _version(tx) == INDEX_VERSION

    def _behind(self, conversation: str | None) -> list[tuple[str, int, int]]:
        with self._db.read() as tx:
            query = (
                "SELECT f.id, c.indexed, c.last FROM conversations c "
                "JOIN sessions f ON f.conversation = c.conversation AND f.ordinal = 1 WHERE c.dirty = 1"
            )
            if conversation is None:
                rows = tx.rows(f"{query} ORDER BY c.conversation")
            else:
                rows = tx.rows(f"{query} AND c.conversation = ?", locate(tx, conversation)[0])
        return [(unpack(id), indexed, last) for id, indexed, last in rows]

    def _prepare(self, id: str, first: int, last: int) -> Batch:
        with self._db.read() as tx:
            key, _ = locate(tx, id)
            stored = read_spans(tx, key, [Span(first, last)])
            before = self._calls_before(tx, key, stored)
        return build(stored, before, self.mask)

    def _calls_before(self, tx: Transaction, key: int, stored: Sequence[StoredMessage]) -> Mapping[str, str]:
        """Tool names by call id, of the assistant message whose results the batch begins with."""
        if not stored or not is_result(stored[0].message):
            return {}
        first = stored[0].number
        for earlier in reversed(read_spans(tx, key, [Span(first - _LONGEST_GROUP, first - 1)])):
            if not is_result(earlier.message):
                return _call_names(earlier.message)
        return {}

    def _write(self, id: str, batch: Batch) -> bool:
        try:
            with self._db.write(durable=False) as tx:
                key, _ = locate(tx, id)
                self._tables.add(tx, key, batch.documents)
                _count(tx, key, batch)
                # Last, so that appends wait for this row only for a moment.
                moved = tx.run(
                    "UPDATE conversations SET indexed = ?, dirty = CASE WHEN last > ? THEN 1 ELSE 0 END "
                    "WHERE conversation = ? AND indexed = ?",
                    *(batch.last, batch.last, key, batch.first - 1),
                )
                if not moved:
                    raise _Overtaken
        except (_Overtaken, NotFound):
            return False
        return True


def _version(tx: Transaction) -> str | None:
    row = tx.row("SELECT value FROM index_state WHERE name = 'version'")
    return None if row is None else str(row[0])


def build(stored: Sequence[StoredMessage], calls: Mapping[str, str], mask: Mask) -> Batch:
    """The documents and counts of neighbouring messages, of as many as make a batch."""
    batch = Batch(stored[0].number, stored[0].number) if stored else Batch(0, 0)
    names = calls
    taken = 0
    for item in stored:
        message = item.message
        created = millis(item.created_at)
        day = created // MILLIS_PER_DAY
        role = role_of(message)
        tool = ""
        if is_result(message):
            tool = names.get(result_id(message)) or str(message.get("name") or "")
        else:
            names = _call_names(message)
        characters = _add_documents(batch, item, role, tool, mask)
        batch.last = item.number
        taken += characters
        batch.days[day][0] += 1
        batch.days[day][1] += characters
        for call in calls_of(message):
            batch.tools[day, call.name][0] += 1
        if is_result(message):
            batch.tools[day, tool][1] += 1
            batch.tools[day, tool][2] += characters
        if taken > _BATCH_CHARACTERS:
            break
    return batch


def _add_documents(batch: Batch, item: StoredMessage, role: str, tool: str, mask: Mask) -> int:
    characters = 0
    for chunk in chunks_of(item.message, mask):
        characters += len(chunk.text)
        document = Document(
            item.number,
            chunk.number,
            chunk.start,
            millis(item.created_at),
            role,
            chunk.tool or tool,
            chunk.text,
            index_words(chunk.text),
        )
        batch.documents.append(document)
    return characters


def _call_names(message: Message) -> dict[str, str]:
    return {call.id: call.name for call in calls_of(message)}


def _count(tx: Transaction, key: int, batch: Batch) -> None:
    days: list[Sequence[Any]] = [(key, day, *counts) for day, counts in sorted(batch.days.items())]
    tx.many(
        "INSERT INTO activity (conversation, day, messages, characters) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (conversation, day) DO UPDATE SET messages = activity.messages + excluded.messages, "
        "characters = activity.characters + excluded.characters",
        days,
    )
    tools: list[Sequence[Any]] = [(key, day, pack_key(tool), *counts) for (day, tool), counts in batch.tools.items()]
    tx.many(
        "INSERT INTO tools (conversation, day, tool, calls, results, result_characters) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (conversation, day, tool) DO UPDATE SET calls = tools.calls + excluded.calls, "
        "results = tools.results + excluded.results, "
        "result_characters = tools.result_characters + excluded.result_characters",
        tools,
    )


def document_row(key: int, document: Document) -> tuple[Any, ...]:
    """The columns every database keeps of a document, except its text."""
    return (
        key,
        document.number,
        document.chunk,
        document.start,
        document.created,
        pack_key(document.role),
        pack_key(document.tool),
        len(document.words),
    )
