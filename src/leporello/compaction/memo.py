"""What one compaction asks of each message several times, worked out once: its hash and its tokens.

The memos go by object identity, so they live only as long as one compaction; the message is held beside its value, so
that its identity is not given to another one meanwhile.
"""

from __future__ import annotations

from leporello.messages import Message, message_hash
from leporello.tokens import TokenCounter


class Hashes:
    """`message_hash` by message object."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, str]] = {}

    def __call__(self, message: Message) -> str:
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, message_hash(message))
        return known[1]


class Sizes:
    """Tokens by message object."""

    def __init__(self, counter: TokenCounter, hashes: Hashes) -> None:
        self._counter = counter
        self._hashes = hashes
        self._known: dict[int, tuple[Message, int]] = {}

    def __call__(self, message: Message) -> int:
        known = self._known.get(id(message))
        if known is None:
            tokens = self._counter.message(message, self._hashes(message))
            known = self._known[id(message)] = (message, tokens)
        return known[1]
