"""What can sit the exam: engines and searches by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import cast

from leporello.engines.base import ContextEngine
from leporello.errors import InputError
from leporello.messages import Message
from leporello.replay.exam import Search

ENGINES: dict[str, str] = {
    "compressor": "leporello.engines.compressor:ContextCompressor",
    "lcm": "leporello.engines.lcm:LcmEngine",
    "whole": "leporello.replay.baselines:WholeEngine",
    "clear-tools": "leporello.replay.baselines:ClearToolsEngine",
}

SEARCHES: dict[str, str] = {
    "plain": "leporello.replay.baselines:PlainSearch",
}


def make_engine(name: str, window: int) -> ContextEngine:
    """A fresh engine for one conversation."""
    factory = cast(Callable[[int], ContextEngine], _load(ENGINES, name, "engine"))
    return factory(window)


def make_search(name: str, messages: Sequence[Message]) -> Search:
    """A search over one session."""
    factory = cast(Callable[[Sequence[Message]], Search], _load(SEARCHES, name, "search"))
    return factory(messages)


def _load(table: dict[str, str], name: str, what: str) -> object:
    target = table.get(name)
    if target is None:
        raise InputError(f"there is no {what} {name!r} (known: {', '.join(table)})")
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
