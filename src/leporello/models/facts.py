"""What is known about a model by any of its names: window, output cap, prices, price steps and cache rules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import orjson
from msgspec import Struct

from leporello.errors import ConfigError
from leporello.lazy_regex import lazy_regex
from leporello.usage import CanonicalUsage

_PROVIDERS = {
    "google": "gemini",
    "google-ai-studio": "gemini",
    "vertex": "vertex_ai",
    "vertexai": "vertex_ai",
    "google-vertex": "vertex_ai",
    "amazon-bedrock": "bedrock",
    "aws": "bedrock",
    "azure-openai": "azure",
    "together": "together_ai",
    "fireworks": "fireworks_ai",
    "fireworks-ai": "fireworks_ai",
    "z-ai": "zai",
    "zhipu": "zai",
    "moonshotai": "moonshot",
    "x-ai": "xai",
    "alibaba": "dashscope",
    "vercel": "vercel_ai_gateway",
}

_REGION = lazy_regex(r"^(?:us-gov|us|eu|apac|global|au|jp|ca|sa|me)\.(?=[a-z0-9-]+\.)")
_VENDOR = lazy_regex(r"^(?:anthropic|meta|mistral|amazon|cohere|ai21|deepseek|openai|qwen|writer|minimax|zai|google)\.")
_LONG_CONTEXT = lazy_regex(r"\[(\d{1,2})m\]$")
_BEDROCK_VERSION = lazy_regex(r"-v\d+$")
_DATE = lazy_regex(r"-(?:20\d{6}|20\d{2}-\d{2}-\d{2}|\d{4}|\d{2}-20\d{2}|\d{2}-\d{2})$")
_TAG = lazy_regex(r"-(?:latest|default|preview|beta|free|exp|experimental|thinking|think|instruct|hf|fp8)$")
_PACKAGING = lazy_regex(r"(?<=\d)-v\d+(?::\w+)*$")
_HAS_POINT = lazy_regex(r"-v\dp\d")
_POINT = lazy_regex(r"(?<=\d)p(?=\d)")
_V = lazy_regex(r"-v(?=\d-)")
_REVISION = lazy_regex(r"(-v\d+):\d+(?::\w+)?$")
_JOINTS = lazy_regex(r"[\s._@:]+")
_CLAUDE_ORDER = lazy_regex(r"^claude-(\d+(?:-\d+)?)-(opus|sonnet|haiku)(?=-|$)")


def provider_name(provider: str) -> str:
    folded = provider.strip().lower()
    return _PROVIDERS.get(folded, folded.replace("-", "_") if folded.replace("-", "_") in _UNDERSCORED else folded)


_UNDERSCORED = {"together_ai", "fireworks_ai", "vertex_ai", "azure_ai", "github_copilot", "vercel_ai_gateway"}


def region_of(name: str) -> str:
    """The region that a Bedrock name asks for (`us.anthropic.…`), which may cost more; empty when there is none."""
    found = _REGION.match(name.strip().lower().rpartition("/")[2])
    return found[0][:-1] if found else ""


def long_context(name: str) -> int | None:
    """The window that a name states itself: `claude-sonnet-4-5[1m]` asks for one million."""
    found = _LONG_CONTEXT.search(name.strip().lower())
    return int(found[1]) * 1_000_000 if found else None


def routes(name: str) -> tuple[str, ...]:
    """The routing parts before the model's own name, outermost first, as provider names."""
    parts = [part for part in name.strip().lower().split("/") if part]
    return tuple(provider_name(part) for part in parts[:-1])


def fold(name: str) -> str:
    """The model's own part of a name in one spelling: lower case, without route, region and vendor prefix."""
    own = _LONG_CONTEXT.sub("", name.strip().lower()).rstrip("/").rpartition("/")[2]
    bare = _VENDOR.sub("", _REGION.sub("", own))
    if bare != own:
        # A Bedrock name: its `-v1:0` is the packaging, unless nothing else tells the version (`claude-v2`).
        own = _PACKAGING.sub("", bare)
    own = _POINT.sub("-", own) if _HAS_POINT.search(own) else own
    own = _V.sub("-", own)
    own = _REVISION.sub(r"\1", own)
    own = _JOINTS.sub("-", own).strip("-")
    return _CLAUDE_ORDER.sub(_reorder, own)


def _reorder(found: re.Match[str]) -> str:
    # Since version 4 the vendor writes the size first; before, the version.
    major = int(found[1].partition("-")[0])
    return f"claude-{found[2]}-{found[1]}" if major >= 4 else found[0]


def candidates(name: str) -> Iterator[str]:
    """Names to look up, from the most to the least specific. All of them mean the same model."""
    current = fold(name)
    yield current
    while True:
        shorter = _BEDROCK_VERSION.sub("", current)
        if shorter == current:
            shorter = _DATE.sub("", current)
        if shorter == current:
            shorter = _TAG.sub("", current)
        if shorter == current or not shorter:
            return
        current = _CLAUDE_ORDER.sub(_reorder, shorter)
        yield current


def shorter_names(name: str) -> Iterator[str]:
    """The name with its last segments dropped one by one: nearest relatives, not the same model."""
    segments = fold(name).split("-")
    for stop in range(len(segments) - 1, 1, -1):
        yield "-".join(segments[:stop])


_VENDORS: tuple[tuple[str, str], ...] = (
    (r"claude", "anthropic"),
    (r"gpt|chatgpt|codex|^o[134](-|$)|davinci", "openai"),
    (r"gemini|gemma", "google"),
    (r"deepseek", "deepseek"),
    (r"mistral|mixtral|codestral|devstral|magistral|pixtral|ministral", "mistral"),
    (r"llama", "meta"),
    (r"qwen|qwq", "qwen"),
    (r"grok", "xai"),
    (r"glm", "zai"),
    (r"kimi|moonshot", "moonshot"),
    (r"minimax", "minimax"),
    (r"nova", "amazon"),
    (r"command|cohere", "cohere"),
)


def vendor_of(name: str) -> str:
    """Who made the model, whoever serves it; an empty string when the name doesn't say."""
    own = fold(name)
    return next((vendor for pattern, vendor in _VENDORS if re.search(pattern, own)), "")


Row: TypeAlias = dict[str, Any]


class ModelTable(Struct, frozen=True):
    """Rows by folded name, `provider/name` where one provider differs; `as_of` is the date of the data."""

    as_of: str
    rows: dict[str, Row]


@cache
def table() -> ModelTable:
    with open(os.path.join(os.path.dirname(__file__), "table.json"), "rb") as file:
        data = orjson.loads(file.read())
    return ModelTable(data["as_of"], data["models"])


FIELDS = ("window", "max_input", "max_output", "prices", "steps")
PRICE_FIELDS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


def _override(name: str, overrides: Mapping[str, Mapping[str, Any]]) -> tuple[str, Row] | None:
    """The user's entry for a model, checked: by its exact name first, then by any name that means the same model."""
    key: str | None = name
    if name not in overrides:
        by_fold = {fold(key): key for key in overrides}
        known = (by_fold[candidate] for candidate in candidates(name) if candidate in by_fold)
        key = next(known, None) if name else None
    return (key, _checked(key, overrides[key])) if key is not None else None


def _checked(key: str, row: Mapping[str, Any]) -> Row:
    """One entry, or an error that names the model, the field and what is allowed."""
    if not isinstance(row, Mapping):
        raise ConfigError(f"models.{key}: give a mapping with some of {', '.join(FIELDS)}")
    given: Row = {}
    for field, value in row.items():
        if field not in FIELDS:
            raise ConfigError(f"models.{key}.{field}: there is no such field; known are {', '.join(FIELDS)}")
        if value is None:
            continue
        if field == "prices":
            given[field] = _given_prices(f"models.{key}.prices", value)
        else:
            given[field] = _given_steps(key, value) if field == "steps" else _size(key, field, value)
    return given


def _size(key: str, field: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"models.{key}.{field}: {value!r} is not a positive number of tokens")
    return value


def _given_prices(where: str, value: Any) -> tuple[float | None, ...]:
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


def _given_steps(key: str, value: Any) -> tuple[tuple[int, tuple[float | None, ...]], ...]:
    where = f"models.{key}.steps"
    if not isinstance(value, list | tuple) or any(not isinstance(row, list | tuple) or len(row) != 2 for row in value):
        raise ConfigError(f"{where}: give a list of pairs of tokens and prices, for example [[200000, [6, 22.5]]]")
    return tuple((_size(key, "steps", above), _given_prices(where, prices)) for above, prices in value)


DEFAULT_WINDOW = 128_000
_GPT_VERSION = lazy_regex(r"gpt-(\d+)(?:-(\d+))?")
_VENDOR_WINDOWS = {"anthropic": 200_000}
_TOOL_SEARCH: Mapping[str, tuple[re.Pattern[str], Mapping[str, str], tuple[int, int]]] = {
    "anthropic": (
        lazy_regex(r"claude-[a-z]+-(\d)(?:-(\d)(?!\d))?"),
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        (4, 5),
    ),
    "openai": (_GPT_VERSION, {"type": "tool_search"}, (5, 4)),
}
"""By vendor: how a name states its version, the tool, and since which version there is one."""


class Prices(Struct, frozen=True):
    """USD per million tokens. None where the source doesn't say."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write_5m: float | None = None
    cache_write_1h: float | None = None


class PriceStep(Struct, frozen=True):
    """Above this many prompt tokens the whole request is billed at other prices."""

    above: int
    prices: Prices


class CacheRules(Struct, frozen=True):
    min_prefix: int = 1_024
    lookback: int | None = None
    """Content blocks searched before a breakpoint; None: no such limit."""
    breakpoints: int = 0
    """Explicit breakpoints a request may carry; 0: the vendor places them."""
    ttl_seconds: int = 300
    long_ttl_seconds: int | None = None
    step: int = 128
    """Automatic caches read in multiples of so many tokens."""
    keeps_answers: bool = False
    """Whether an answer is in the cache as soon as it is written, beside the request it answers."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model as one provider serves it."""

    name: str
    """As it was asked for."""
    id: str
    """The table's name for it; empty when unknown."""
    window: int
    max_input: int
    max_output: int | None
    prices: Prices | None
    steps: tuple[PriceStep, ...]
    cache: CacheRules
    vendor: str
    source: str
    known: bool
    window_assumed: bool = False
    """Whether nothing at all is known about the window."""

    @property
    def tool_search(self) -> Mapping[str, str] | None:
        """The vendor's own tool that finds tools whose loading is put off (`defer_loading`); None: it has none."""
        found = _TOOL_SEARCH.get(self.vendor)
        version = found and found[0].search(self.id)
        return found[1] if found and version and (int(version[1]), int(version[2] or 0)) >= found[2] else None

    def prices_at(self, prompt_tokens: int) -> Prices | None:
        found = self.prices
        for step in self.steps:
            if prompt_tokens > step.above:
                found = step.prices
        return found


def model_facts(
    name: str | None, provider: str = "", overrides: Mapping[str, Mapping[str, Any]] | None = None
) -> ModelFacts:
    """Facts about a model by any of its names. `overrides` are the user's own entries (see `overrides`) and win."""
    name = name or ""
    facts = _look_up(name, provider)
    asked = long_context(name)
    if asked:
        source = f"stated in the name {name!r}"
        facts = replace(facts, window=asked, max_input=asked, source=source, window_assumed=False)
    override = _override(name, overrides or {})
    return _overridden(facts, *override) if override else facts


def _look_up(name: str, provider: str) -> ModelFacts:
    data = table()
    hints = _hints(name, provider)
    for candidate in candidates(name):
        for key in (*(f"{hint}/{candidate}" for hint in hints), candidate):
            if key in data.rows:
                return _facts(name, key, data.rows[key], f"model table of {data.as_of}")
    for candidate in shorter_names(name):
        if candidate in data.rows:
            row = data.rows[candidate]
            near = _facts(name, candidate, row, f"not in the model table of {data.as_of}; taken from {candidate!r}")
            # A relative's window is a fair guess; its prices would be a claim.
            return replace(near, id="", prices=None, steps=(), known=False)
    return _unknown(name)


def _hints(name: str, provider: str) -> tuple[str, ...]:
    """Providers whose own rows are tried before the model's general one, the most particular first."""
    named = [provider_name(provider), *routes(name)] if provider else list(routes(name))
    region = region_of(name)
    if region:
        named = [f"bedrock.{region}", *named, "bedrock"]
    return tuple(dict.fromkeys(named))


def _facts(name: str, row_id: str, row: Row, source: str) -> ModelFacts:
    window = int(row["window"])
    vendor = vendor_of(row_id)
    return ModelFacts(
        name=name,
        id=row_id,
        window=window,
        max_input=int(row.get("max_input", window)),
        max_output=row.get("max_output"),
        prices=Prices(*row["prices"]) if row.get("prices") else None,
        steps=tuple(_steps(row.get("steps", ()))),
        cache=cache_rules(row_id, vendor, row.get("cache_min")),
        vendor=vendor,
        source=source,
        known=True,
    )


def _steps(rows: Any) -> list[PriceStep]:
    return sorted((PriceStep(int(above), Prices(*prices)) for above, prices in rows), key=lambda step: step.above)


def _unknown(name: str) -> ModelFacts:
    vendor = vendor_of(name)
    window = _VENDOR_WINDOWS.get(vendor, DEFAULT_WINDOW)
    source = f"unknown model {name!r}: {window:,} assumed" if name else f"no model given: {window:,} assumed"
    rules = cache_rules(fold(name), vendor, None)
    return ModelFacts(name, "", window, window, None, None, (), rules, vendor, source, False, window_assumed=True)


def _overridden(facts: ModelFacts, key: str, given: Row) -> ModelFacts:
    window = given.get("window", facts.window)
    max_input = given.get("max_input", window if "window" in given else facts.max_input)
    prices, steps = facts.prices, facts.steps
    if "prices" in given:
        # The table's steps belong to the table's prices.
        prices, steps = Prices(*given["prices"]), ()
    return replace(
        facts,
        window=window,
        max_input=min(max_input, window),
        max_output=given.get("max_output", facts.max_output),
        prices=prices,
        steps=tuple(_steps(given["steps"])) if "steps" in given else steps,
        source=f"models.{key} in the config",
        known=True,
        window_assumed=facts.window_assumed and "window" not in given,
    )


def cache_rules(name: str, vendor: str, min_prefix: int | None) -> CacheRules:
    """The vendor's rules; the minimum prefix comes from the table where it states one."""
    if vendor == "anthropic":
        return CacheRules(min_prefix or 1_024, lookback=20, breakpoints=4, ttl_seconds=300, long_ttl_seconds=3_600)
    if vendor == "openai":
        newer = _GPT_VERSION.search(name)
        if newer and (int(newer[1]), int(newer[2] or 0)) >= (5, 6):
            return CacheRules(min_prefix or 1_024, breakpoints=4, ttl_seconds=1_800)
        # Documented: 5 to 10 minutes, at most an hour. Recorded sessions were read after 12 minutes, never after 20.
        return CacheRules(min_prefix or 1_024, ttl_seconds=1_200, long_ttl_seconds=86_400)
    if vendor == "deepseek":
        # On disk, "a few hours to a few days".
        return CacheRules(min_prefix or 64, ttl_seconds=7_200, step=64, keeps_answers=True)
    return CacheRules(min_prefix or 1_024)


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
