"""The log: messages are appended, never changed, and read by number.

Preparing a message (JSON, hash, compression) happens before the transaction begins. The transaction itself is a handful
of statements whose cost does not depend on how long the conversation is. A message that the conversation already has is
a row that points to the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from leporello.errors import InputError, NotFound, StoreConflict, StoreCorrupt
from leporello.events import Span, runs
from leporello.messages import Message, Messages, decode_json, hash_bytes
from leporello.store.records import ModelCall, StoredMessage
from leporello.store.sql.database import (
    KEY_OF_NAME,
    Locked,
    Row,
    StorePart,
    Transaction,
    key_of,
    read_conversation,
    rows_in,
    unknown,
)
from leporello.store.sql.encoding import (
    HEADER,
    LARGEST_NUMBER,
    body_size,
    hash_key,
    millis,
    name_key,
    pack_body,
    seconds,
    shown,
    to_json,
    unpack_body,
)
from leporello.store.sql.schema import insert
from leporello.store.sql.state import pack_state, write_state
from leporello.store.sql.usage import add_usage

_BATCH = 500
_SHORT_SPAN = 8

_CLAIM = (
    "UPDATE conversations SET last = last + ?, updated = CASE WHEN updated < ? THEN ? ELSE updated END, dirty = 1 "  # noqa: S608
    f"WHERE conversation = {KEY_OF_NAME} RETURNING conversation, last, generation, tip"
)
_ROWS = 50  # so many rows are written by one statement
_BODY = "CASE WHEN m.body IS NULL THEN o.body ELSE m.body END"
_FROM = (
    "FROM messages m LEFT JOIN messages o ON o.conversation = m.conversation AND o.number = m.same_as "
    "WHERE m.conversation = ? AND "
)
_SELECT = f"SELECT m.number, m.created, {_BODY} {_FROM}"
_SPAN = f"{_SELECT}m.number >= ? AND m.number <= ? ORDER BY m.number"
_SIZES = f"SELECT length({_BODY}), substr({_BODY}, 1, ?) {_FROM}m.number >= ? AND m.number <= ? ORDER BY m.number"


class Prepared(Struct, frozen=True):
    hash: bytes
    body: bytes


class Log(StorePart):
    """The messages of a conversation: they are only ever added."""

    def append(
        self, conversation: str, messages: Messages, at: Sequence[float] | None = None, after: int | None = None
    ) -> list[int]:
        """Store messages durably, in order, and return their numbers.

        `at` gives their times (now by default). `after` is the expected number of the newest message so far: raises
        `StoreConflict` when somebody else appended since. Never waits for a compaction.
        """
        prepared = [prepare_message(message, index) for index, message in enumerate(messages)]
        if at is not None and len(at) != len(prepared):
            raise InputError(f"{len(prepared)} messages were given {len(at)} times.")
        times = [self._db.now()] * len(prepared) if at is None else [millis(moment) for moment in at]
        with self._db.write() as tx:
            last = append_prepared(tx, conversation, prepared, times, after).last
        return list(range(last - len(prepared) + 1, last + 1))

    def record(
        self,
        conversation: str,
        answer: Message,
        call: ModelCall,
        state: Mapping[str, Any],
        seen: tuple[int, int] | None = None,
    ) -> int:
        """Store an answer of the model, the usage of its call, and values of the state, all or nothing.

        A value that is None is removed. `seen` is the generation and the newest message of the view that was answered:
        raises `StoreConflict` when the conversation is not there any more. Returns the number of the answer.
        """
        prepared = [prepare_message(answer, 0)]
        values = pack_state(state)
        moment = self._moment(call.at)
        with self._db.write() as tx:
            locked = append_prepared(tx, conversation, prepared, [self._db.now()])
            if seen is not None and seen != (locked.generation, locked.last - 1):
                raise StoreConflict(f"{shown(conversation)} has changed since the request was made. Read what is new.")
            add_usage(tx, locked, call, moment)
            write_state(tx, locked.key, values)
        return locked.last

    def message(self, conversation: str, number: int) -> StoredMessage:
        """One message. Raises `NotFound` when the log has no such number."""
        found = self.pick(conversation, [number])
        if not found:
            raise NotFound(f"{shown(conversation)} has no message m{number}.")
        return found[0]

    def span(self, conversation: str, span: Span) -> list[StoredMessage]:
        """Messages of a span; numbers beyond the log's end are left out."""
        first, last = max(span.first, 0), min(span.last, LARGEST_NUMBER)
        # One statement of always the same text, which databases keep prepared: so a process reads what others appended.
        return list(map(_stored, self._rows(conversation, _SPAN, first, last)))

    def pick(self, conversation: str, numbers: Iterable[int]) -> list[StoredMessage]:
        """Messages of some numbers, in the order of the log; numbers that the log does not have are left out."""
        wanted = runs(number for number in numbers if 0 < number < LARGEST_NUMBER)
        with self._db.read() as tx:
            return read_spans(tx, key_of(tx, conversation), wanted)

    def iterate(self, conversation: str, first: int = 1, last: int | None = None) -> Iterator[StoredMessage]:
        """All messages in order, read in batches."""
        end = self.count(conversation) if last is None else last
        for start in range(max(1, first), end + 1, _BATCH):
            batch = self.span(conversation, Span(start, min(start + _BATCH - 1, end)))
            if not batch:
                return
            yield from batch

    def sizes(self, conversation: str, span: Span) -> list[int]:
        """Bytes of the messages of a span as JSON, in order, without reading them."""
        first, last = max(span.first, 0), min(span.last, LARGEST_NUMBER)
        with self._db.read() as tx:
            rows = tx.rows(_SIZES, HEADER, key_of(tx, conversation), first, last)
        return [body_size(bytes(header), length) for length, header in rows]

    def count(self, conversation: str) -> int:
        """How many messages; also the newest number."""
        with self._db.read() as tx:
            count: int = read_conversation(tx, conversation, "c.last")[0]
        return count

    def find(self, conversation: str, message: Message) -> int | None:
        """The first number under which exactly this message is stored."""
        digest = prepare_message(message, 0).hash
        row = self._row(conversation, "SELECT number FROM hashes WHERE conversation = ? AND hash = ?", digest)
        return None if row is None else row[0]


def read_spans(tx: Transaction, key: int, spans: Sequence[Span]) -> list[StoredMessage]:
    """Messages of some spans of a conversation, in the order of the log.

    A long span is one range of the index. Short ones are looked up together, message by message: databases would read
    everything in between to answer several ranges at once.
    """
    rows: list[Row] = []
    single: list[int] = []
    for span in spans:
        first, last = max(span.first, 0), min(span.last, LARGEST_NUMBER)
        if last - first < _SHORT_SPAN:
            single.extend(range(first, last + 1))
        else:
            rows.extend(tx.rows(f"{_SELECT}m.number >= ? AND m.number <= ?", key, first, last))
    rows.extend(rows_in(tx, f"{_SELECT}m.number IN", single, key))
    rows.sort(key=lambda row: row[0])
    return list(map(_stored, rows))


def _stored(row: Row) -> StoredMessage:
    number, at, body = row
    return StoredMessage(number, decode_message(body, f"m{number}"), seconds(at))


def decode_message(body: bytes | None, where: str) -> Message:
    if body is None:
        raise StoreCorrupt(f"The message {where} points to one that is not there. Restore it from a backup.")
    try:
        message = decode_json(unpack_body(body, where))
    except ValueError as error:
        raise StoreCorrupt(f"The stored bytes of {where} are damaged ({error}). Restore them from a backup.") from error
    if not isinstance(message, dict):
        raise StoreCorrupt(f"The stored bytes of {where} are not a message. Restore them from a backup.")
    return message


def append_prepared(
    tx: Transaction, conversation: str, prepared: Sequence[Prepared], times: Sequence[int], after: int | None = None
) -> Locked:
    """Add messages to a log inside the caller's transaction; the conversation, locked by it, as it is then."""
    newest = max(times, default=0)
    claimed = tx.row(_CLAIM, len(prepared), newest, newest, name_key(conversation))
    if claimed is None:
        raise unknown(conversation)
    locked = Locked(*claimed)
    first = locked.last - len(prepared) + 1
    if after is not None and first - 1 != after:
        raise StoreConflict(
            f"{shown(conversation)} was expected to end at m{after}, but somebody appended up to m{first - 1}. "
            "Read what is new and append again."
        )
    if prepared:
        _insert(tx, locked.key, first, prepared, times)
    return locked


def prepare_message(message: Any, index: int) -> Prepared:
    """A message as it is stored; `InputError` for what can't be."""
    if not isinstance(message, dict):
        raise InputError(f"A message is a dict, not {type(message).__name__}.", f"message {index}")
    data = to_json(message, f"Message {index}")
    return Prepared(hash_key(hash_bytes(data)), pack_body(data))


def _insert(tx: Transaction, key: int, first: int, prepared: Sequence[Prepared], times: Sequence[int]) -> None:
    numbers = range(first, first + len(prepared))
    firsts: dict[bytes, int] = {}
    for number, item in zip(numbers, prepared, strict=True):
        firsts.setdefault(item.hash, number)
    known = _register(tx, key, firsts)
    rows: list[tuple[int, int, int, int | None, bytes | None]] = []
    for number, item, created in zip(numbers, prepared, times, strict=True):
        same_as = known.get(item.hash, firsts[item.hash])
        own = same_as == number
        rows.append((key, number, created, None if own else same_as, item.body if own else None))
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        tx.run(insert("messages", rows=len(some)), *chain.from_iterable(some))


def _register(tx: Transaction, key: int, firsts: Mapping[bytes, int]) -> dict[bytes, int]:
    """Write down under which number a message is stored; the numbers of those that are stored already."""
    fresh = [(key, digest, number) for digest, number in firsts.items()]
    written: set[bytes] = set()
    for start in range(0, len(fresh), _ROWS):
        some = fresh[start : start + _ROWS]
        sql = insert("hashes", " ON CONFLICT DO NOTHING RETURNING hash", len(some))
        written.update(bytes(digest) for (digest,) in tx.rows(sql, *chain.from_iterable(some)))
    others = [digest for digest in firsts if digest not in written]
    stored = rows_in(tx, "SELECT hash, number FROM hashes WHERE conversation = ? AND hash IN", others, key)
    return {bytes(digest): number for digest, number in stored}
