"""The stored messages of a conversation and how they are shown now, kept up with what other processes do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leporello.conversation.rendering import RenderedView
from leporello.events import Span
from leporello.ledger import ledger as snapshot
from leporello.ledger.ledger import Ledger
from leporello.messages import Message
from leporello.store import Store
from leporello.store.records import LedgerSnapshot, ModelCall, View, ViewLine


class ConversationLog:
    """The log in the store, the view of it, and the ledger of its facts."""

    def __init__(self, store: Store, id: str) -> None:
        self.store = store
        self.id = id
        self.view: View = store.views.view(id)
        """What is shown now, with ids."""
        self.ledger = self._load_ledger()
        self._sent = RenderedView()
        self.after_foreign_compaction: Callable[[], None] | None = None
        """Called when another process has compacted or taken a compaction back."""

    def sent(self, recall: bool | None) -> list[Message]:
        """The view as it is sent: calls and results that match, neighbouring user messages as one.

        `recall`: whether the model can call the recall tools; None: nobody knows yet.
        """
        return self._sent.messages(self.view, recall)

    @property
    def compactions(self) -> int:
        """How many times this conversation was compacted."""
        return self.view.compactions

    def append(self, messages: Sequence[Message]) -> list[int]:
        """Store messages durably and return their numbers."""
        numbers = self.store.log.append(self.id, list(messages))
        self._appended(numbers, messages)
        return numbers

    def record(self, answer: Message, call: ModelCall, state: Mapping[str, Any]) -> int:
        """Store an answer with its usage and the values it changes, all at once, and return its number."""
        number = self.store.log.record(self.id, answer, call, state)
        self._appended([number], [answer])
        return number

    def _appended(self, numbers: Sequence[int], messages: Sequence[Message]) -> None:
        if numbers and numbers[0] == self.ledger.last + 1:
            lines = [ViewLine(message, number) for number, message in zip(numbers, messages, strict=True)]
            self.view = replace(self.view, lines=(*self.view.lines, *lines), last=numbers[-1])
            for number, message in zip(numbers, messages, strict=True):
                self.ledger.add(number, message)
        elif numbers:
            # Another process appended in between: its messages belong to the view and the ledger first.
            self.refresh()

    def refresh(self) -> bool:
        """See what other processes did; whether it was anything. Costs one small query when it was nothing."""
        pulse = self.store.conversations.pulse(self.id)
        known = self.view
        if (pulse.generation, pulse.messages) == (known.generation, known.last):
            return False
        if pulse.generation == known.generation:
            fresh = self.store.log.span(self.id, Span(known.last + 1, pulse.messages))
            lines = [ViewLine(stored.message, stored.number) for stored in fresh]
            self.view = replace(known, lines=(*known.lines, *lines), last=pulse.messages)
        else:
            self.view = self.store.views.view(self.id)
        for stored in self.store.log.iterate(self.id, self.ledger.last + 1, self.view.last):
            self.ledger.add(stored.number, stored.message)
        if pulse.generation != known.generation and self.after_foreign_compaction is not None:
            self.after_foreign_compaction()
        return True

    def _load_ledger(self) -> Ledger:
        """The newest snapshot, brought up to date with what was appended since."""
        kept = self.store.ledgers.latest(self.id, snapshot.VERSION, self.view.last)
        ledger = snapshot.load(kept.data) if kept else Ledger(renumbers=False)
        for stored in self.store.log.iterate(self.id, ledger.last + 1, self.view.last):
            ledger.add(stored.number, stored.message)
        if kept is None and self.view.compactions and not self.store.read_only:
            # Written by an earlier version, or lost: made once, not at every opening.
            self._save(ledger)
        return ledger

    def keep_ledger(self) -> None:
        self._save(self.ledger)

    def _save(self, ledger: Ledger) -> None:
        self.store.ledgers.save(self.id, LedgerSnapshot(ledger.last, snapshot.VERSION, snapshot.save(ledger)))
