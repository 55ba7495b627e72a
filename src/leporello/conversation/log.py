"""The stored messages of a conversation, how they are shown now, and the ledger of what they say.

Opening a conversation and sending its next request need no ledger, so they don't pay for one. Loading it and keeping it
cost as much as it is long; both are done the more seldom, the longer the conversation is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from leporello.conversation.rendering import RenderedView
from leporello.errors import InputError, StoreError
from leporello.events import Span
from leporello.ledger import ledger as snapshot
from leporello.ledger.ledger import Ledger
from leporello.messages import Message, is_instruction
from leporello.store import Store
from leporello.store.records import LedgerSnapshot, ModelCall, Pulse, StatedValue, View, ViewLine


def load_ledger(store: Store, conversation: str, last: int, most: int | None = None) -> tuple[Ledger, int]:
    """The ledger after message `last`, and up to which message of it was stored; at most so many others are read."""
    kept = store.ledgers.latest(conversation, snapshot.VERSION, last)
    ledger = snapshot.load(kept.data) if kept else Ledger(renumbers=False)
    base = ledger.last
    end = last if most is None else min(last, base + most)
    for stored in store.log.iterate(conversation, base + 1, end):
        ledger.add(stored.number, stored.message)
    return ledger, base


def ledger_snapshot(ledger: Ledger) -> LedgerSnapshot:
    values = rows_of(ledger)
    return LedgerSnapshot(ledger.last, snapshot.VERSION, snapshot.save(ledger), values)


def rows_of(ledger: Ledger) -> list[StatedValue]:
    """What holds and what was replaced, in the order of the conversation."""
    asks = [ask.number for ask in ledger.asks]
    rows = []
    for said in ledger.values.rows():
        place = bisect_right(asks, said.since)
        task = asks[place - 1] if place else None
        rows.append(StatedValue(said.subject, said.value, said.since, said.text, said.replaced_by, task))
    return rows


def stated_values(store: Store, conversation: str) -> list[StatedValue]:
    """The values of a conversation up to its newest message. What is read for the first time is stored."""
    last = store.conversations.pulse(conversation).messages
    ledger, known = load_ledger(store, conversation, last)
    if known < ledger.last:
        if store.read_only:
            return rows_of(ledger)
        store.ledgers.save(conversation, ledger_snapshot(ledger))
    return store.values.all(conversation)


SHORTEST_STRIDE = 32
STRIDES_KEPT = 8
"""While a conversation stays open, a snapshot is made after so many strides."""


def stride(last: int) -> int:
    """How many messages the ledger may be behind before it is loaded: 32, or between 1/64 and 1/128 of the log."""
    return int(max(SHORTEST_STRIDE, 1 << max(0, last.bit_length() - 7)))


class StoredLedger:
    """The facts of one conversation, at most some messages behind its log."""

    def __init__(self, store: Store, id: str) -> None:
        self._store = store
        self._id = id
        self._ledger: Ledger | None = None
        self._kept = 0
        """Up to which message the newest snapshot goes that is known here."""

    def upto(self, last: int) -> Ledger:
        """The ledger after message `last`, with all that is missing read now."""
        return self._read_on(last, last)

    def appended(self, numbers: Sequence[int], messages: Sequence[Message]) -> None:
        """Take in new messages, or leave them to whoever passes the stride: that one reads a slice of what is missing.

        Of several processes that append in turn only one does so, and keeps what it read for the others.
        """
        last = numbers[-1]
        if self._ledger is not None and self._ledger.last + 1 == numbers[0]:
            for number, message in zip(numbers, messages, strict=True):
                self._ledger.add(number, message)
            self._keep_from(STRIDES_KEPT * stride(last))
        elif last // stride(last) > (numbers[0] - 1) // stride(last):
            self._ledger = None
            self._read_on(last, 2 * stride(last))
            self._keep_from(stride(last))

    def kept(self) -> None:
        """Somebody else stored it as it is now."""
        self._kept = self._ledger.last if self._ledger is not None else 0

    def close(self) -> None:
        """Keep what was read, if it is worth a snapshot; one that can't be kept now is made anew from the log."""
        if self._ledger is not None:
            with suppress(StoreError, InputError):
                self._keep_from(stride(self._ledger.last))

    def _read_on(self, last: int, most: int) -> Ledger:
        if self._ledger is None:
            self._ledger, self._kept = load_ledger(self._store, self._id, last, most)
        else:
            first = self._ledger.last + 1
            for stored in self._store.log.iterate(self._id, first, min(last, first + most - 1)):
                self._ledger.add(stored.number, stored.message)
        return self._ledger

    def _keep_from(self, least: int) -> None:
        """Make a snapshot when it says so many messages more than the last one."""
        ledger = self._ledger
        if ledger is not None and ledger.last - self._kept >= least and not self._store.read_only:
            self._store.ledgers.save(self._id, ledger_snapshot(ledger))
            self.kept()


class ConversationLog:
    """The log in the store, the view of it, and the ledger of its facts."""

    def __init__(self, store: Store, id: str) -> None:
        self.store = store
        self.id = id
        self.view: View = store.views.view(id)
        """What is shown now, with ids."""
        self._ledger = StoredLedger(store, id)
        self._sent = RenderedView()
        self._looked_at: tuple[ViewLine, ...] = ()
        self._instructions: list[Message] = []
        self.after_foreign_compaction: Callable[[], None] | None = None
        """Called when another process has compacted or taken a compaction back."""

    def sent(self, recall: bool | None) -> list[Message]:
        """The view as it is sent: calls and results that match, neighbouring user messages as one.

        `recall`: whether the model can call the recall tools; None: nobody knows yet.
        """
        return self._sent.messages(self.view, recall)

    @property
    def ledger(self) -> Ledger:
        """What the messages up to the end of the view say; whoever compacts needs it."""
        return self._ledger.upto(self.view.last)

    @property
    def instructions(self) -> Sequence[Message]:
        """The messages of the view that tell the model what it is; each line is looked at once."""
        known, lines = self._looked_at, self.view.lines
        if len(lines) < len(known) or (known and lines[len(known) - 1] is not known[-1]):
            known, self._instructions = (), []
        self._instructions += (line.message for line in lines[len(known) :] if is_instruction(line.message))
        self._looked_at = lines
        return self._instructions

    @property
    def last_fold(self) -> int | None:
        """The place of the last fold in what `sent` gave last."""
        return self._sent.last_fold

    @property
    def compactions(self) -> int:
        """How many times this conversation was compacted."""
        return self.view.compactions

    def append(self, messages: Sequence[Message], after: int | None = None) -> list[int]:
        """Store messages durably and return their numbers. `after`: the newest message that is expected to be there."""
        numbers = self.store.log.append(self.id, list(messages), after=after)
        self.appended(numbers, messages)
        return numbers

    def record(self, answer: Message, call: ModelCall, state: Mapping[str, Any]) -> int:
        """Store an answer with its usage and the values it changes, all at once, and return its number.

        Raises `StoreConflict` when another process has changed the conversation since it was last looked at.
        """
        seen = self.view.generation, self.view.last
        number = self.store.log.record(self.id, answer, call, state, seen)
        self.appended([number], [answer])
        return number

    def appended(self, numbers: Sequence[int], messages: Sequence[Message]) -> None:
        """Show messages that were just stored under these numbers."""
        if not numbers:
            return
        if numbers[0] == self.view.last + 1:
            lines = [ViewLine(message, number) for number, message in zip(numbers, messages, strict=True)]
            self.view = replace(self.view, lines=(*self.view.lines, *lines), last=numbers[-1])
        else:
            # Another process appended in between: its messages belong to the view first.
            self.refresh()
        self._ledger.appended(numbers, messages)

    def refresh(self, pulse: Pulse | None = None) -> bool:
        """See what other processes did; whether it was anything.

        Costs one small query when it was nothing, and none where the pulse was just read.
        """
        known = self.view
        if pulse is None or pulse.generation < known.generation or pulse.messages < known.last:
            pulse = self.store.conversations.pulse(self.id)
        if (pulse.generation, pulse.messages) == (known.generation, known.last):
            return False
        if pulse.generation == known.generation:
            fresh = self.store.log.span(self.id, Span(known.last + 1, pulse.messages))
            lines = [ViewLine(stored.message, stored.number) for stored in fresh]
            self.view = replace(known, lines=(*known.lines, *lines), last=pulse.messages)
        else:
            self.view = self.store.views.view(self.id)
        if pulse.generation != known.generation and self.after_foreign_compaction is not None:
            self.after_foreign_compaction()
        return True

    def ledger_kept(self) -> None:
        """A compaction has stored the ledger as it is now."""
        self._ledger.kept()

    def close(self) -> None:
        """Keep what was worked out from the messages, so that the next process need not do it again."""
        self._ledger.close()
