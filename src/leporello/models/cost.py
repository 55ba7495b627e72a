"""What a call cost."""

from __future__ import annotations

from leporello.models.facts import ModelFacts
from leporello.usage import CanonicalUsage

_LONG = "1h"


def cost(usage: CanonicalUsage, facts: ModelFacts, ttl: str = "5m") -> float | None:
    """USD for one call; None when the model has no known prices. A price step applies to the whole request."""
    prices = facts.prices_at(usage.prompt_tokens)
    if prices is None:
        return None
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.cache_write_5m if prices.cache_write_5m is not None else prices.input
    if ttl == _LONG and prices.cache_write_1h is not None:
        write = prices.cache_write_1h
    total = (
        usage.input_tokens * prices.input
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
        + usage.output_tokens * prices.output
    )
    return total / 1_000_000
