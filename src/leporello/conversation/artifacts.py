"""What a conversation has beside its view, and how all of it is removed.

Large outputs, results that calls wait for, pins, and the archive that recall reads. Whoever removes a conversation
removes its rows and indexes, the outputs saved beside the store, what was typed, and the bytes of it all.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from msgspec import Struct

from leporello.config import Home
from leporello.errors import InputError
from leporello.events import Span
from leporello.files import open_atomically
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, Messages, ToolCall, calls_of, role_of, text_of
from leporello.recall.base import ArchivedFold, RecallQuery, Window
from leporello.recall.memory import MemoryRecall, StaticVectors
from leporello.recall.paging import find
from leporello.recall.stored import RecallScope, StoreRecall
from leporello.redact import redact
from leporello.store import Store
from leporello.store.records import Pin, StatedValue
from leporello.tokens import TokenCounter
from leporello.tools.base import ToolResult
from leporello.tools.sandbox import is_within, real
from leporello.turns import open_group

_SAFE = lazy_regex(r"[A-Za-z0-9._-]{1,80}")


def outputs_folder(home: Home, conversation: str) -> Path:
    """The folder for saved outputs: named by the id when it is harmless, else by a digest of it."""
    if _SAFE.fullmatch(conversation) and conversation not in (".", ".."):
        return home.outputs_dir / conversation
    digest = hashlib.blake2b(conversation.encode("utf-8", "surrogatepass"), digest_size=16)
    return home.outputs_dir / digest.hexdigest()


class StoredArtifacts(Struct, frozen=True):
    """Keeps whole outputs in the conversation's store."""

    store: Store
    conversation: str

    def put(self, data: bytes) -> str:
        return self.store.artifacts.put(self.conversation, data)


_LONGEST_PATH = 4_096


class Waiting(Struct, frozen=True):
    """A call that waits for its result, and the turn it is part of."""

    call: ToolCall
    used: int = 0
    """Characters of the turn's results so far."""
    others: int = 0
    """Further calls of the turn that wait too."""

    def result(self, output: str, saved: Path) -> ToolResult:
        """The output as a result; one that comes from reading a file in the folder `saved` is never saved again."""
        path = next((text for text in _texts(self.call.parsed()) if _lies_in(text, saved)), "")
        return ToolResult(output, details={"path": path} if path else {}, exempt=bool(path))


def waiting_call(messages: Messages, call_id: str) -> Waiting:
    """The first call of the last turn with this id that has no result; without one, a call nobody knows."""
    group = open_group(messages)
    if group is None:
        return Waiting(ToolCall(call_id, "", "", 0))
    calls = calls_of(messages[group.start])
    open_calls = [calls[k] for k in group.unanswered]
    found = next((call for call in open_calls if call.id == call_id), None)
    used = sum(len(text_of(messages[index])) for index in range(group.start + 1, group.stop))
    return Waiting(found or ToolCall(call_id, "", "", 0), used, len(open_calls) - (found is not None))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _lies_in(text: str, folder: Path) -> bool:
    if not text or len(text) > _LONGEST_PATH or "\0" in text:
        return False
    return is_within(real(Path(text)), folder)


@dataclass(frozen=True, slots=True)
class Pinboard:
    """The pins of one conversation. `cap` is what all of them together may take of the window, in tokens."""

    store: Store
    conversation: str
    counter: TokenCounter
    cap: int

    def add(self, id: str, note: str = "") -> int:
        """Pin a message and return its size; one that does not fit beside the others is refused with the sizes."""
        number = self._number(id)
        size = self._size(number)
        others = sum(self._size(pin.number) for pin in self.all() if pin.number != number)
        if size + others > self.cap:
            held = f" and the other pins {others:,}" if others else ""
            raise InputError(
                f"m{number} has {size:,} tokens{held}; pins may take {self.cap:,} (5% of the window). "
                "Unpin something, or pin a shorter message."
            )
        self.store.pins.add(self.conversation, number, redact(note))
        return size

    def remove(self, id: str) -> bool:
        """Take a pin off; False when there was none."""
        return self.store.pins.remove(self.conversation, self._number(id))

    def all(self) -> list[Pin]:
        """All pins in the order of their messages."""
        return self.store.pins.all(self.conversation)

    def _number(self, id: str) -> int:
        span, _ = find(id, self.store.log.count(self.conversation), ())
        if span.first != span.last:
            raise InputError(f"{id} is more than one message: pin them one by one")
        return span.first

    def _size(self, number: int) -> int:
        return self.counter.message(self.store.log.message(self.conversation, number).message)


MOST_IN_MEMORY = 4_000


class StoredArchive:
    """The archive of one conversation in a store."""

    def __init__(
        self, store: Store, conversation: str, most_in_memory: int = MOST_IN_MEMORY, *, by_meaning: bool = False
    ) -> None:
        self._store = store
        self._conversation = conversation
        self._most_in_memory = most_in_memory
        self._by_meaning = by_meaning
        self._recall: MemoryRecall | None = None
        self._known = 0

    def newest(self) -> int:
        return self._store.log.count(self._conversation)

    def read(self, span: Span) -> Iterator[tuple[int, Message]]:
        for stored in self._store.log.iterate(self._conversation, span.first, span.last):
            yield stored.number, stored.message

    def folds(self) -> Sequence[ArchivedFold]:
        found = self._store.views.folds(self._conversation)
        return [ArchivedFold(fold.id, fold.covered, fold.text, fold.children) for fold in found]

    def values(self, span: Span) -> Sequence[StatedValue]:
        """What was stored with the last compaction: a span that somebody asks about is folded."""
        return self._store.values.all(self._conversation, span)

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence, best first."""
        newest = self.newest()
        embedding = StaticVectors.load() if self._by_meaning else None
        if newest > self._most_in_memory:
            self._recall = None
            return StoreRecall(self._store, RecallScope(self._conversation), embedding=embedding).search(query)
        if self._recall is None:
            self._recall = MemoryRecall(embedding=embedding)
            self._known = 0
        for number, message in self.read(Span(self._known + 1, newest)):
            self._recall.add(number, message)
            self._known = number
        return self._recall.search(query)


UNVACUUMED = "store.unvacuumed"
TYPED_WITHIN = 5.0
"""Seconds between the history's time of what was typed and the message's."""

_ENTRY = lazy_regex(rb"(?m)^(?=# )")
"""The beginning of an entry in the chat's history."""


def delete_conversation(store: Store, home: Home, id: str) -> None:
    """Remove a conversation with everything it has. Its bytes are overwritten by `Care.vacuum`."""
    asked = [stored for stored in store.log.iterate(id) if role_of(stored.message) == "user"]
    words = [_plain(text_of(stored.message)) for stored in asked]
    times = [stored.created_at for stored in asked]

    def is_of_it(typed: str, at: float) -> bool:
        # What was typed may have become a longer message, with a file or a paste in it, or be a command beside one.
        return any(typed in text for text in words) or any(abs(time - at) <= TYPED_WITHIN for time in times)

    store.conversations.delete(id)
    _remove_outputs(home, id)
    _forget_typed(home, is_of_it)


def delete_and_remember(store: Store, home: Home, id: str) -> None:
    """Remove a conversation now; its bytes wait for the next `overwrite_deleted`, which may take long."""
    delete_conversation(store, home, id)
    store.state.set(None, UNVACUUMED, token_hex(8))


def overwrite_deleted(store: Store) -> None:
    """Overwrite the bytes of conversations that were deleted with a note to do so; it stays until that was done."""
    note = store.state.get(None, UNVACUUMED)
    if note is None:
        return
    store.care.vacuum()
    if store.state.get(None, UNVACUUMED) == note:  # else something was deleted meanwhile
        store.state.remove(None, UNVACUUMED)


def prune_conversations(store: Store, home: Home, before: float) -> list[str]:
    """Remove ended conversations without pins whose last activity is older, bytes included; returns their ids."""
    gone = store.conversations.prune(before)
    for id in gone:
        _remove_outputs(home, id)
    if gone:
        _forget_typed(home, lambda _, at: at < before)
        store.care.vacuum()
    return gone


def _forget_typed(home: Home, goes: Callable[[str, float], bool]) -> None:
    """Take entries out of the chat's history: each is a line `# time` and the typed lines behind a `+`."""
    try:
        kept = home.history_file.read_bytes()
    except OSError:
        return
    first, *entries = _ENTRY.split(kept)
    left = [entry for entry in entries if not goes(*_typed(entry))]
    if len(left) < len(entries):
        with open_atomically(home.history_file, private=True) as file:
            file.write(first + b"".join(left))


def _typed(entry: bytes) -> tuple[str, float]:
    stamp, *lines = entry.decode("utf-8", "replace").splitlines()
    try:
        at = datetime.fromisoformat(stamp.removeprefix("# ")).timestamp()
    except ValueError:
        at = 0.0
    return _plain("\n".join(line[1:] for line in lines if line.startswith("+"))), at


def _plain(text: str) -> str:
    return " ".join(text.split())


def _remove_outputs(home: Home, id: str) -> None:
    folder = outputs_folder(home, id)
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
