"""The search index: what it asks of a database, and how it is kept up to date behind a durable watermark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct, field

from leporello.errors import NotFound, StoreUnavailable
from leporello.events import Span
from leporello.messages import Message, calls_of, is_result, result_id, role_of
from leporello.store.records import StoredMessage
from leporello.store.sql.database import Conditions, Database, Row, Transaction, integer, key_of
from leporello.store.sql.encoding import millis, pack_key, unpack
from leporello.store.sql.log import read_spans
from leporello.store.sql.schema import insert
from leporello.store.sql.usage import MILLIS_PER_DAY
from leporello.text_features.words import WORDS_VERSION, Statistics, index_words

if TYPE_CHECKING:
    from leporello.store.sql.chunks import SearchableChunk

Place: TypeAlias = tuple[int, ...]
"""The key of a document in the index of its database."""

CANDIDATE = (
    "SELECT f.id, d.number, d.chunk, d.start, d.created, d.role, d.tool, d.{text} FROM documents d "
    "JOIN sessions f ON f.conversation = d.conversation AND f.ordinal = 1 WHERE"
)


class Document(Struct, frozen=True):
    """A chunk of a message in the index."""

    number: int
    chunk: int
    start: int
    created: int
    role: str
    tool: str
    text: str


class IndexedChunk(Document, frozen=True):
    """On its way into the index."""

    words: list[str]

    def columns(self, key: int) -> tuple[Any, ...]:
        """The columns every database keeps of a chunk, except its text."""
        place = (key, self.number, self.chunk, self.start, self.created)
        return (*place, pack_key(self.role), pack_key(self.tool), len(self.words))


class SearchScope(Struct, frozen=True):
    """The filters of a query as conditions on the documents table `d`."""

    key: int | None
    """The conversation, if it is to be one."""
    others: Conditions

    @property
    def narrow(self) -> bool:
        """Whether a filter leaves out most documents, so that a common word may well be a rare one here."""
        return self.key is not None or bool(self.others.sql)

    def condition(self, with_conversation: bool = True) -> tuple[str, list[Any]]:
        if self.key is None or not with_conversation:
            return self.others.sql, self.others.params
        return f"{self.others.sql} AND d.conversation = ?", [*self.others.params, self.key]


class SearchCandidate(Document, frozen=True):
    """May answer a query."""

    conversation: str

    @classmethod
    def from_row(cls, row: Row, text: str) -> SearchCandidate:
        """A row of `CANDIDATE` whose text was decoded."""
        id, number, chunk, start, created, role, tool, _ = row
        return cls(number, chunk, start, created, unpack(role), unpack(tool), text, unpack(id))


class IndexTables(Protocol):
    """The index of one database."""

    def add(self, tx: Transaction, key: int, documents: Sequence[IndexedChunk]) -> None: ...

    def remove(self, tx: Transaction, key: int) -> None: ...

    def lock_out_writers(self, tx: Transaction) -> None:
        """Wait until no other transaction writes to the store, and block new ones. Must come before `clear`."""

    def clear(self, tx: Transaction) -> None: ...

    def statistics(self, tx: Transaction, words: Sequence[str]) -> Statistics:
        """How many documents there are, how long, and how many hold each word."""

    def holding(self, tx: Transaction, words: Sequence[str], scope: SearchScope, limit: int) -> list[tuple[Place, int]]:
        """Documents that hold all these words, newest first, with their lengths."""

    def load(self, tx: Transaction, places: Sequence[Place]) -> list[SearchCandidate]: ...

    def by_fragment(self, tx: Transaction, fragment: str, scope: SearchScope, limit: int) -> list[SearchCandidate]:
        """Documents that contain the fragment (case folded), newest first."""


def holds_fragment(text: str, fragment: str) -> bool:
    """Whether a text contains a fragment, whatever the case."""
    return fragment.casefold() in text.casefold()


_BATCH_MESSAGES = 128
_BATCH_CHARACTERS = 200_000
"""A batch is one transaction, and short, because on SQLite an append waits for it."""
_USUAL_GROUP, _LONGEST_GROUP = 4, 64
"""Messages before a tool result among which its call is looked for."""
_SEARCHABLE_VERSION = 5
"""Raised when the chunks of a message change, or what is masked in them: an older index is then made anew."""
INDEX_VERSION = f"{WORDS_VERSION}.{_SEARCHABLE_VERSION}"


class Batch(Struct):
    """What indexing a few messages of a conversation writes."""

    id: str
    first: int
    last: int
    characters: int = 0
    documents: list[IndexedChunk] = field(default_factory=list)
    days: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    """Day -> messages, characters."""
    tools: dict[tuple[int, str], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    """Day, tool -> calls, results, characters of results."""

    @property
    def messages(self) -> int:
        return self.last - self.first + 1


class _Overtaken(Exception):
    """Another process has indexed these messages meanwhile."""


class Indexer:
    def __init__(self, db: Database, tables: IndexTables) -> None:
        self._db = db
        self.tables = tables

    def pending(self) -> int:
        """How many messages are not indexed yet."""
        with self._db.read() as tx:
            return integer(tx, "SELECT SUM(last - indexed) FROM conversations WHERE dirty = 1")

    def catch_up(self, limit: int | None = None) -> int:
        """Index up to `limit` pending messages (all by default) and return how many.

        Conversations that another process indexes at the same time are left to it.
        """
        return self._index(limit, None, set())

    def finish(self, conversation: str | None = None) -> None:
        """Index all pending messages for a reader, of one conversation if given, also while other processes index.

        Where nothing can be written, on a full disk for one, what was indexed before is what is found.
        """
        while True:
            overtaken: set[str] = set()
            try:
                self._index(None, conversation, overtaken)
            except StoreUnavailable:
                return
            # Others indexed a part of it meanwhile, which need not have been all of it.
            if not overtaken:
                return

    def _index(self, limit: int | None, conversation: str | None, overtaken: set[str]) -> int:
        """Index what is pending. Adds to `overtaken` the conversations that another process indexed meanwhile."""
        if self._db.read_only:
            return 0
        self._check_version()
        batches = self._batches(self._pending(conversation), limit, overtaken)
        return sum(self._write(group, overtaken) for group in _grouped(batches))

    def _batches(
        self, pending: Sequence[tuple[str, int, int]], limit: int | None, overtaken: set[str]
    ) -> Iterator[Batch]:
        """What is to be indexed, in small batches, without overtaken conversations."""
        left = limit if limit is not None else sum(last - indexed for _, indexed, last in pending)
        for id, indexed, last in pending:
            while indexed < last and left > 0 and id not in overtaken:
                batch = self._prepare(id, indexed + 1, min(last, indexed + min(_BATCH_MESSAGES, left)))
                if batch is None:
                    break
                left -= batch.last - indexed
                indexed = batch.last
                yield batch

    def reset(self) -> None:
        """Empty the index; everything is to be indexed again."""
        with self._db.write() as tx:
            self.tables.lock_out_writers(tx)
            self._reset(tx)

    def _reset(self, tx: Transaction) -> None:
        self.tables.clear(tx)
        tx.run("DELETE FROM tools")
        tx.run("DELETE FROM activity")
        tx.run("UPDATE conversations SET indexed = 0, dirty = CASE WHEN last > 0 THEN 1 ELSE 0 END")
        tx.run("DELETE FROM index_state")
        tx.run("INSERT INTO index_state (name, value) VALUES ('version', ?)", INDEX_VERSION)

    def _check_version(self) -> None:
        """Empty an index that another version of the rules made: its words would not match those of a query."""
        with self._db.read() as tx:
            if index_version(tx) == INDEX_VERSION:
                return
        with self._db.write() as tx:
            self.tables.lock_out_writers(tx)
            if index_version(tx) != INDEX_VERSION:
                self._reset(tx)

    def _pending(self, conversation: str | None) -> list[tuple[str, int, int]]:
        """Conversations with pending messages: id, watermark, newest number."""
        with self._db.read() as tx:
            query = (
                "SELECT f.id, c.indexed, c.last FROM conversations c "
                "JOIN sessions f ON f.conversation = c.conversation AND f.ordinal = 1 WHERE c.dirty = 1"
            )
            if conversation is None:
                rows = tx.rows(f"{query} ORDER BY c.conversation")
            else:
                rows = tx.rows(f"{query} AND c.conversation = ?", key_of(tx, conversation))
        return [(unpack(id), indexed, last) for id, indexed, last in rows]

    def _prepare(self, id: str, first: int, last: int) -> Batch | None:
        """The next batch of a conversation; None if it was deleted meanwhile."""
        with self._db.read() as tx:
            try:
                key = key_of(tx, id)
            except NotFound:
                return None
            stored = read_spans(tx, key, [Span(first, last)])
            before = self._before(tx, key, stored)
        return build(id, stored, before) if stored else None

    def _before(self, tx: Transaction, key: int, stored: Sequence[StoredMessage]) -> Message:
        """The newest message before a batch that is no result: what it called or asked for is given in the batch."""
        if not stored:
            return {}
        last = stored[0].number - 1
        # Nearly always it is one of the last few.
        for reach in (_USUAL_GROUP, _LONGEST_GROUP - _USUAL_GROUP):
            for earlier in reversed(read_spans(tx, key, [Span(last - reach + 1, last)])):
                if not is_result(earlier.message):
                    return earlier.message
            if not is_result(stored[0].message):
                break
            last -= reach
        return {}

    def _write(self, group: Sequence[Batch], overtaken: set[str]) -> int:
        """Write batches in one transaction; if one of them comes too late, each in its own. Returns the messages.

        A process that was overtaken leaves the conversation to the other. The one that moved the watermark last goes
        on, so one of them always reaches the end.
        """
        group = [batch for batch in group if batch.id not in overtaken]
        if not group:
            return 0
        try:
            with self._db.write(durable=False) as tx:
                keys = [key_of(tx, batch.id) for batch in group]
                for key, batch in zip(keys, group, strict=True):
                    self.tables.add(tx, key, batch.documents)
                    _count(tx, key, batch)
                # Last, so that appends wait for these rows only for a moment.
                for key, batch in zip(keys, group, strict=True):
                    _move_watermark(tx, key, batch)
        except (_Overtaken, NotFound):
            if len(group) > 1:
                return sum(self._write([batch], overtaken) for batch in group)
            overtaken.add(group[0].id)
            return 0
        return sum(batch.messages for batch in group)


def _move_watermark(tx: Transaction, key: int, batch: Batch) -> None:
    moved = tx.run(
        "UPDATE conversations SET indexed = ?, dirty = CASE WHEN last > ? THEN 1 ELSE 0 END "
        "WHERE conversation = ? AND indexed = ?",
        *(batch.last, batch.last, key, batch.first - 1),
    )
    if not moved:
        raise _Overtaken


def _grouped(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Neighbouring batches that together are still a small transaction: many conversations may have a few messages."""
    group: list[Batch] = []
    for batch in batches:
        messages = sum(item.messages for item in group) + batch.messages
        characters = sum(item.characters for item in group) + batch.characters
        if group and (messages > _BATCH_MESSAGES or characters > _BATCH_CHARACTERS):
            yield group
            group = []
        group.append(batch)
    if group:
        yield group


def index_version(tx: Transaction) -> str | None:
    """Of the rules by which the store was indexed."""
    row = tx.row("SELECT value FROM index_state WHERE name = 'version'")
    return None if row is None else str(row[0])


def build(id: str, stored: Sequence[StoredMessage], before: Message) -> Batch:
    """The documents and counts of neighbouring messages, of as many as make a batch."""
    # Loaded by whoever indexes: a list of conversations comes at once, without the rules that mask secrets.
    from leporello.redact.messages import Given, given_after  # noqa: PLC0415
    from leporello.store.sql.chunks import searchable_chunks  # noqa: PLC0415

    batch = Batch(id, stored[0].number, stored[0].number)
    names = _call_names(before)
    given = given_after(before, Given.NOTHING)
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
        characters = _add_documents(batch, item, role, tool, searchable_chunks(message, given))
        given = given_after(message, given)
        batch.last = item.number
        batch.characters += characters
        batch.days[day][0] += 1
        batch.days[day][1] += characters
        for call in calls_of(message):
            batch.tools[day, call.name][0] += 1
        if is_result(message):
            batch.tools[day, tool][1] += 1
            batch.tools[day, tool][2] += characters
        if batch.characters > _BATCH_CHARACTERS:
            break
    return batch


def _add_documents(batch: Batch, item: StoredMessage, role: str, tool: str, chunks: Iterable[SearchableChunk]) -> int:
    characters = 0
    for chunk in chunks:
        characters += len(chunk.text)
        place = (item.number, chunk.number, chunk.start, millis(item.created_at))
        words = index_words(chunk.text)
        batch.documents.append(IndexedChunk(*place, role, chunk.tool or tool, chunk.text, words))
    return characters


def _call_names(message: Message) -> dict[str, str]:
    return {call.id: call.name for call in calls_of(message)}


def _count(tx: Transaction, key: int, batch: Batch) -> None:
    tx.many(
        f"{insert('activity')} ON CONFLICT (conversation, day) DO UPDATE SET "
        "messages = activity.messages + excluded.messages, "
        "characters = activity.characters + excluded.characters",
        [(key, day, *counts) for day, counts in sorted(batch.days.items())],
    )
    tx.many(
        f"{insert('tools')} ON CONFLICT (conversation, day, tool) DO UPDATE SET calls = tools.calls + excluded.calls, "
        "results = tools.results + excluded.results, "
        "result_characters = tools.result_characters + excluded.result_characters",
        [(key, day, pack_key(tool), *counts) for (day, tool), counts in batch.tools.items()],
    )
