"""`KeptLog`: the messages and folds of a plain-list engine, kept in a store so that recall outlives the process.

A host that hands over whole lists has no ids; the engine numbers them, and each message is kept under its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leporello.compaction.pipeline import NewFold
from leporello.compaction.view import Item
from leporello.conversation.artifacts import StoredArchive
from leporello.events import Span
from leporello.messages import Message, message_hash
from leporello.recall.base import ArchivedFold, RecallQuery, Window
from leporello.store import find_or_create
from leporello.store.base import Store
from leporello.store.records import Metadata

FOLDS_KEY = "hosted.folds"
_SESSION_KEY = "hosted.session."
_UNKNOWN: Message = {"role": "assistant", "content": "[This message was folded before the archive began.]"}


class KeptLog:
    """The log of one conversation in another host. Its sessions change their ids; the log stays the same."""

    def __init__(self, store: Store, platform: str = "hermes") -> None:
        self._store = store
        self._platform = platform
        self._session = ""
        self._conversation = ""
        self.archive: KeptArchive | None = None

    def open(self, session: str, older: str = "") -> None:
        """Go on in the log of this session, or of the one it continues; a new one otherwise."""
        known = self._store.state.get(None, _SESSION_KEY + session) or (
            self._store.state.get(None, _SESSION_KEY + older) if older else None
        )
        self._session = session
        self._use(str(known or f"{self._platform}-{session}"))

    def leave(self) -> None:
        """The conversation is over here; what comes belongs to another one."""
        self.archive = None

    def keep(self, items: Sequence[Item], *, afresh: bool = False) -> None:
        """Store the messages that are new. `afresh`: the host's list is not the one of before."""
        if self.archive is None:
            return
        fresh = {item.number: item.message for item in items if item.fold is None and _as_it_was(item)}
        if afresh or self._differs(fresh):
            self._use(self._next_name())
        last = self._store.log.count(self._conversation)
        new = sorted(number for number in fresh if number > last)
        if not new:
            return
        messages = [fresh.get(number, _UNKNOWN) for number in range(last + 1, new[-1] + 1)]
        self._store.log.append(self._conversation, messages)

    def add_folds(self, folds: Sequence[NewFold]) -> None:
        """Remember what a compaction folded."""
        if self.archive is not None and folds:
            self.archive.add(folds)

    def _use(self, conversation: str) -> None:
        find_or_create(self._store.conversations, conversation, Metadata(platform=self._platform))
        self._store.state.set(None, _SESSION_KEY + self._session, conversation)
        self._conversation = conversation
        self.archive = KeptArchive(self._store, conversation)

    def _differs(self, messages: dict[int, Message]) -> bool:
        """Whether the list was rewritten: its first or newest message is not what the log has under that number.

        Others may differ without harm: folding shortens tool outputs of the tail.
        """
        ends = {1, max(messages, default=1)} & messages.keys()
        stored = self._store.log.pick(self._conversation, ends)
        return any(message_hash(known.message) != message_hash(messages[known.number]) for known in stored)

    def _next_name(self) -> str:
        number = 2
        while self._store.conversations.exists(f"{self._platform}-{self._session}-{number}"):
            number += 1
        return f"{self._platform}-{self._session}-{number}"


def _as_it_was(item: Item) -> bool:
    return item.entry is None or item.entry.inline is None


class KeptArchive:
    """What the recall tools read of a kept log."""

    def __init__(self, store: Store, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        self._log = StoredArchive(store, conversation)

    def newest(self) -> int:
        """Number of the newest message."""
        return self._log.newest()

    def read(self, span: Span) -> Iterator[tuple[int, Message]]:
        """The messages of a span."""
        return self._log.read(span)

    def search(self, query: RecallQuery) -> list[Window]:
        """Windows around the evidence."""
        return self._log.search(query)

    def folds(self) -> Sequence[ArchivedFold]:
        """All folds, oldest first."""
        kept = self._store.state.get(self._conversation, FOLDS_KEY) or []
        return [ArchivedFold(id, Span(first, last), text, tuple(inner)) for id, first, last, text, inner in kept]

    def add(self, folds: Sequence[NewFold]) -> None:
        """Remember folds."""
        kept = self._store.state.get(self._conversation, FOLDS_KEY) or []
        new = [[f.fold.id, f.fold.span.first, f.fold.span.last, f.text, list(f.children)] for f in folds]
        self._store.state.set(self._conversation, FOLDS_KEY, [*kept, *new])
