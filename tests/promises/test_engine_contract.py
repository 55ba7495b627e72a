"""The default engine keeps the whole engine contract."""

from __future__ import annotations

from leporello.engines.base import ContextEngine
from leporello.engines.compressor import ContextCompressor
from leporello.testing import EngineContract


class TestContextCompressor(EngineContract):
    """`compressor`, the built-in."""

    name = "compressor"

    def make_engine(self, context_length: int) -> ContextEngine:
        return ContextCompressor(context_length)
