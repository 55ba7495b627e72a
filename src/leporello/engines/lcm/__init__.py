"""`lcm`: the lossless engine. History as a growing tree of summaries, of which the model sees the newest level."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from leporello.config.kinds import number
from leporello.config.sources import closest_word
from leporello.engines.compressor import BuiltinEngine, ContextCompressor
from leporello.engines.lcm.folder import MOST_NODES, LcmSettings, fold_into_nodes

__all__ = ["LcmEngine", "LcmSettings", "lcm_engine", "read_settings"]


def lcm_engine(settings: LcmSettings | None = None) -> BuiltinEngine:
    """The engine that folds into nodes as the settings say."""
    return BuiltinEngine("lcm", partial(fold_into_nodes, settings=settings or LcmSettings()))


class LcmEngine(ContextCompressor):
    """Shows the past as a frontier of summaries that stay as they are, byte for byte, until they are merged."""

    def __init__(self, context_length: int = 128_000, *, settings: LcmSettings | None = None, **options: Any) -> None:
        super().__init__(context_length, **options)
        self._engine = lcm_engine(settings)


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
