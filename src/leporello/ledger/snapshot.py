"""A ledger as bytes, so that a conversation can be taken up again without reading its history."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec
import zstandard

from leporello.ledger.facts import MessageFacts
from leporello.ledger.ledger import Action, Ask, FileFacts, Ledger, Rule
from leporello.messages import ToolCall

VERSION = 2
"""Since 2 a ledger is made of masked messages; earlier ones held secrets in clear and are made again from the log."""


@dataclass(slots=True)
class _State:
    """The ledger's fields under short names."""

    facts: dict[int, MessageFacts]
    hashes: dict[int, str]
    rules: list[Rule]
    asks: list[Ask]
    actions: list[Action]
    files: dict[str, FileFacts]
    todo: tuple[int, ToolCall] | None
    last: int
    cited: dict[str, int]
    reused: dict[str, int]
    frequency: dict[str, int]
    waiting: list[ToolCall]


def save(ledger: Ledger) -> bytes:
    """The ledger as compressed bytes of this version."""
    state = _State(
        ledger.facts,
        ledger.hashes,
        ledger.rules,
        ledger.asks,
        ledger.actions,
        ledger.files,
        ledger.todo,
        ledger.last,
        ledger.cited,
        ledger.reused,
        dict(ledger.frequency),
        ledger.waiting,
    )
    return zstandard.compress(msgspec.msgpack.encode(state))


def load(data: bytes) -> Ledger:
    """The ledger that `save` wrote."""
    state = msgspec.msgpack.decode(zstandard.decompress(data), type=_State)
    ledger = Ledger(renumbers=False)
    ledger.facts = state.facts
    ledger.hashes = state.hashes
    ledger.rules = state.rules
    ledger.asks = state.asks
    ledger.actions = state.actions
    ledger.files = state.files
    ledger.todo = state.todo
    ledger.last = state.last
    ledger.cited = state.cited
    ledger.reused = state.reused
    ledger.frequency = Counter(state.frequency)
    ledger.waiting = state.waiting
    for number in ledger.facts:
        ledger.note_repeats(number)
    return ledger
