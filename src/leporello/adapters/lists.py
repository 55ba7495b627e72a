"""`FoldedLists`: shows growing message lists folded, for frameworks that hand over the whole list at each call.

What was folded once is shown the same way as long as the list only grows, so that the provider's prompt cache holds.
The list itself is not changed; every message that stays is named by its place in it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from leporello.config import Home, fold_key
from leporello.engines import make_builtin
from leporello.engines.compressor import ContextCompressor
from leporello.fingerprint import fingerprints, known_lengths
from leporello.messages import Message, Messages, message_hash
from leporello.models import resolve_limits
from leporello.policy.state import answered
from leporello.recall.base import ArchivedFold
from leporello.recall.memory import MemoryArchive
from leporello.summaries.fold import SummaryTree, ViewFold
from leporello.tokens import TokenCounter

MOST_REMEMBERED = 256
"""Lists whose compaction is remembered; beyond it the least recently used are forgotten, and compacted afresh."""


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message of the shown list and its index in the given list; None for one that a compaction wrote."""

    message: Message
    place: int | None = None
    fold: ViewFold | None = None
    """What it stands for, when it is a fold."""


@dataclass(frozen=True, slots=True)
class _Known:
    """How the first messages of a list were shown."""

    lines: tuple[ShownMessage, ...]
    length: int
    engine: ContextCompressor


class FoldedLists:
    """Folds any number of conversations for one model. Safe to use from several threads."""

    def __init__(
        self, *, window: int | None = None, model: str | None = None, engine: str = "compressor", recall: bool = False
    ) -> None:
        self._limits = resolve_limits(model, declared_window=window)
        self._counter = TokenCounter.for_model(model)
        self._name = engine
        self._recall = recall
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def show(self, messages: Messages, fixed_tokens: int = 0) -> list[ShownMessage]:
        """The list as it should be sent. `fixed_tokens`: what stands before it, such as tools."""
        with self._lock:
            chain = fingerprints(b"", messages)
            known = self._before(chain)
            lines = [
                line if line.place is None else ShownMessage(messages[line.place], line.place) for line in known.lines
            ]
            lines += [ShownMessage(messages[k], k) for k in range(known.length, len(messages))]
            engine = known.engine
            engine.tool_tokens = fixed_tokens
            if messages and engine.should_compress(engine.estimate([line.message for line in lines])):
                # A list is shown because the model is asked: whatever was tried before, it answered since.
                engine.state = answered(engine.state)
                engine.trust.key = self._key
                lines = _placed(engine, engine.compress([line.message for line in lines]), lines)
                # What came to nothing is remembered too: the engine then waits for the hard limit.
                self._remember(chain[-1], _Known(tuple(lines), len(messages), engine))
            return lines

    def archive(self, messages: Messages) -> MemoryArchive:
        """The whole list for the recall tools, with the folds that stand in its place."""
        found = MemoryArchive(messages)
        for line in self.show(messages):
            if line.place is None and line.fold is not None:
                for fold in line.fold.nodes if isinstance(line.fold, SummaryTree) else (line.fold,):
                    found.add_fold(ArchivedFold(fold.id, fold.span))
        return found

    @cached_property
    def _key(self) -> bytes | None:
        return fold_key(Home.from_environment())

    def count(self, text: str) -> int:
        """Tokens of a text, as the model counts."""
        return self._counter.text(text)

    def _before(self, chain: Sequence[bytes]) -> _Known:
        for length in known_lengths(chain, self._known):
            self._known.move_to_end(chain[length - 1])
            return self._known[chain[length - 1]]
        engine = make_builtin(self._name, self._limits, self._counter, None)
        engine.recall = self._recall
        return _Known((), 0, engine)

    def _remember(self, key: bytes, known: _Known) -> None:
        self._known[key] = known
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)


def _placed(engine: ContextCompressor, result: Sequence[Message], lines: Sequence[ShownMessage]) -> list[ShownMessage]:
    """The new list, each message with the place of the equal one it was before; of equal ones the newest stay."""
    places: dict[str, list[int | None]] = defaultdict(list)
    for line in lines:
        places[message_hash(line.message)].append(line.place)
    folds = {id(item.message): item.fold for item in engine.shown}
    shown = []
    for message in reversed(result):
        known = places[message_hash(message)]
        shown.append(ShownMessage(message, known.pop() if known else None, folds.get(id(message))))
    return shown[::-1]
