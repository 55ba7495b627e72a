"""`CanonicalUsage`: one shape for what every provider reports about a call.

The three wire shapes differ in one trap: Anthropic's `input_tokens` excludes cached tokens, OpenAI's totals include
them. Normalising happens here and nowhere else. What it cost is told here too, in one way everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from operator import add
from typing import Any

LEAST_SHOWN = 0.0001  # dollars
MOST_TOKENS = 10**12
"""What a server may say of one call; more is nonsense, and would not fit into the counters."""


@dataclass(frozen=True, slots=True)
class CanonicalUsage:
    """Five disjoint buckets (reasoning is part of output and listed for information)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """Everything that filled the window on the way in. Cached tokens are cheap but still fill it."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        """Prompt plus output."""
        return self.prompt_tokens + self.output_tokens

    def __add__(self, other: CanonicalUsage) -> CanonicalUsage:
        return CanonicalUsage(*map(add, astuple(self), astuple(other)))

    def as_engine_dict(self) -> dict[str, int]:
        """What `ContextEngine.update_from_response` receives: three totals and the five buckets."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            **asdict(self),
        }

    @classmethod
    def parse(cls, usage: Any) -> CanonicalUsage:
        """From an SDK object or dict of any of the three shapes; impossible counts are zero."""
        fields = _as_mapping(usage)
        # A router may send Anthropic's cache counts beside OpenAI's totals: the totals decide how to read them.
        if fields.get("prompt_tokens") is not None or fields.get("completion_tokens") is not None:
            return _chat(fields)
        if "cache_read_input_tokens" in fields or "cache_creation_input_tokens" in fields:
            return _anthropic(fields)
        if any(name in fields for name in ("input_tokens_details", "output_tokens_details", "total_tokens")):
            return _responses(fields)
        return _anthropic(fields)


def _anthropic(fields: Mapping[str, Any]) -> CanonicalUsage:
    details = _as_mapping(fields.get("output_tokens_details"))
    reasoning = _count(details, "thinking_tokens") or _count(details, "reasoning_tokens")
    return CanonicalUsage(
        _count(fields, "input_tokens"),
        max(_count(fields, "output_tokens"), reasoning),
        _count(fields, "cache_read_input_tokens"),
        _anthropic_written(fields),
        reasoning,
    )


def _anthropic_written(fields: Mapping[str, Any]) -> int:
    """The total, or the sum over lifetimes where only those are given."""
    lifetimes = _as_mapping(fields.get("cache_creation"))
    by_lifetime = _count(lifetimes, "ephemeral_5m_input_tokens") + _count(lifetimes, "ephemeral_1h_input_tokens")
    return _count(fields, "cache_creation_input_tokens") or by_lifetime


def written_for_an_hour(usage: Mapping[str, Any]) -> int:
    """Of the cache writes that Anthropic reports, those at the dearer rate; the buckets hold them with all others."""
    return _count(_as_mapping(usage.get("cache_creation")), "ephemeral_1h_input_tokens")


def _responses(fields: Mapping[str, Any]) -> CanonicalUsage:
    details = _as_mapping(fields.get("input_tokens_details"))
    return _inclusive(
        total=_count(fields, "input_tokens"),
        output=_count(fields, "output_tokens"),
        read=_count(details, "cached_tokens"),
        write=_written(details),
        reasoning=_count(_as_mapping(fields.get("output_tokens_details")), "reasoning_tokens"),
    )


def _chat(fields: Mapping[str, Any]) -> CanonicalUsage:
    details = _as_mapping(fields.get("prompt_tokens_details"))
    # DeepSeek, Moonshot and some routers put the cached count at the top level.
    beside = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
    total, output = _count(fields, "prompt_tokens"), _count(fields, "completion_tokens")
    reasoning = _count(_as_mapping(fields.get("completion_tokens_details")), "reasoning_tokens")
    if reasoning and _count(fields, "total_tokens") == total + output + reasoning:
        # xAI leaves reasoning out of the completion; the sum gives it away.
        output += reasoning
    return _inclusive(
        total=total,
        output=output,
        read=_count(details, "cached_tokens") or next(filter(None, (_count(fields, name) for name in beside)), 0),
        write=_written(details) or _anthropic_written(fields),
        reasoning=reasoning,
    )


def _written(details: Mapping[str, Any]) -> int:
    return _count(details, "cache_write_tokens") or _count(details, "cache_creation_tokens")


def _inclusive(*, total: int, output: int, read: int, write: int, reasoning: int) -> CanonicalUsage:
    # Some routers report more cached tokens than prompt tokens: what they state is kept, only the rest is floored.
    # Reasoning is output, also where a provider reports nothing else.
    return CanonicalUsage(max(0, total - read - write), max(output, reasoning), read, write, reasoning)


_NAMES = (
    "prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens",
    "prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details",
    "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation", "prompt_cache_hit_tokens",
    "cached_tokens", "cache_write_tokens", "cache_creation_tokens", "reasoning_tokens", "thinking_tokens",
    "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens",
)  # fmt: skip


def _as_mapping(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        dumped = dump(exclude_unset=True)
        return dumped if isinstance(dumped, Mapping) else {}
    # Any other object: by the names we know, because slots and properties don't show in its __dict__.
    return {name: getattr(value, name) for name in _NAMES if hasattr(value, name)}


def _count(fields: Mapping[str, Any], key: str) -> int:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if math.isfinite(value) and 0 < value <= MOST_TOKENS else 0


def money(dollars: float) -> str:
    """US dollars with as many digits as matter: `$0.0022`, `$4.02`, `$1,234`, `-$1.23`, `under $0.0001`."""
    if dollars < 0:
        amount = money(-dollars)
        return f"-{amount}" if amount.startswith("$") else "$0.00"
    if 0 < dollars < LEAST_SHOWN:
        return f"under ${LEAST_SHOWN}"
    if dollars >= 100:
        return f"${dollars:,.0f}"
    return f"${abs(dollars):.2f}" if dollars >= 0.0995 or dollars == 0 else f"${dollars:.4f}".rstrip("0")
