"""The engines that come with Leporello, by the name under which the config selects them."""

from __future__ import annotations

from leporello.engines.compressor import COMPRESSOR, BuiltinEngine, ContextCompressor
from leporello.engines.lcm import LcmEngine, LcmSettings, lcm_engine
from leporello.errors import InputError
from leporello.models import Limits
from leporello.policy.decision import BY_WINDOW
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter

BUILTIN = {
    "compressor": "Folds the middle of a conversation into one handoff; the default.",
    "lcm": "Keeps a growing tree of summaries and shows its frontier.",
}
"""What `leporello plugins` says about each."""


def builtin_engine(name: str, lcm: LcmSettings | None = None) -> BuiltinEngine:
    """The engine for stored conversations. `lcm` holds the settings of the engine of that name."""
    return lcm_engine(lcm) if name == "lcm" else COMPRESSOR


def make_builtin(
    name: str,
    limits: Limits,
    counter: TokenCounter,
    summariser: Summariser | None,
    lcm: LcmSettings | None = None,
    policy: str = BY_WINDOW,
) -> ContextCompressor:
    """A new engine for plain lists; one instance serves one conversation."""
    if name == "compressor":
        return ContextCompressor(limits=limits, counter=counter, summariser=summariser, policy=policy)
    if name == "lcm":
        return LcmEngine(limits=limits, counter=counter, summariser=summariser, settings=lcm, policy=policy)
    raise InputError(f"there is no engine {name!r}; built in are: {', '.join(BUILTIN)}")
