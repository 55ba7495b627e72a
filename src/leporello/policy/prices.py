"""What tokens cost, in units of one uncached input token, and how long a prompt cache stays warm. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.models.facts import ModelFacts, Prices
from leporello.usage import money

LONG_TTL = "1h"
VENDORS_WITH_CACHE = {"anthropic": (0.1, 1.25), "openai": (0.1, 1.25), "google": (0.1, 1.0), "deepseek": (0.02, 1.0)}
"""Read and write of models whose own prices nobody knows, by who made them."""
LOCAL = (0.1, 1.0)
"""Time is the price of a model that runs at home: reading a token into the cache against attending to it in an answer
of some 200 tokens."""
LOCAL_OUTPUT = 5.0


@dataclass(frozen=True, slots=True)
class UnitPrices:
    """Of one token that is read from the cache, written to it, sent without it, or answered."""

    read: float
    write: float
    plain: float = 1.0
    output: float = LOCAL_OUTPUT


@dataclass(frozen=True, slots=True)
class PriceTable:
    """The prices of one model, in units of its plain input token below the first price step."""

    base: UnitPrices
    steps: tuple[tuple[int, UnitPrices], ...] = ()
    """Above so many prompt tokens the whole request has other prices; ascending."""
    warm_seconds: float | None = None
    """How long after a request its prefix is still cached; None: as long as the server runs."""
    dollars: float | None = None
    """What a million units cost; None: nobody knows."""

    def at(self, tokens: int) -> UnitPrices:
        """The prices of a request of so many tokens."""
        found = self.base
        for above, prices in self.steps:
            if tokens > above:
                found = prices
        return found

    def money(self, units: float) -> str:
        """Units in dollars, or in tokens where nobody knows the price."""
        if self.dollars is None:
            return f"{units:,.0f} tokens"
        return money(units * self.dollars / 1_000_000)

    def converted(self, units: float, table: PriceTable) -> float:
        """Units of another table as those of this one that are worth the same; the same where a price is not known."""
        return units * table.dollars / self.dollars if table.dollars and self.dollars else units


def price_table(facts: ModelFacts, ttl: str = "5m") -> PriceTable:
    """The prices of a model with this cache TTL; those of its vendor, or of a local model, when it has none."""
    rules = facts.cache
    long = ttl == LONG_TTL and rules.long_ttl_seconds is not None
    warm = rules.long_ttl_seconds if long else rules.ttl_seconds
    prices = facts.prices
    if prices is None or not prices.input:
        read, write = VENDORS_WITH_CACHE.get(facts.vendor, LOCAL)
        return PriceTable(UnitPrices(read, write), (), warm if facts.vendor in VENDORS_WITH_CACHE else None)
    steps = tuple((step.above, _units(step.prices, prices.input, long=long)) for step in facts.steps)
    return PriceTable(_units(prices, prices.input, long=long), steps, warm, prices.input)


def _units(prices: Prices, unit: float, *, long: bool) -> UnitPrices:
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.cache_write_1h if long and prices.cache_write_1h is not None else prices.cache_write_5m
    return UnitPrices(
        read / unit, (prices.input if write is None else write) / unit, prices.input / unit, prices.output / unit
    )
