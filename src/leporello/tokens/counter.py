"""`TokenCounter`: the one place that says how many tokens something is, corrected by every real usage of a model."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leporello.messages import (
    Message,
    Part,
    PartKind,
    ToolCall,
    calls_of,
    encode_json,
    is_result,
    key_of,
    parse_json,
    parts_of,
)
from leporello.tokens.families import Family, family_of
from leporello.tokens.media import audio_seconds, document_pages, image_tokens, words_of

LOWEST, HIGHEST = 0.7, 2.5
"""The factor never leaves these bounds. They are uneven: a real count far below the estimate means that a provider
dropped something, and believing it would make the next estimate dangerously low."""

MEMORY = 15
LEAST_TOKENS = 50
CALIBRATION_VERSION = 1


class Calibration:
    """A factor between raw estimates and real counts: the weighted median of the last few observations.

    A median follows the first observation at once and then needs several that agree before it moves, so one
    absurd report changes nothing.
    """

    __slots__ = ("_factor", "_seen", "rejected")

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque(maxlen=MEMORY)
        self._factor = 1.0
        self.rejected = 0

    @property
    def factor(self) -> float:
        """Multiply a raw estimate by this."""
        return self._factor

    @property
    def observations(self) -> int:
        return len(self._seen)

    def learn(self, raw: float, actual: int) -> bool:
        """Take one observation; False when it can't be an honest one and was left out."""
        if raw < LEAST_TOKENS or actual < LEAST_TOKENS:
            return False
        ratio = actual / raw
        if not LOWEST <= ratio <= HIGHEST:
            self.rejected += 1
            return False
        # Rounded here, not when it is written down: after a restart the factor is the same.
        self._seen.append((round(ratio, 5), round(math.sqrt(raw), 1)))
        self._factor = _weighted_median(self._seen)
        return True

    def export(self) -> dict[str, Any]:
        return {"v": CALIBRATION_VERSION, "seen": [[ratio, weight] for ratio, weight in self._seen]}

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Take over an exported state; anything malformed leaves a fresh calibration and gives False."""
        self._seen.clear()
        self._factor = 1.0
        rows = state.get("seen")
        if state.get("v") != CALIBRATION_VERSION or not isinstance(rows, list):
            return False
        for row in rows[-MEMORY:]:
            if not _is_observation(row):
                self._seen.clear()
                return False
            self._seen.append((float(row[0]), float(row[1])))
        if self._seen:
            self._factor = _weighted_median(self._seen)
        return True


def _is_observation(row: Any) -> bool:
    if not isinstance(row, list | tuple) or len(row) != 2:
        return False
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in row):
        return False
    return bool(LOWEST <= row[0] <= HIGHEST and 0 < row[1] < math.inf)


def _weighted_median(seen: deque[tuple[float, float]]) -> float:
    ordered = sorted(seen)
    half = sum(weight for _, weight in ordered) / 2
    passed = 0.0
    for ratio, weight in ordered:
        passed += weight
        if passed >= half:
            return ratio
    return ordered[-1][0]


MEMO_ENTRIES = 100_000
SHORT_TEXT = 256
"""Texts up to this length are remembered too: tool names, keys and the lines of a summary come again and again."""
SHORT_ENTRIES = 20_000
MOST_NESTED = 8  # parts inside parts; deeper ones are counted as plain words


class TokenCounter:
    """Counts for one model. It knows no conversation, so conversations with the same model may share one."""

    def __init__(self, family: Family, model: str = "") -> None:
        self.model = model
        self.family = family
        self.calibration = Calibration()
        self._memo: dict[int, float] = {}
        """By a key of a message's JSON."""
        self._short: dict[str, float] = {}

    @classmethod
    def for_model(cls, name: str | None) -> TokenCounter:
        """The counter of a model by any of its names; None counts plainly with o200k."""
        return cls(family_of(name), name or "")

    @property
    def exact(self) -> bool:
        """Whether text is counted with the model's own vocabulary."""
        return self.family.exact

    def text(self, text: str) -> int:
        return self.scale(self._text(text))

    def message(self, message: Mapping[str, Any]) -> int:
        """Tokens of one message with its framing."""
        return self.scale(self.raw_message(message))

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        return sum(map(self.message, messages))

    def tools(self, schemas: Sequence[Mapping[str, Any]]) -> int:
        return self.scale(self.raw_tools(schemas))

    def request(
        self, messages: Iterable[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = (), system: str = ""
    ) -> int:
        return self.messages(messages) + self.scale(self.raw_fixed(tools, system))

    def learn(self, estimated: int, actual: int) -> bool:
        """Take one real count beside what this counter had said; False when it was too odd to be believed."""
        return self.calibration.learn(estimated / self.calibration.factor, actual)

    def export(self) -> dict[str, Any]:
        return self.calibration.export()

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Take over what an earlier counter of this model learned; False (and a fresh start) when it can't be read."""
        return self.calibration.restore(state)

    def scale(self, raw: float) -> int:
        """A raw figure corrected by what was learned, rounded up."""
        return math.ceil(raw * self.calibration.factor)

    def _text(self, text: str) -> float:
        if len(text) > SHORT_TEXT:
            return self.family.text(text)
        known = self._short.get(text)
        if known is None:
            if len(self._short) >= SHORT_ENTRIES:
                self._short.clear()
            known = self._short[text] = self.family.text(text)
        return known

    def raw_message(self, message: Mapping[str, Any]) -> float:
        try:
            key = key_of(encode_json(message))
        except (TypeError, ValueError):
            # Not storable as JSON (bytes, a cycle, nested beyond reason): counted anew each time, as well as it goes.
            return self._count_message(message)
        known = self._memo.get(key)
        if known is None:
            known = self._remember(key, self._count_message(message))
        return known

    def raw_tools(self, schemas: Sequence[Mapping[str, Any]]) -> float:
        return self.family.framing.tools + sum(map(self._raw_tool, schemas)) if schemas else 0.0

    def raw_fixed(self, tools: Sequence[Mapping[str, Any]] = (), system: str = "") -> float:
        """Everything of a request but its messages, before calibration."""
        total = self.family.framing.request + self.raw_tools(tools)
        return total + self.raw_message({"role": "system", "content": system}) if system else total

    def _raw_tool(self, schema: Mapping[str, Any]) -> float:
        try:
            data = encode_json(schema)
        except (TypeError, ValueError):
            return self.family.framing.tool + self._text(words_of(schema))
        key = key_of(b"tool:" + data)
        known = self._memo.get(key)
        if known is None:
            known = self._remember(key, self.family.framing.tool + self.family.text(data.decode("utf-8", "replace")))
        return known

    def _remember(self, key: int, value: float) -> float:
        if len(self._memo) >= MEMO_ENTRIES:
            # Oldest first: dicts keep their order, and old messages are the ones that were folded away.
            for old in list(self._memo)[: MEMO_ENTRIES // 10]:
                self._memo.pop(old, None)
        self._memo[key] = value
        return value

    def _count_message(self, message: Mapping[str, Any]) -> float:
        framing = self.family.framing
        total: float = framing.message + (framing.result if is_result(message) else 0)
        total += sum(map(self._part, parts_of(message)))
        try:
            total += sum(map(self._call, calls_of(message)))
        except TypeError:
            total += framing.call + self._text(words_of(message.get("tool_calls")))
        for field in ("name", "reasoning_content"):
            value = message.get(field)
            if isinstance(value, str):
                total += self._text(value)
        return total

    def _call(self, call: ToolCall) -> float:
        # Vendors show arguments to the model as values between tags or as plain JSON, never as JSON inside a string:
        # escapes are not paid for.
        framing, text = self.family.framing, self._text
        total = framing.call + text(call.name)
        arguments = parse_json(call.arguments)
        if not isinstance(arguments, dict):
            return total + framing.param + text(call.arguments)
        for key, value in arguments.items():
            shown = value if isinstance(value, str) else _json_text(value)
            total += framing.param + text(key) + text(shown)
        return total

    def _part(self, part: Part, depth: int = 0) -> float:
        if part.kind in (PartKind.TEXT, PartKind.THINKING):
            return self._text(part.text)
        if part.kind is PartKind.IMAGE:
            return image_tokens(part.raw, self.family.images)
        if part.kind is PartKind.AUDIO:
            return max(1.0, audio_seconds(part.raw) * self.family.audio_tokens_per_second)
        if part.kind is PartKind.FILE:
            return self._file(part.raw)
        return self._other(part.raw, depth)

    def _file(self, raw: Any) -> float:
        source = raw.get("source") if isinstance(raw, Mapping) else None
        if isinstance(source, Mapping) and source.get("type") == "text":
            return self._text(str(source.get("data", "")))
        return float(document_pages(raw) * self.family.page_tokens)

    def _other(self, raw: Any, depth: int) -> float:
        """Blocks of other dialects inside an OpenAI-format message, and kinds that nobody has told us about."""
        inner = raw.get("content") if isinstance(raw, Mapping) else None
        if isinstance(inner, list) and depth < MOST_NESTED:
            # A tool result in Anthropic's form: its own parts may hold images.
            nested: Message = {"role": "tool", "content": inner}
            return self.family.framing.result + sum(self._part(part, depth + 1) for part in parts_of(nested))
        return self._text(words_of(raw))


def _json_text(value: Any) -> str:
    try:
        return encode_json(value).decode("utf-8", "replace")
    except (TypeError, ValueError):
        return words_of(value)
