"""How many tokens stretches of a log have, without reading it.

The store knows how many bytes a message has. A few messages are counted exactly, which gives tokens for each byte of
this conversation; the rest is arithmetic. Messages never change, so sizes are remembered and only new ones are asked
for.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from dataclasses import dataclass, field

from leporello.messages import encode_json
from leporello.records import Span
from leporello.store.base import Store
from leporello.store.records import ConversationRecord
from leporello.tokens import TokenCounter

MOST_REMEMBERED = 200
SAMPLES = 24
USUAL_RATIO = 0.27
"""Tokens for each byte of JSON where nothing could be counted."""


@dataclass(slots=True)
class _Known:
    sums: array[int] = field(default_factory=lambda: array("Q", [0]))
    """Bytes of the first N messages."""
    ratio: float = 0.0
    sampled: int = 0
    """How long the log was when the ratio was taken."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Estimated tokens of one conversation's log."""

    sums: array[int]
    ratio: float

    @property
    def last(self) -> int:
        """The newest message that is accounted for."""
        return len(self.sums) - 1

    def of(self, first: int, last: int) -> int:
        """Tokens of a stretch, both ends included."""
        first, last = max(1, first), min(last, self.last)
        return round((self.sums[last] - self.sums[first - 1]) * self.ratio) if last >= first else 0


class SizeBook:
    """Remembers sizes; safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, float], _Known] = OrderedDict()
        self._lock = threading.Lock()

    def sizes(self, record: ConversationRecord, last: int, counter: TokenCounter) -> Sizes:
        """Sizes of the first `last` messages."""
        # A conversation that was deleted and begun again under its id is another one.
        key = (record.id, record.created_at)
        with self._lock:
            known = self._known.setdefault(key, _Known())
            self._known.move_to_end(key)
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
            self._extend(known, record.id, last)
            if known.sampled * 2 <= last or not known.ratio:
                known.ratio, known.sampled = self._ratio(record.id, last, counter), last
            return Sizes(known.sums[: last + 1], known.ratio)

    def _extend(self, known: _Known, id: str, last: int) -> None:
        missing = Span(len(known.sums), last)
        if missing.first > missing.last:
            return
        total = known.sums[-1]
        for size in self._store.log.sizes(id, missing):
            total += size
            known.sums.append(total)

    def _ratio(self, id: str, last: int, counter: TokenCounter) -> float:
        numbers = {1 + (last - 1) * step // max(1, SAMPLES - 1) for step in range(SAMPLES)} if last else set()
        stored = self._store.log.pick(id, numbers)
        size = sum(len(encode_json(item.message)) for item in stored)
        tokens = sum(counter.message(item.message) for item in stored)
        return tokens / size if size and tokens else USUAL_RATIO
