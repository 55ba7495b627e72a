"""The fixed yardstick of the exam: o200k tokens, whatever model the session was recorded with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache

from splintr import AnyTokenizer, Tokenizer

from leporello.messages import Message


@cache
def _tokenizer() -> AnyTokenizer:
    return Tokenizer.from_pretrained("o200k_base")


def text_tokens(text: str) -> int:
    """Tokens of a text; special marks in it are plain text."""
    return len(_tokenizer().encode_ordinary(text.encode("utf-8", "replace").decode()))


def json_tokens(messages: Iterable[Message]) -> int:
    """Tokens of a message list written as JSON, the way the standard library writes it, letters unescaped."""
    return text_tokens(json.dumps(list(messages), ensure_ascii=False))


def clip_to_tokens(text: str, limit: int) -> str:
    """The longest beginning of a text that has at most `limit` tokens."""
    clean = text.encode("utf-8", "replace").decode()
    tokens = _tokenizer().encode_ordinary(clean)
    if len(tokens) <= limit:
        return clean
    return str(_tokenizer().decode_lossy(tokens[:limit])).rstrip("�")


class RunningCount:
    """The size of a growing list, counted message by message: each message is counted once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, int]] = {}

    def of(self, messages: Iterable[Message]) -> int:
        """Tokens of the messages; those seen before cost a look-up."""
        return sum(map(self._one, messages))

    def _one(self, message: Message) -> int:
        known = self._known.get(id(message))
        # The message is held beside its count, so that its id can't be reused by another one.
        if known is None or known[0] is not message:
            known = (message, text_tokens(json.dumps(message, ensure_ascii=False)) + 1)
            self._known[id(message)] = known
        return known[1]
