"""`ScriptedProvider`: a model that says what it was told to say, with a bill that is computed, not invented.

    provider = ScriptedProvider(["First answer", ProviderError("gone"), Wait(2.0, "late answer")])
    provider = ScriptedProvider(lambda request: f"You sent {len(request.messages)} messages")

It runs everything without a network: demos, tests and replays. Prompt tokens are counted from the request's own bytes;
cached ones come from a simulation of the vendor's cache (`CacheSim`) and the request's own cache marks. A request
beyond the window is refused as a provider would refuse it.
"""

from __future__ import annotations

import hashlib
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, repeat
from typing import Any, TypeAlias

from leporello.caching import MARK
from leporello.errors import ProviderError
from leporello.messages import Message, calls_of, encode_json, is_instruction, text_of
from leporello.models.facts import CacheRules, ModelFacts, model_facts
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, ErrorVerdict
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

STEP_TOKENS = 128
SHORT, LONG = "5m", "1h"


class CacheMarksRefused(ValueError):
    """The vendor would refuse the request: too many marks, or a long-lived one behind a short-lived one."""


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """One content block of a request as sent. `mark` is the time to live asked for at its end, or None."""

    data: bytes
    tokens: int
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class CacheBill:
    """How the prompt tokens of one request are billed. `long_write` is the share of `write` at the long-lived rate."""

    read: int = 0
    write: int = 0
    uncached: int = 0
    long_write: int = 0

    def usage(self, output: int = 0, reasoning: int = 0) -> CanonicalUsage:
        return CanonicalUsage(self.uncached, output, self.read, self.write, reasoning)


@dataclass(slots=True)
class _Entry:
    expires: float
    ttl: float


@dataclass(slots=True)
class CacheSim:
    """One account's cache for one model."""

    rules: CacheRules
    _entries: dict[bytes, _Entry] = field(default_factory=dict)
    _children: dict[bytes, list[bytes]] = field(default_factory=dict)

    def bill(self, blocks: Sequence[CacheBlock], now: float) -> CacheBill:
        """Send a request at a time (seconds; never going back) and get its bill."""
        if not blocks:
            return CacheBill()
        prefixes = _prefixes(blocks)
        totals = list(accumulate(block.tokens for block in blocks))
        if not self.rules.breakpoints:
            return self._automatic(blocks, prefixes, totals, now)
        marks = self._marks(blocks)
        found = self._read(prefixes, totals, marks, now)
        return self._write(blocks, prefixes, totals, marks, found, now)

    # --- marked caches ------------------------------------------------------------------------------------------

    def _marks(self, blocks: Sequence[CacheBlock]) -> list[int]:
        marks = [index for index, block in enumerate(blocks) if block.mark]
        if len(marks) > self.rules.breakpoints:
            raise CacheMarksRefused(f"{len(marks)} cache marks, at most {self.rules.breakpoints} are allowed")
        lives = [blocks[index].mark for index in marks]
        if self.rules.lookback is not None:
            if LONG in lives[lives.index(SHORT) :] if SHORT in lives else False:
                raise CacheMarksRefused("a 1h cache mark stands behind a 5m mark")
            return marks
        # Without a lookback rule the end of the request is marked by the vendor itself.
        return marks if marks and marks[-1] == len(blocks) - 1 else [*marks, len(blocks) - 1]

    def _read(self, prefixes: list[bytes], totals: list[int], marks: list[int], now: float) -> int | None:
        """The block up to which the prompt is read from the cache."""
        for mark in reversed(marks):
            reach = -1 if self.rules.lookback is None else max(-1, mark - self.rules.lookback)
            for index in range(mark, reach, -1):
                entry = self._alive(prefixes[index], now)
                if entry is not None and totals[index] >= self.rules.min_prefix:
                    entry.expires = now + entry.ttl
                    return index
        return None

    def _write(
        self,
        blocks: Sequence[CacheBlock],
        prefixes: list[bytes],
        totals: list[int],
        marks: list[int],
        found: int | None,
        now: float,
    ) -> CacheBill:
        read = totals[found] if found is not None else 0
        written = long = read
        for mark in marks:
            if totals[mark] < self.rules.min_prefix:
                continue
            asked = blocks[mark].mark or SHORT
            ttl = self._ttl(asked)
            known = self._alive(prefixes[mark], now)
            if known is None or known.ttl < ttl or mark == found:
                self._entries[prefixes[mark]] = _Entry(now + ttl, ttl)
            written = max(written, totals[mark])
            if asked == LONG:
                long = max(long, totals[mark])
        return CacheBill(read, written - read, totals[-1] - written, long - read)

    def _ttl(self, mark: str) -> float:
        if mark == LONG and self.rules.long_ttl_seconds is not None:
            return self.rules.long_ttl_seconds
        return self.rules.ttl_seconds

    # --- automatic cache ----------------------------------------------------------------------------------------

    def _automatic(
        self, blocks: Sequence[CacheBlock], prefixes: list[bytes], totals: list[int], now: float
    ) -> CacheBill:
        common = 0
        parent = b""
        for index, block in enumerate(blocks):
            if self._alive(prefixes[index], now) is None:
                common += self._shared(parent, block)
                break
            common = totals[index]
            parent = prefixes[index]
        read = common // STEP_TOKENS * STEP_TOKENS
        if read < self.rules.min_prefix:
            read = 0
        self._remember(blocks, prefixes, now)
        return CacheBill(read, 0, totals[-1] - read)

    def _shared(self, parent: bytes, block: CacheBlock) -> int:
        """Tokens of a new block whose beginning was seen before at the same place."""
        longest = max((_common(block.data, other) for other in self._children.get(parent, ())), default=0)
        return block.tokens * longest // max(1, len(block.data))

    def _remember(self, blocks: Sequence[CacheBlock], prefixes: list[bytes], now: float) -> None:
        parent = b""
        for block, prefix in zip(blocks, prefixes, strict=True):
            if prefix not in self._entries:
                self._children.setdefault(parent, []).append(block.data)
            self._entries[prefix] = _Entry(now + self.rules.ttl_seconds, self.rules.ttl_seconds)
            parent = prefix

    def _alive(self, prefix: bytes, now: float) -> _Entry | None:
        entry = self._entries.get(prefix)
        return entry if entry is not None and entry.expires > now else None


def _prefixes(blocks: Sequence[CacheBlock]) -> list[bytes]:
    """A hash per block over everything up to its end."""
    found: list[bytes] = []
    for block in blocks:
        found.append(hashlib.blake2b((found[-1] if found else b"") + block.data, digest_size=16).digest())
    return found


def _common(one: bytes, other: bytes) -> int:
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: one[:length] != other[:length])


def blocks_of(request: ModelRequest, counter: TokenCounter) -> list[CacheBlock]:
    """The blocks of a request; their tokens add up to the counter's count of the request."""
    ordered = sorted(request.messages, key=lambda message: not is_instruction(message))
    blocks = [*_tools(request.tools, counter), *(block for message in ordered for block in _message(message, counter))]
    missing = counter.request(request.messages, request.tools) - sum(block.tokens for block in blocks)
    if blocks and missing:
        # Framing of the request as a whole belongs to nobody in particular.
        blocks[0] = CacheBlock(blocks[0].data, blocks[0].tokens + missing, blocks[0].mark)
    return blocks


def _tools(schemas: Sequence[Mapping[str, Any]], counter: TokenCounter) -> Iterator[CacheBlock]:
    for schema in schemas:
        bare = _unmarked(schema)
        yield CacheBlock(encode_json(bare), counter.tools([bare]), _mark(schema))


def _message(message: Message, counter: TokenCounter) -> Iterator[CacheBlock]:
    pieces = _pieces(message)
    bare = [_unmarked(piece) for piece in pieces]
    sizes = [counter.message(piece) for piece in bare]
    # The framing of the message is counted once, with its first piece.
    sizes[0] += counter.message(_unmarked(message)) - sum(sizes)
    for index, (piece, whole, size) in enumerate(zip(bare, pieces, sizes, strict=True)):
        own = _mark(message) if index == len(pieces) - 1 else None
        yield CacheBlock(encode_json(piece), max(0, size), _part_mark(whole) or own)


def _pieces(message: Message) -> list[Message]:
    """The message as messages of one block each: content parts first, then tool calls."""
    context = {key: value for key, value in message.items() if key not in ("content", "tool_calls", MARK)}
    content, calls = message.get("content"), message.get("tool_calls")
    if isinstance(content, list) and context.get("role") != "tool":
        pieces: list[Message] = [{"content": [part]} for part in content]
    else:
        pieces = [{"content": content}] if content or not calls else []
    pieces += [{"tool_calls": [call]} for call in (calls if isinstance(calls, list) else ())]
    return [{**context, **piece} for piece in pieces or [{"content": content}]]


def _unmarked(value: Mapping[str, Any]) -> dict[str, Any]:
    bare = {key: item for key, item in value.items() if key != MARK}
    content = bare.get("content")
    if isinstance(content, list):
        bare["content"] = [_unmarked(part) if isinstance(part, Mapping) else part for part in content]
    return bare


def _part_mark(piece: Message) -> str | None:
    content = piece.get("content")
    return _mark(content[-1]) if isinstance(content, list) and content else None


def _mark(value: Any) -> str | None:
    control = value.get(MARK) if isinstance(value, Mapping) else None
    return str(control.get("ttl") or SHORT) if isinstance(control, Mapping) else None


STREAM_CHARS = 24
_NO_USAGE = CanonicalUsage()


@dataclass(frozen=True, slots=True)
class Wait:
    """Answer only after some seconds; a request whose timeout is shorter fails with a timeout."""

    seconds: float
    then: Step


Step: TypeAlias = str | Message | ModelReply | BaseException | Wait | Callable[[ModelRequest], "Step"]
"""One scripted answer: a text, an assistant message, a whole reply, an error to raise, a wait, or a function."""


class ScriptEnded(ProviderError):
    """More calls came than the script has answers."""


class ScriptedProvider:
    """Replays a script. `requests` and `replies` keep what was asked and answered. Threads may share it."""

    def __init__(
        self,
        script: Iterable[Step] | Callable[[ModelRequest], Step],
        *,
        name: str = "scripted",
        window: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self.window = window
        """Requests of more tokens are refused; None: whatever the model is known to take."""
        self.requests: list[ModelRequest] = []
        self.replies: list[ModelReply] = []
        self._steps: Iterator[Step] = repeat(script) if callable(script) else iter(script)
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._models: dict[str, _Model] = {}

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        with self._lock:
            self.requests.append(request)
            model = self._models.setdefault(request.model, _Model.named(request.model))
            prompt = model.counter.request(request.messages, request.tools)
            self._check_window(request, model, prompt)
            step = next(self._steps, None)
        if step is None:
            raise ScriptEnded(f"{self.name}: the script has no answer for call {len(self.requests)}; add steps to it")
        reply = self._play(step, request)
        with self._lock:
            reply = self._billed(reply, request, model)
            self.replies.append(reply)
        if on_text is not None:
            text = text_of(reply.message)
            for start in range(0, len(text), STREAM_CHARS):
                on_text(text[start : start + STREAM_CHARS])
        return reply

    def _check_window(self, request: ModelRequest, model: _Model, prompt: int) -> None:
        window = self.window or model.facts.window
        if prompt <= window:
            return
        verdict = ErrorVerdict(
            ErrorKind.INPUT_OVERFLOW,
            stated_limit=window,
            requested=prompt,
            status=400,
            code="context_length_exceeded",
            message=f"the prompt of {prompt} tokens is longer than the window of {window} tokens",
        )
        raise CallFailed(verdict, self.name, request.model)

    def _play(self, step: Step, request: ModelRequest) -> ModelReply:
        while True:
            if isinstance(step, Wait):
                self._wait(step.seconds, request)
                step = step.then
            elif isinstance(step, BaseException):
                raise step
            elif isinstance(step, ModelReply):
                return step
            elif isinstance(step, str):
                return ModelReply({"role": "assistant", "content": step}, _NO_USAGE, model=request.model)
            elif isinstance(step, dict):
                ending = "tool_calls" if calls_of(step) else "stop"
                return ModelReply(step, _NO_USAGE, finish_reason=ending, model=request.model)
            else:
                step = step(request)

    def _wait(self, seconds: float, request: ModelRequest) -> None:
        if request.timeout is None or seconds <= request.timeout:
            self._sleep(seconds)
            return
        self._sleep(request.timeout)
        late = f"no answer within {request.timeout:g} s"
        raise CallFailed(ErrorVerdict(ErrorKind.TRANSIENT, cause="timeout", message=late), self.name, request.model)

    def _billed(self, reply: ModelReply, request: ModelRequest, model: _Model) -> ModelReply:
        if reply.usage != _NO_USAGE or not reply.has_usage:
            return reply
        reply = _capped(reply, request.max_tokens, model.counter)
        output = model.counter.message(reply.message)
        try:
            bill = model.cache.bill(blocks_of(request, model.counter), self._clock())
        except CacheMarksRefused as error:
            verdict = ErrorVerdict(ErrorKind.MALFORMED, status=400, message=str(error))
            raise CallFailed(verdict, self.name, request.model) from error
        return replace(reply, usage=bill.usage(output))


@dataclass(slots=True)
class _Model:
    facts: ModelFacts
    counter: TokenCounter
    cache: CacheSim

    @classmethod
    def named(cls, name: str) -> _Model:
        facts = model_facts(name)
        return cls(facts, TokenCounter.for_model(name), CacheSim(facts.cache))


def _capped(reply: ModelReply, most: int | None, counter: TokenCounter) -> ModelReply:
    """Cut a text that is longer than the request allows, as a provider would."""
    text = text_of(reply.message)
    if most is None or calls_of(reply.message) or counter.text(text) <= most:
        return reply
    stop = bisect_right(range(1, len(text) + 1), most, key=lambda length: counter.text(text[:length]))
    return replace(reply, message={**reply.message, "content": text[:stop]}, finish_reason="length")
