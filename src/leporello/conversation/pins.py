"""Pins of a conversation: messages a person wants kept word for word, within a share of the window."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.errors import InputError
from leporello.recall.paging import find
from leporello.redact import redact
from leporello.store.base import Store
from leporello.store.records import Pin
from leporello.tokens import TokenCounter


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
