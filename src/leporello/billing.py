"""What requests cost under the vendors' prompt-cache rules. Pure: blocks and times in, bills out.

`PromptReader` reads a request as the content blocks that a prompt cache sees. It follows the requests of one
conversation: what stood in the one before is neither counted nor hashed again. Where a mark stands changes no byte, and
neither does whether a text is written alone or as a list of one part.

`CacheSim` is the cache. Marked caches (Anthropic; OpenAI since GPT-5.6, which marks the end of each request by itself)
hold an entry for each marked prefix. Anthropic looks for one at each mark and up to 20 blocks before it. Automatic
caches (earlier OpenAI models, and most others) read the longest beginning that they have seen, in steps of 128 tokens
(DeepSeek: 64, and what the model answered counts as seen).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import accumulate
from operator import add
from typing import Any, Protocol

from msgspec import Struct, field

from leporello.caching import MARK
from leporello.messages import Message, encode_json, is_result
from leporello.models.facts import CacheRules, ModelFacts, Prices
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

SHORT, LONG = "5m", "1h"


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """One content block of a request as sent. `mark` is the time to live asked for at its end, or None."""

    data: bytes
    tokens: int
    mark: str | None = None


class Prompt(Struct, frozen=True):
    """The blocks of one request, with a hash and a token count for everything up to each block's end."""

    blocks: Sequence[CacheBlock]
    prefixes: Sequence[bytes]
    totals: Sequence[int]
    marks: Mapping[int, str]
    """Time to live by block."""
    start: bytes = b""
    """What the hashes begin with: requests with another start share nothing."""

    @classmethod
    def of(cls, blocks: Sequence[CacheBlock]) -> Prompt:
        """Read from the beginning."""
        prefixes = list(accumulate((block.data for block in blocks), _chained, initial=b""))[1:]
        totals = list(accumulate(block.tokens for block in blocks))
        return cls(blocks, prefixes, totals, {index: block.mark for index, block in enumerate(blocks) if block.mark})

    def followed_by(self, block: CacheBlock) -> Prompt:
        """One block more at the end."""
        before, tokens = (self.prefixes[-1], self.totals[-1]) if self.blocks else (self.start, 0)
        return Prompt(
            (*self.blocks, block),
            (*self.prefixes, _chained(before, block.data)),
            (*self.totals, tokens + block.tokens),
            self.marks,
            self.start,
        )


def _chained(before: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(before + data, digest_size=16).digest()


class PromptReader:
    """Reads the requests of one conversation. `key`: requests with different cache keys share nothing."""

    def __init__(self, counter: TokenCounter, key: str = "") -> None:
        self._counter = counter
        self._start = key.encode()
        self._known: dict[int, tuple[Message, tuple[CacheBlock, ...]]] = {}
        self._tools: Sequence[Mapping[str, Any]] = ()
        self._messages: list[Message] = []
        self._ends: list[int] = []
        self._blocks: list[CacheBlock] = []
        self._prefixes: list[bytes] = []
        self._totals: list[int] = []

    def read(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        marked: Sequence[Message] | None = None,
    ) -> Prompt:
        """The request. `marked`: the same messages with marks, where those of `messages` carry none."""
        stand = self._standing(messages, tools)
        for message in messages[stand:]:
            for block in self._message(message):
                self._add(block)
            self._ends.append(len(self._blocks))
            self._messages.append(message)
        marks = self._marks(messages, marked, tools)
        return Prompt(tuple(self._blocks), tuple(self._prefixes), tuple(self._totals), marks, self._start)

    def _standing(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> int:
        """How many messages stand as they stood; the rest is forgotten."""
        if not self._ends or tools != self._tools:
            self._tools, self._messages = tools, []
            self._blocks, self._prefixes, self._totals = [], [], []
            for block in _tool_blocks(tools, self._counter):
                self._add(block)
            self._ends = [len(self._blocks)]
            return 0
        stand = 0
        for one, other in zip(self._messages, messages, strict=False):
            if one is not other:
                break
            stand += 1
        if stand < len(self._messages):
            end = self._ends[stand]
            del self._blocks[end:], self._prefixes[end:], self._totals[end:]
            del self._messages[stand:], self._ends[stand + 1 :]
        return stand

    def _add(self, block: CacheBlock) -> None:
        tokens = block.tokens + (self._totals[-1] if self._totals else 0)
        if not self._blocks:
            # Framing of the request as a whole belongs to nobody in particular.
            tokens += self._counter.scale(self._counter.raw_fixed())
            block = CacheBlock(block.data, tokens)
        self._blocks.append(block)
        self._prefixes.append(_chained(self._prefixes[-1] if self._prefixes else self._start, block.data))
        self._totals.append(tokens)

    def _message(self, message: Message) -> tuple[CacheBlock, ...]:
        known = self._known.get(id(message))
        # The message is held beside its blocks, so that its id can't be reused by another one.
        if known is None or known[0] is not message:
            known = self._known[id(message)] = (message, tuple(_message_blocks(message, self._counter)))
        return known[1]

    def _marks(
        self, messages: Sequence[Message], marked: Sequence[Message] | None, tools: Sequence[Mapping[str, Any]]
    ) -> dict[int, str]:
        marks = {place: mark for place, tool in enumerate(tools) if (mark := _mark(tool))}
        for index, message in enumerate(messages if marked is None else marked):
            if marked is None or message is not messages[index]:
                marks.update({self._ends[index] + place: mark for place, mark in _message_marks(message)})
        return marks


class SentRequest(Protocol):
    """What is billed of a request."""

    @property
    def messages(self) -> Sequence[Message]:
        """In OpenAI format, marks in place."""

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Their schemas."""


def blocks_of(request: SentRequest, counter: TokenCounter) -> list[CacheBlock]:
    """The blocks of one request, marks in place; their tokens add up to the counter's count of the request."""
    prompt = PromptReader(counter).read(request.messages, request.tools)
    return [replace(block, mark=prompt.marks.get(index)) for index, block in enumerate(prompt.blocks)]


def _tool_blocks(schemas: Sequence[Mapping[str, Any]], counter: TokenCounter) -> Iterator[CacheBlock]:
    bare = [_unmarked(schema) for schema in schemas]
    for place, schema in enumerate(bare):
        yield CacheBlock(encode_json(schema), counter.tools(bare[: place + 1]) - counter.tools(bare[:place]))


def _message_blocks(message: Message, counter: TokenCounter) -> Iterator[CacheBlock]:
    whole = _unmarked(message)
    pieces = _pieces(whole)
    if len(pieces) == 1:
        yield CacheBlock(encode_json(pieces[0]), counter.message(whole))
        return
    sizes = [counter.message(piece) for piece in pieces]
    # The framing of the message is counted once, with its first piece.
    sizes[0] += counter.message(whole) - sum(sizes)
    for piece, size in zip(pieces, sizes, strict=True):
        yield CacheBlock(encode_json(piece), max(0, size))


def _message_marks(message: Message) -> Iterator[tuple[int, str]]:
    """The marks of a message by piece: on its parts, and on the message itself for its last piece."""
    content = message.get("content")
    parts = content if isinstance(content, list) and not is_result(message) else ()
    yield from ((place, mark) for place, part in enumerate(parts) if (mark := _mark(part)))
    own = _mark(message)
    if own:
        yield len(_pieces(message)) - 1, own


def _pieces(message: Message) -> list[Message]:
    """The message as messages of one block each: content parts first, then tool calls."""
    context = {key: value for key, value in message.items() if key not in ("content", "tool_calls", MARK)}
    content, calls = message.get("content"), message.get("tool_calls")
    if is_result(message):
        return [{**context, "content": content}]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    parts: Iterable[Any] = content if isinstance(content, list) else ()
    pieces: list[Message] = [{**context, "content": [part]} for part in parts]
    pieces += [{**context, "tool_calls": [call]} for call in (calls if isinstance(calls, list) else ())]
    return pieces or [{**context, "content": content}]


def _unmarked(value: Mapping[str, Any]) -> dict[str, Any]:
    bare = {key: item for key, item in value.items() if key != MARK}
    content = bare.get("content")
    if isinstance(content, list):
        bare["content"] = [_unmarked(part) if isinstance(part, Mapping) else part for part in content]
    return bare


def _mark(value: Any) -> str | None:
    control = value.get(MARK) if isinstance(value, Mapping) else None
    return str(control.get("ttl") or SHORT) if isinstance(control, Mapping) else None


READ_RATE, WRITE_RATE, LONG_WRITE_RATE = 0.1, 1.25, 2.0
"""Of the price of uncached input. Real prices may differ (`CacheBill.cost`); units compare across models."""


class CacheMarksRefused(ValueError):
    """The vendor would refuse the request: too many marks, or a long-lived one behind a short-lived one."""


@dataclass(frozen=True, slots=True)
class CacheBill:
    """How the prompt tokens of one request are billed. `long_write` is the share of `write` at the long-lived rate."""

    read: int = 0
    write: int = 0
    uncached: int = 0
    long_write: int = 0

    @property
    def prompt(self) -> int:
        return self.read + self.write + self.uncached

    @property
    def units(self) -> float:
        """The bill in uncached input tokens."""
        short = self.write - self.long_write
        return self.uncached + WRITE_RATE * short + LONG_WRITE_RATE * self.long_write + READ_RATE * self.read

    def warmed(self, tokens: int) -> CacheBill:
        """The same request where the cache held so many tokens of its beginning already."""
        more = max(0, min(tokens, self.prompt) - self.read)
        written = min(more, self.write)
        return CacheBill(
            self.read + more, self.write - written, self.uncached - more + written, max(0, self.long_write - more)
        )

    def usage(self, output: int = 0, reasoning: int = 0) -> CanonicalUsage:
        return CanonicalUsage(self.uncached, output, self.read, self.write, reasoning)

    def cost(self, facts: ModelFacts, output: int = 0) -> float | None:
        """USD; None when the model has no known prices. A price step applies to the whole request."""
        prices = facts.prices_at(self.prompt)
        return None if prices is None else self.cost_at(prices, output)

    def cost_at(self, prices: Prices, output: int = 0) -> float:
        """USD at given prices."""
        read = prices.input if prices.cache_read is None else prices.cache_read
        write = prices.input if prices.cache_write_5m is None else prices.cache_write_5m
        long = write if prices.cache_write_1h is None else prices.cache_write_1h
        total = self.uncached * prices.input + self.read * read + output * prices.output
        return (total + (self.write - self.long_write) * write + self.long_write * long) / 1_000_000

    def __add__(self, other: CacheBill) -> CacheBill:
        return CacheBill(*map(add, astuple(self), astuple(other)))


class _Entry(Struct):
    expires: float
    ttl: float


class CacheSim(Struct):
    """One account's cache for one model."""

    rules: CacheRules
    _entries: dict[bytes, _Entry] = field(default_factory=dict)
    _children: dict[bytes, list[bytes]] = field(default_factory=dict)

    def bill(self, sent: Prompt | Sequence[CacheBlock], now: float) -> CacheBill:
        """Send a request at a time (seconds; never going back) and get its bill."""
        prompt = sent if isinstance(sent, Prompt) else Prompt.of(sent)
        if not prompt.blocks:
            return CacheBill()
        if not self.rules.breakpoints:
            return self._automatic(prompt, now)
        marks = self._marks(prompt)
        found = self._read(prompt, sorted(marks), now)
        return self._write(prompt, marks, found, now)

    def standing(self, prompt: Prompt, now: float) -> int:
        """Tokens of the longest beginning that has an entry, whether or not this request's marks find it."""
        for index in range(len(prompt.prefixes) - 1, -1, -1):
            if prompt.totals[index] < self.rules.min_prefix:
                return 0
            if self._alive(prompt.prefixes[index], now) is not None:
                return prompt.totals[index]
        return 0

    def answered(self, prompt: Prompt, answer: CacheBlock, now: float) -> None:
        """The model answered: some vendors keep that beside the request."""
        if self.rules.keeps_answers:
            self._remember(prompt.followed_by(answer), now)

    # --- marked caches ------------------------------------------------------------------------------------------

    def _marks(self, prompt: Prompt) -> dict[int, str]:
        marks = {index: prompt.marks[index] for index in sorted(prompt.marks)}
        if len(marks) > self.rules.breakpoints:
            raise CacheMarksRefused(f"{len(marks)} cache marks, at most {self.rules.breakpoints} are allowed")
        if self.rules.lookback is None:
            # Without a lookback rule the end of the request is marked by the vendor itself.
            return marks | {len(prompt.blocks) - 1: marks.get(len(prompt.blocks) - 1, SHORT)}
        lives = list(marks.values())
        if LONG in lives[lives.index(SHORT) :] if SHORT in lives else False:
            raise CacheMarksRefused("a 1h cache mark stands behind a 5m mark")
        return marks

    def _read(self, prompt: Prompt, marks: Sequence[int], now: float) -> int | None:
        """The block up to which the prompt is read from the cache."""
        for mark in reversed(marks):
            reach = -1 if self.rules.lookback is None else max(-1, mark - self.rules.lookback)
            for index in range(mark, reach, -1):
                entry = self._alive(prompt.prefixes[index], now)
                if entry is not None and prompt.totals[index] >= self.rules.min_prefix:
                    entry.expires = now + entry.ttl
                    return index
        return None

    def _write(self, prompt: Prompt, marks: dict[int, str], found: int | None, now: float) -> CacheBill:
        totals = prompt.totals
        read = totals[found] if found is not None else 0
        written = long = read
        for mark, asked in marks.items():
            if totals[mark] < self.rules.min_prefix:
                continue
            ttl = self._ttl(asked)
            known = self._alive(prompt.prefixes[mark], now)
            # What stands at a mark is used by this request, which keeps it alive for as long as it was written for.
            if known is None or known.ttl <= ttl:
                self._entries[prompt.prefixes[mark]] = _Entry(now + ttl, ttl)
            else:
                known.expires = now + known.ttl
            written = max(written, totals[mark])
            if asked == LONG:
                long = max(long, totals[mark])
        return CacheBill(read, written - read, totals[-1] - written, long - read)

    def _ttl(self, mark: str) -> float:
        if mark == LONG and self.rules.long_ttl_seconds is not None:
            return self.rules.long_ttl_seconds
        return self.rules.ttl_seconds

    # --- automatic cache ----------------------------------------------------------------------------------------

    def _automatic(self, prompt: Prompt, now: float) -> CacheBill:
        common = 0
        parent = prompt.start
        for index, prefix in enumerate(prompt.prefixes):
            if self._alive(prefix, now) is None:
                common += self._shared(parent, prompt.blocks[index])
                break
            common = prompt.totals[index]
            parent = prefix
        read = common // self.rules.step * self.rules.step
        if read < self.rules.min_prefix:
            read = 0
        self._remember(prompt, now)
        return CacheBill(read, 0, prompt.totals[-1] - read)

    def _shared(self, parent: bytes, block: CacheBlock) -> int:
        """Tokens of a new block whose beginning was seen before at the same place."""
        longest = max((_common(block.data, other) for other in self._children.get(parent, ())), default=0)
        return block.tokens * longest // max(1, len(block.data))

    def _remember(self, prompt: Prompt, now: float) -> None:
        parent = prompt.start
        for block, prefix in zip(prompt.blocks, prompt.prefixes, strict=True):
            known = self._entries.get(prefix)
            if known is None:
                self._children.setdefault(parent, []).append(block.data)
                self._entries[prefix] = _Entry(now + self.rules.ttl_seconds, self.rules.ttl_seconds)
            else:
                known.expires = now + known.ttl
            parent = prefix

    def _alive(self, prefix: bytes, now: float) -> _Entry | None:
        entry = self._entries.get(prefix)
        return entry if entry is not None and entry.expires > now else None


def _common(one: bytes, other: bytes) -> int:
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: one[:length] != other[:length])
