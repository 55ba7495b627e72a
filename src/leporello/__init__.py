"""Leporello keeps an LLM agent's conversation inside the model's window, and loses nothing of it.

    from leporello import compress

    shorter = compress(messages, window=128_000)

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leporello.api import compress
    from leporello.config import Home, Settings, load_settings
    from leporello.conversation import Conversation
    from leporello.engines.base import ContextEngine
    from leporello.engines.compressor import ContextCompressor
    from leporello.errors import LeporelloError
    from leporello.events import CompactionReport, Outcome
    from leporello.messages import Message
    from leporello.turns import validate
    from leporello.usage import CanonicalUsage

_HOMES = {
    "CanonicalUsage": "leporello.usage",
    "CompactionReport": "leporello.events",
    "ContextCompressor": "leporello.engines.compressor",
    "ContextEngine": "leporello.engines.base",
    "Conversation": "leporello.conversation",
    "Home": "leporello.config",
    "LeporelloError": "leporello.errors",
    "Message": "leporello.messages",
    "Outcome": "leporello.events",
    "Settings": "leporello.config",
    "compress": "leporello.api",
    "load_settings": "leporello.config",
    "validate": "leporello.turns",
}

__all__ = [
    "CanonicalUsage",
    "CompactionReport",
    "ContextCompressor",
    "ContextEngine",
    "Conversation",
    "Home",
    "LeporelloError",
    "Message",
    "Outcome",
    "Settings",
    "compress",
    "load_settings",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'leporello' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
