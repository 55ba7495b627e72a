"""`lcm` as an engine: the contract of every engine, and what its frontier promises."""

from __future__ import annotations

from leporello.engines.base import ContextEngine
from leporello.engines.lcm import LcmEngine
from leporello.testing import EngineContract


class TestLcmEngine(EngineContract):
    """`lcm`, the lossless engine, keeps the whole engine contract."""

    name = "lcm"

    def make_engine(self, context_length: int) -> ContextEngine:
        return LcmEngine(context_length)
