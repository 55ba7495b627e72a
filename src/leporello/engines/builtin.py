"""The engines that come with Leporello, by the name under which the config selects them."""

from __future__ import annotations

from leporello.engines.compressor import ContextCompressor
from leporello.engines.lcm import LcmEngine, LcmSettings
from leporello.errors import InputError
from leporello.models import Limits
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter

BUILTIN = ("compressor", "lcm")


def make_builtin(
    name: str,
    limits: Limits,
    counter: TokenCounter,
    summariser: Summariser | None,
    lcm: LcmSettings | None = None,
) -> ContextCompressor:
    """A new engine instance; one serves one conversation. `lcm` holds the settings of the engine of that name."""
    if name == "compressor":
        return ContextCompressor(limits=limits, counter=counter, summariser=summariser)
    if name == "lcm":
        return LcmEngine(limits=limits, counter=counter, summariser=summariser, settings=lcm)
    raise InputError(f"there is no engine {name!r}; built in are: {', '.join(BUILTIN)}")
