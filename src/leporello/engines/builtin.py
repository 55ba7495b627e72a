"""The engines that come with Leporello, by the name under which the config selects them."""

from __future__ import annotations

from collections.abc import Callable

from leporello.engines.compressor import ContextCompressor
from leporello.engines.lcm import LcmEngine
from leporello.errors import InputError
from leporello.models import Limits
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter

EngineFactory = Callable[[Limits, TokenCounter, Summariser | None], ContextCompressor]


def _compressor(limits: Limits, counter: TokenCounter, summariser: Summariser | None) -> ContextCompressor:
    return ContextCompressor(limits=limits, counter=counter, summariser=summariser)


def _lcm(limits: Limits, counter: TokenCounter, summariser: Summariser | None) -> ContextCompressor:
    return LcmEngine(limits=limits, counter=counter, summariser=summariser)


BUILTIN: dict[str, EngineFactory] = {"compressor": _compressor, "lcm": _lcm}


def make_builtin(name: str, limits: Limits, counter: TokenCounter, summariser: Summariser | None) -> ContextCompressor:
    """A new engine instance; one serves one conversation."""
    factory = BUILTIN.get(name)
    if factory is None:
        raise InputError(f"there is no engine {name!r}; built in are: {', '.join(sorted(BUILTIN))}")
    return factory(limits, counter, summariser)
