"""Importance: one scored, explainable function that decides what is kept wherever something must be left out.

The score of a unit is a weighted sum of its features, read as the log-odds that somebody will need exactly this piece
later. `weights.json` holds all weights in one place; `scripts/fit_importance.py` makes it from recorded sessions and
question banks. Features are traits of the text, of where it stands, and of what happened to it later; none of them
knows a project, a file or a question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import orjson

from leporello.ledger.line_features import PROSE_PATTERNS, TOOL_PATTERNS, line_features

COST_POWER = 0.7
"""How strongly length counts against a unit: 0 ignores it, 1 ranks by value per token."""

CHARS_PER_TOKEN = 3.2
LINE_OVERHEAD = 2

PREFIX = {"user": "u", "assistant": "a", "tool": "t"}


@dataclass(frozen=True, slots=True)
class Later:
    """What the rest of the conversation says about a unit: how many of its identifiers were cited in later text,
    used in later calls, how rare its rarest one is (1 = nowhere else), and how often the same text stood before."""

    cited: int = 0
    reused: int = 0
    rarity: float = 0.0
    repeats: int = 1


@cache
def weights() -> Mapping[str, float]:
    data = orjson.loads(files("leporello.ledger").joinpath("weights.json").read_bytes())
    return {str(name): float(value) for name, value in data["weights"].items()}


def text_features(text: str, role: str, position: int, total: int, work: str = "") -> dict[str, float]:
    """Features that are known when the message arrives."""
    p = PREFIX[role]
    patterns = TOOL_PATTERNS if role == "tool" else PROSE_PATTERNS
    found = line_features(text, patterns)
    bare = text.strip()
    features = {f"{p}_{name}": 1.0 for name in found}
    features[f"{p}_bias"] = 1.0
    features[f"{p}_log_total"] = math.log(total)
    features[f"{p}_log_length"] = math.log(1 + len(bare))
    features[f"{p}_dense"] = sum(map(str.isalnum, text)) / max(1, len(text))
    features[f"{p}_spaces"] = text.count(" ") / max(1, len(text))
    for name, holds in (
        ("first", position == 0),
        ("first3", position < 3),
        ("last", position == total - 1),
        ("last3", position >= total - 3),
        ("short", len(bare) < 15),
        ("indent", text[:1] in (" ", "\t")),
    ):
        if holds:
            features[f"{p}_{name}"] = 1.0
    if work:
        features[f"c_{work}"] = 1.0
        features[f"n_{work}"] = math.log(total)
        if "error" in found:
            features[f"e_{work}"] = 1.0
    return features


def later_features(role: str, identifiers: int, later: Later) -> dict[str, float]:
    """Features that are known only when something is folded."""
    p = PREFIX[role]
    return {
        f"{p}_ids": float(min(identifiers, 4)),
        f"{p}_cited": float(min(later.cited, 3)),
        f"{p}_reused": float(min(later.reused, 3)),
        f"{p}_rare": later.rarity,
        f"{p}_repeats": math.log(later.repeats),
    }


@cache
def _later_weights(role: str) -> tuple[float, float, float, float, float]:
    table, p = weights(), PREFIX[role]
    ids, cited, reused, rare, repeats = (
        table.get(f"{p}_{name}", 0.0) for name in ("ids", "cited", "reused", "rare", "repeats")
    )
    return ids, cited, reused, rare, repeats


def later_score(role: str, identifiers: int, later: Later) -> float:
    """`weigh(later_features(...))` without building the features: ranking asks for it tens of thousands of times."""
    ids, cited, reused, rare, repeats = _later_weights(role)
    return (
        ids * min(identifiers, 4)
        + cited * min(later.cited, 3)
        + reused * min(later.reused, 3)
        + rare * later.rarity
        + repeats * math.log(later.repeats)
    )


@cache
def most_later(role: str, identifiers: int) -> float:
    """The highest `later_score` there can be for a unit with so many identifiers."""
    ids, cited, reused, rare, repeats = _later_weights(role)
    if repeats > 0:
        return math.inf
    some = min(identifiers, 3)
    return ids * min(identifiers, 4) + max(0.0, cited) * some + max(0.0, reused) * some + max(0.0, rare) * bool(some)


def weigh(features: Mapping[str, float]) -> float:
    table = weights()
    return sum(table.get(name, 0.0) * value for name, value in features.items())


def value(log_odds: float, tokens: int) -> float:
    """What a unit is worth per what it costs; the order in which units enter a budget."""
    return 1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, log_odds)))) / float(max(1, tokens) ** COST_POWER)


def worth(log_odds: float, chars: int) -> float:
    """`value` of a unit of this many characters. Only for the order; what enters a budget is counted properly."""
    return value(log_odds, int(chars / CHARS_PER_TOKEN) + LINE_OVERHEAD)


def explain(features: Mapping[str, float]) -> list[tuple[str, float]]:
    """Each feature's share of the score, largest first."""
    table = weights()
    shares: Iterable[tuple[str, float]] = ((name, table.get(name, 0.0) * amount) for name, amount in features.items())
    return sorted((share for share in shares if share[1]), key=lambda share: -abs(share[1]))
