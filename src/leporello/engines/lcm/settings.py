"""The section `lcm` of config.yaml, as the built-in engine of that name reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leporello.config.kinds import number
from leporello.config.sources import closest_word

MOST_NODES = 12
"""More blocks than this would take more in marks than they bring, and caches look back only so many blocks."""


@dataclass(frozen=True, slots=True)
class LcmSettings:
    """What the tree of summaries looks like."""

    leaf_tokens: int | None = None
    """Tokens of the messages that one leaf stands for; None: as many as a compaction aims to leave."""
    max_nodes: int = MOST_NODES


_KINDS = {
    "leaf_tokens": number(least=500, whole=True, unit="tokens"),
    "max_nodes": number(least=2, most=MOST_NODES, whole=True),
}


def read_settings(section: Mapping[str, Any]) -> tuple[LcmSettings, list[str]]:
    """The settings of a section, and a warning for each line of it that does not count."""
    values: dict[str, Any] = {}
    warnings: list[str] = []
    for key, value in section.items():
        kind = _KINDS.get(key)
        if kind is None:
            nearest = closest_word(key, list(_KINDS))
            known = " and ".join(f"`lcm.{name}`" for name in _KINDS)
            advice = f"Did you mean `lcm.{nearest}`?" if nearest else f"The engine knows {known}."
            warnings.append(f"There is no setting `lcm.{key}`; it is ignored. {advice}")
            continue
        try:
            values[key] = kind.check(value)
        except ValueError:
            warnings.append(f"`lcm.{key}` can't be {value!r}; it is ignored: it must be {kind.allowed}.")
    return LcmSettings(**values), warnings
