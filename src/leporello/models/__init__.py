"""Windows, output caps, prices, price steps and cache rules of models, and the one resolver of limits."""

from leporello.models.facts import CacheRules, ModelFacts, Prices, PriceStep, cost, model_facts
from leporello.models.limits import LearnedLimits, Limits, resolve_limits

__all__ = [
    "CacheRules",
    "LearnedLimits",
    "Limits",
    "ModelFacts",
    "PriceStep",
    "Prices",
    "cost",
    "model_facts",
    "resolve_limits",
]
