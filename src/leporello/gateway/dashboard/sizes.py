"""How many tokens stretches of a log have: one number for each message, wherever a page shows it.

What a page shows is counted. The rest of a log is counted too as long as that is not much to read; of a longer one the
store only tells how many bytes each message has, and messages that were counted give tokens for each byte. Messages
never change, so all of it is remembered and only new ones are asked for.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from leporello.events import Span
from leporello.store.base import Store
from leporello.store.records import ConversationRecord
from leporello.tokens import TokenCounter

MOST_REMEMBERED = 200
MOST_READ = 2_000_000
"""Bytes of messages that are read only to be counted."""
SAMPLES = 24
USUAL_RATIO = 0.27
"""Tokens for each byte of JSON where nothing could be counted."""
UNKNOWN = -1.0


@dataclass(slots=True)
class _Known:
    bytes: array[int] = field(default_factory=lambda: array("Q"))
    """Of each message."""
    raw: array[float] = field(default_factory=lambda: array("d"))
    """Tokens of each message before calibration; `UNKNOWN` where it was not counted."""

    def uncounted(self, numbers: Iterable[int]) -> list[int]:
        """Those of the messages that were not counted yet."""
        return [number for number in numbers if number <= len(self.raw) and self.raw[number - 1] == UNKNOWN]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of one conversation's log."""

    sums: tuple[float, ...]
    """Of the first N messages."""
    estimates: tuple[int, ...]
    """How many of the first N messages are estimated."""

    def of(self, first: int, last: int) -> int:
        """Tokens of a stretch, both ends included."""
        first, last = self._within(first, last)
        return round(self.sums[last] - self.sums[first - 1]) if last >= first else 0

    def counted(self, first: int, last: int) -> bool:
        """Whether every message of a stretch was counted; else its size is an estimate."""
        first, last = self._within(first, last)
        return last < first or self.estimates[last] == self.estimates[first - 1]

    def _within(self, first: int, last: int) -> tuple[int, int]:
        return max(1, first), min(last, len(self.sums) - 1)


class SizeBook:
    """Remembers sizes; safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, float, str], _Known] = OrderedDict()
        self._lock = threading.Lock()

    def sizes(self, record: ConversationRecord, last: int, counter: TokenCounter, shown: Iterable[int] = ()) -> Sizes:
        """Sizes of the first `last` messages; those that are `shown` are counted, however many they are."""
        # A conversation that was deleted and begun again under its id is another one; so is one with another model.
        key = (record.id, record.created_at, counter.model)
        with self._lock:
            known = self._known.setdefault(key, _Known())
            self._known.move_to_end(key)
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
            self._extend(known, record.id, last)
            self._count(known, record.id, counter, known.uncounted(shown))
            unread = known.uncounted(range(1, last + 1))
            if sum(known.bytes[number - 1] for number in unread) > MOST_READ:
                unread = known.uncounted({1 + (last - 1) * n // (SAMPLES - 1) for n in range(SAMPLES)})
            self._count(known, record.id, counter, unread)
            return _sizes(known, last, counter)

    def _extend(self, known: _Known, id: str, last: int) -> None:
        missing = Span(len(known.bytes) + 1, last)
        if missing.first <= missing.last:
            found = self._store.log.sizes(id, missing)
            known.bytes.extend(found)
            known.raw.extend([UNKNOWN] * len(found))

    def _count(self, known: _Known, id: str, counter: TokenCounter, numbers: list[int]) -> None:
        for item in self._store.log.pick(id, numbers) if numbers else ():
            known.raw[item.number - 1] = counter.raw_message(item.message)


def _sizes(known: _Known, last: int, counter: TokenCounter) -> Sizes:
    pairs = list(zip(known.raw[:last], known.bytes[:last], strict=True))
    counted = [(raw, size) for raw, size in pairs if raw != UNKNOWN]
    read = sum(size for _, size in counted)
    ratio = (sum(raw for raw, _ in counted) / read if read else USUAL_RATIO) * counter.calibration.factor
    tokens = (counter.scale(raw) if raw != UNKNOWN else size * ratio for raw, size in pairs)
    return Sizes(
        tuple(accumulate(tokens, initial=0.0)),
        tuple(accumulate((raw == UNKNOWN for raw, _ in pairs), initial=0)),
    )
