"""A prompt cache by the vendors' billing rules, over requests as rows of content blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from leporello.models.facts import CacheRules
from leporello.usage import CanonicalUsage

STEP_TOKENS = 128
SHORT, LONG = "5m", "1h"


class CacheMarksRefused(ValueError):
    """The vendor would refuse the request: too many marks, or a long-lived one behind a short-lived one."""


@dataclass(frozen=True, slots=True)
class Block:
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
        """The bill as a provider reports it."""
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

    def bill(self, blocks: Sequence[Block], now: float) -> CacheBill:
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

    def _marks(self, blocks: Sequence[Block]) -> list[int]:
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
        blocks: Sequence[Block],
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

    def _automatic(self, blocks: Sequence[Block], prefixes: list[bytes], totals: list[int], now: float) -> CacheBill:
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

    def _shared(self, parent: bytes, block: Block) -> int:
        """Tokens of a new block whose beginning was seen before at the same place."""
        longest = max((_common(block.data, other) for other in self._children.get(parent, ())), default=0)
        return block.tokens * longest // max(1, len(block.data))

    def _remember(self, blocks: Sequence[Block], prefixes: list[bytes], now: float) -> None:
        parent = b""
        for block, prefix in zip(blocks, prefixes, strict=True):
            if prefix not in self._entries:
                self._children.setdefault(parent, []).append(block.data)
            self._entries[prefix] = _Entry(now + self.rules.ttl_seconds, self.rules.ttl_seconds)
            parent = prefix

    def _alive(self, prefix: bytes, now: float) -> _Entry | None:
        entry = self._entries.get(prefix)
        return entry if entry is not None and entry.expires > now else None


def _prefixes(blocks: Sequence[Block]) -> list[bytes]:
    """A hash per block over everything up to its end."""
    found = []
    chain = b""
    for block in blocks:
        chain = hashlib.blake2b(chain + block.data, digest_size=16).digest()
        found.append(chain)
    return found


def _common(one: bytes, other: bytes) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
