"""`TokenCounter`: the one place that says how many tokens something is.

Request = system + messages + tool schemas. Counts of messages are remembered by content hash, so a turn costs only what
is new. Real usage corrects the estimate through `learn`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leporello.messages import Message, Part, PartKind, calls_of, encode_json, hash_bytes, parts_of
from leporello.tokens.calibration import Calibration
from leporello.tokens.families import Family, family_of
from leporello.tokens.images import image_tokens
from leporello.tokens.kinds import kind_of
from leporello.tokens.vocabulary import count

MEMO_ENTRIES = 200_000
OPAQUE_TEXT = 1_024
"""A longer string without a single blank inside an unknown part is data (base64), not words."""

AUDIO_BYTES_PER_TOKEN = 1_600
FILE_BYTES_PER_TOKEN = 40


class TokenCounter:
    """Counts for one model. Not bound to a conversation: counters of one model may be shared."""

    def __init__(self, family: Family, model: str = "") -> None:
        self.model = model
        self.family = family
        self.calibration = Calibration()
        self._memo: dict[str, float] = {}

    @classmethod
    def for_model(cls, name: str | None) -> TokenCounter:
        """The counter of a model by any of its names; None counts plainly with o200k."""
        return cls(family_of(name), name or "")

    @property
    def exact(self) -> bool:
        """Whether text is counted with the model's own vocabulary."""
        return self.family.exact

    def text(self, text: str) -> int:
        """Tokens of a bare text."""
        return self._scaled(self._raw_text(text))

    def message(self, message: Mapping[str, Any]) -> int:
        """Tokens of one message with its framing."""
        return self._scaled(self._raw_message(message))

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Tokens of several messages: the sum of `message` over them."""
        return sum(self.message(message) for message in messages)

    def tools(self, schemas: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of tool schemas."""
        return self._scaled(self._raw_tools(schemas))

    def request(
        self, messages: Iterable[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = (), system: str = ""
    ) -> int:
        """Tokens of a whole request."""
        total = self.messages(messages) + self.tools(tools) + self._scaled(self.family.framing.request)
        if system:
            total += self.message({"role": "system", "content": system})
        return total

    def learn(self, estimated: int, actual: int) -> bool:
        """Take one real count beside what this counter had said; later counts are corrected by it."""
        return self.calibration.learn(estimated / self.calibration.factor, actual)

    def _scaled(self, raw: float) -> int:
        return math.ceil(raw * self.calibration.factor)

    def _raw_text(self, text: str) -> float:
        tokens = count(self.family.vocabulary, text)
        if not self.family.ratios:
            return tokens
        return tokens * self.family.ratios[kind_of(text)]

    def _raw_message(self, message: Mapping[str, Any]) -> float:
        key = _key(message)
        known = self._memo.get(key)
        if known is None:
            known = self._count_message(message)
            if len(self._memo) >= MEMO_ENTRIES:
                # Oldest first: dicts keep insertion order, and old messages are the ones that were folded away.
                for old in list(self._memo)[: MEMO_ENTRIES // 10]:
                    del self._memo[old]
            self._memo[key] = known
        return known

    def _count_message(self, message: Mapping[str, Any]) -> float:
        framing = self.family.framing
        total: float = framing.message
        for part in parts_of(message):
            total += self._part(part)
        for call in calls_of(message):
            total += framing.call + self._raw_text(call.name) + self._raw_text(call.arguments)
        name = message.get("name")
        if isinstance(name, str):
            total += 1 + self._raw_text(name)
        reasoning = message.get("reasoning_content")
        if isinstance(reasoning, str):
            total += self._raw_text(reasoning)
        return total

    def _part(self, part: Part) -> float:
        if part.kind in (PartKind.TEXT, PartKind.THINKING):
            return self._raw_text(part.text)
        if part.kind is PartKind.IMAGE:
            return image_tokens(part.raw, self.family.images)
        if part.kind is PartKind.AUDIO:
            return max(1, _opaque_bytes(part.raw) // AUDIO_BYTES_PER_TOKEN)
        if part.kind is PartKind.FILE:
            return self._raw_text(_readable(part.raw)) + _opaque_bytes(part.raw) // FILE_BYTES_PER_TOKEN
        return self._raw_text(_readable(part.raw)) + image_share(part.raw, self.family)

    def _raw_tools(self, schemas: Sequence[Mapping[str, Any]]) -> float:
        if not schemas:
            return 0.0
        framing = self.family.framing
        return framing.tools + sum(framing.tool + self._raw_message_json(schema) for schema in schemas)

    def _raw_message_json(self, value: Mapping[str, Any]) -> float:
        data = encode_json(value)
        key = "json:" + hash_bytes(data)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = self._raw_text(data.decode())
        return known


def image_share(raw: Any, family: Family) -> float:
    """Images that stand inside an unknown part (a tool result with a screenshot)."""
    inner = raw.get("content") if isinstance(raw, Mapping) else None
    if not isinstance(inner, list):
        return 0.0
    wrapped: Message = {"role": "tool", "content": inner}
    return sum(image_tokens(part.raw, family.images) for part in parts_of(wrapped) if part.kind is PartKind.IMAGE)


def _key(message: Mapping[str, Any]) -> str:
    try:
        return hash_bytes(encode_json(message))
    except (TypeError, ValueError):
        return hash_bytes(repr(message).encode("utf-8", "replace"))


def _readable(raw: Any) -> str:
    """The words in a value of any shape, without long data strings."""
    found: list[str] = []
    stack = [raw]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            for key, value in item.items():
                found.append(str(key))
                stack.append(value)
        elif isinstance(item, list | tuple):
            stack.extend(item)
        elif isinstance(item, str):
            if not _is_data(item):
                found.append(item)
        elif item is not None:
            found.append(str(item))
    return "\n".join(found)


def _opaque_bytes(raw: Any) -> int:
    total = 0
    stack = [raw]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
        elif isinstance(item, str) and _is_data(item):
            total += len(item) * 3 // 4
    return total


def _is_data(text: str) -> bool:
    return text.startswith("data:") or (len(text) > OPAQUE_TEXT and " " not in text[:OPAQUE_TEXT])
