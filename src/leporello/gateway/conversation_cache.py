"""`ConversationCache`: the conversations a process holds open, up to a weight and for a time.

The store has everything; an entry only saves reading it again, so no answer depends on what is cached. One rule decides
what leaves: entries unused for longer than the idle time, and the least recently used ones while all weigh too much
together. An entry in use stays. The cache only lets go: whoever asked closes what left.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

MOST_BYTES = 448 * 1024 * 1024
OPEN_WEIGHT = 9
"""An open conversation takes about so many times the memory of its text: messages, ledger, counts."""


class CacheEntry(Protocol):
    """What can be cached."""

    @property
    def id(self) -> str:
        """The conversation's id."""

    @property
    def weight(self) -> int:
        """Roughly the bytes of memory it takes."""

    @property
    def in_use(self) -> bool:
        """Whether somebody works with it at this moment."""


E = TypeVar("E", bound=CacheEntry)


@dataclass(slots=True)
class _Slot(Generic[E]):
    entry: E
    used: float
    weight: int = 0


class ConversationCache(Generic[E]):
    """Entries by their conversation's id; safe to use from several threads."""

    def __init__(
        self,
        idle: float = math.inf,
        most_bytes: int = MOST_BYTES,
        *,
        removed: Callable[[E], None] = lambda entry: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`removed` is called with the lock held for each entry that leaves."""
        self.lock = threading.RLock()
        self.weight = 0
        self._idle = idle
        self._most_bytes = most_bytes
        self._removed = removed
        self._clock = clock
        self._slots: OrderedDict[str, _Slot[E]] = OrderedDict()
        """The least recently used first."""

    def __iter__(self) -> Iterator[E]:
        with self.lock:
            return iter([slot.entry for slot in self._slots.values()])

    def get(self, id: str) -> E | None:
        """The entry of a conversation; finding it does not count as use."""
        slot = self._slots.get(id)
        return slot.entry if slot is not None else None

    def add(self, entry: E) -> None:
        """Add an entry that is used now, in place of the one that has its id."""
        with self.lock:
            before = self.get(entry.id)
            if before is not None:
                self.remove(before)
            self._slots[entry.id] = _Slot(entry, self._clock())
            self.touch(entry)

    def touch(self, entry: E) -> None:
        """Note that an entry is used now, and count its weight again; one that left meanwhile stays away."""
        with self.lock:
            slot = self._slots.get(entry.id)
            if slot is not None and slot.entry is entry:
                weight = entry.weight
                self.weight += weight - slot.weight
                slot.weight = weight
                slot.used = self._clock()
                self._slots.move_to_end(entry.id)

    def remove(self, entry: E) -> None:
        """Let go of an entry, if it is still here."""
        with self.lock:
            slot = self._slots.get(entry.id)
            if slot is not None and slot.entry is entry:
                del self._slots[entry.id]
                self.weight -= slot.weight
                self._removed(entry)

    def evict(self, keep: E | None = None) -> list[E]:
        """Let go of what is idle or too much, except what is in use and `keep`; the caller closes what is returned."""
        gone: list[E] = []
        busy: list[E] = []
        with self.lock:
            limit = self._clock() - self._idle
            excess = self.weight - self._most_bytes
            for slot in self._slots.values():
                if slot.used >= limit and excess <= 0:
                    break
                if slot.entry.in_use:
                    busy.append(slot.entry)
                elif slot.entry is not keep:
                    excess -= slot.weight
                    gone.append(slot.entry)
            for entry in gone:
                self.remove(entry)
            for entry in busy:
                self.touch(entry)
        return gone
