"""`lcm`: the lossless engine. History as a growing tree of summaries, of which the model sees the newest level."""

from __future__ import annotations

from functools import partial
from typing import Any

from leporello.engines.compressor import BuiltinEngine, ContextCompressor
from leporello.engines.lcm.folder import fold_into_nodes
from leporello.engines.lcm.settings import LcmSettings, read_settings

__all__ = ["LcmEngine", "LcmSettings", "lcm_engine", "read_settings"]


def lcm_engine(settings: LcmSettings | None = None) -> BuiltinEngine:
    """The engine that folds into nodes as the settings say."""
    return BuiltinEngine("lcm", partial(fold_into_nodes, settings=settings or LcmSettings()))


class LcmEngine(ContextCompressor):
    """Shows the past as a frontier of summaries that stay as they are, byte for byte, until they are merged."""

    def __init__(self, context_length: int = 128_000, *, settings: LcmSettings | None = None, **options: Any) -> None:
        super().__init__(context_length, **options)
        self._engine = lcm_engine(settings)
