"""What a user says about a model in the config; it wins over the table.

models:
  my-finetune: {window: 32768, max_output: 4096}
  claude-opus-5: {prices: {input: 4, output: 20, cache_read: 0.4}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leporello.errors import ConfigError
from leporello.models.names import candidates, fold

FIELDS = ("window", "max_input", "max_output", "prices", "steps")
PRICE_FIELDS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


@dataclass(frozen=True, slots=True)
class Override:
    """The checked fields that a user gave for one model."""

    key: str
    window: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    prices: tuple[float | None, ...] | None = None
    steps: tuple[tuple[int, tuple[float | None, ...]], ...] | None = None


def override_for(name: str, overrides: Mapping[str, Mapping[str, Any]]) -> Override | None:
    """The user's entry for a model: by its exact name first, then by any name that means the same model."""
    if name in overrides:
        return checked(name, overrides[name])
    wanted = list(candidates(name)) if name else []
    by_fold = {fold(key): key for key in overrides}
    key = next((by_fold[candidate] for candidate in wanted if candidate in by_fold), None)
    return checked(key, overrides[key]) if key is not None else None


def checked(key: str, row: Mapping[str, Any]) -> Override:
    """One entry, or an error that names the model, the field and what is allowed."""
    if not isinstance(row, Mapping):
        raise ConfigError(f"models.{key}: give a mapping with some of {', '.join(FIELDS)}")
    for field in row:
        if field not in FIELDS:
            raise ConfigError(f"models.{key}.{field}: there is no such field; known are {', '.join(FIELDS)}")
    sizes = {field: _size(key, field, row[field]) for field in FIELDS[:3] if row.get(field) is not None}
    prices = _prices(f"models.{key}.prices", row["prices"]) if row.get("prices") is not None else None
    steps = _steps(key, row["steps"]) if row.get("steps") is not None else None
    return Override(key, prices=prices, steps=steps, **sizes)


def _size(key: str, field: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"models.{key}.{field}: {value!r} is not a positive number of tokens")
    return value


def _prices(where: str, value: Any) -> tuple[float | None, ...]:
    """By position as in the table, or by name."""
    if isinstance(value, Mapping):
        for field in value:
            if field not in PRICE_FIELDS:
                raise ConfigError(f"{where}.{field}: there is no such price; known are {', '.join(PRICE_FIELDS)}")
        value = [value.get(field) for field in PRICE_FIELDS]
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= len(PRICE_FIELDS):
        raise ConfigError(f"{where}: give input and output in USD per million tokens, then perhaps the cache prices")
    for position, number in enumerate(value):
        if number is None and position >= 2:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < float("inf"):
            raise ConfigError(f"{where}.{PRICE_FIELDS[position]}: {number!r} is not a price in USD per million tokens")
    return tuple(value)


def _steps(key: str, value: Any) -> tuple[tuple[int, tuple[float | None, ...]], ...]:
    where = f"models.{key}.steps"
    if not isinstance(value, list | tuple) or any(not isinstance(row, list | tuple) or len(row) != 2 for row in value):
        raise ConfigError(f"{where}: give a list of pairs of tokens and prices, for example [[200000, [6, 22.5]]]")
    return tuple((_size(key, "steps", above), _prices(where, prices)) for above, prices in value)
