"""The engines that come with Leporello, by the name under which the config selects them."""

from __future__ import annotations

from collections.abc import Callable

from leporello.engines.compressor import ContextCompressor
from leporello.engines.lcm import LcmEngine
from leporello.errors import InputError
from leporello.models import Limits
from leporello.summary.base import Narrator
from leporello.tokens import TokenCounter

EngineFactory = Callable[[Limits, TokenCounter, Narrator | None], ContextCompressor]


def _compressor(limits: Limits, counter: TokenCounter, narrator: Narrator | None) -> ContextCompressor:
    return ContextCompressor(limits=limits, counter=counter, narrator=narrator)


def _lcm(limits: Limits, counter: TokenCounter, narrator: Narrator | None) -> ContextCompressor:
    return LcmEngine(limits=limits, counter=counter, narrator=narrator)


BUILTIN: dict[str, EngineFactory] = {"compressor": _compressor, "lcm": _lcm}


def make_builtin(name: str, limits: Limits, counter: TokenCounter, narrator: Narrator | None) -> ContextCompressor:
    """A new engine instance; one serves one conversation."""
    factory = BUILTIN.get(name)
    if factory is None:
        raise InputError(f"there is no engine {name!r}; built in are: {', '.join(sorted(BUILTIN))}")
    return factory(limits, counter, narrator)
