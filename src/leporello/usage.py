"""`CanonicalUsage`: one shape for what every provider reports about a call.

The three wire shapes differ in one trap: Anthropic's `input_tokens` excludes cached tokens, OpenAI's totals include
them. Normalising happens here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
        return CanonicalUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    def as_engine_dict(self) -> dict[str, int]:
        """What `ContextEngine.update_from_response` receives: three totals and the five buckets."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }

    @classmethod
    def parse(cls, usage: Any) -> CanonicalUsage:
        """From an SDK object or dict of any of the three shapes; missing, null and negative counts are zero."""
        fields = _as_mapping(usage)
        if not fields:
            return cls()
        if "cache_read_input_tokens" in fields or "cache_creation_input_tokens" in fields:
            return _anthropic(fields)
        if "prompt_tokens" in fields or "completion_tokens" in fields:
            return _chat(fields)
        if "input_tokens_details" in fields or "output_tokens_details" in fields or "total_tokens" in fields:
            return _responses(fields)
        return _anthropic(fields)


def _anthropic(fields: Mapping[str, Any]) -> CanonicalUsage:
    details = _as_mapping(fields.get("output_tokens_details"))
    return CanonicalUsage(
        _count(fields, "input_tokens"),
        _count(fields, "output_tokens"),
        _count(fields, "cache_read_input_tokens"),
        _count(fields, "cache_creation_input_tokens"),
        _count(details, "thinking_tokens") or _count(details, "reasoning_tokens"),
    )


def _responses(fields: Mapping[str, Any]) -> CanonicalUsage:
    details = _as_mapping(fields.get("input_tokens_details"))
    return _inclusive(
        total=_count(fields, "input_tokens"),
        output=_count(fields, "output_tokens"),
        read=_count(details, "cached_tokens"),
        write=_count(details, "cache_write_tokens") or _count(details, "cache_creation_tokens"),
        reasoning=_count(_as_mapping(fields.get("output_tokens_details")), "reasoning_tokens"),
    )


def _chat(fields: Mapping[str, Any]) -> CanonicalUsage:
    details = _as_mapping(fields.get("prompt_tokens_details"))
    # DeepSeek and some compatibles put the cached count at the top level.
    beside = _count(fields, "prompt_cache_hit_tokens") or _count(fields, "cached_tokens")
    return _inclusive(
        total=_count(fields, "prompt_tokens"),
        output=_count(fields, "completion_tokens"),
        read=_count(details, "cached_tokens") or beside,
        write=_count(details, "cache_write_tokens") or _count(details, "cache_creation_tokens"),
        reasoning=_count(_as_mapping(fields.get("completion_tokens_details")), "reasoning_tokens"),
    )


def _inclusive(*, total: int, output: int, read: int, write: int, reasoning: int) -> CanonicalUsage:
    # Some routers report more cached tokens than prompt tokens: what they state is kept, only the rest is floored.
    return CanonicalUsage(max(0, total - read - write), output, read, write, reasoning)


def _as_mapping(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        dumped = dump(exclude_unset=True)
        return dumped if isinstance(dumped, Mapping) else {}
    attributes = getattr(value, "__dict__", None)
    return attributes if isinstance(attributes, Mapping) else {}


def _count(fields: Mapping[str, Any], key: str) -> int:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    if value != value or value in (float("inf"), float("-inf")):
        return 0
    return max(0, int(value))
