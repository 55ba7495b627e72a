"""Leporello keeps an LLM agent's conversation inside the model's window, and loses nothing of it.

    from leporello import compress

    shorter = compress(messages, window=128_000)

Everything that these functions and classes take or return is exported here; other modules are internal, unless the
documentation imports from them. Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module

from leporello.deprecation import find_moved_modules

TYPE_CHECKING = False  # as checkers of types know it; `typing` takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from leporello.api import Compressed, compress
    from leporello.cancel import CancelToken
    from leporello.config import Home, Settings, load_settings
    from leporello.conversation import Conversation, Request
    from leporello.conversation.artifacts import Pinboard
    from leporello.engines.base import ContextEngine
    from leporello.engines.compressor import ContextCompressor
    from leporello.errors import (
        Cancelled,
        ConfigError,
        EngineError,
        FixedPartTooLarge,
        InputError,
        LeaseLost,
        LeporelloError,
        NoModel,
        NotFound,
        PluginError,
        ProviderError,
        SchemaTooNew,
        StoreBusy,
        StoreConflict,
        StoreCorrupt,
        StoreError,
        StoreUnavailable,
        SummaryError,
        ToolError,
    )
    from leporello.events import CompactionEvent, CompactionReport, Outcome, Span, Verification
    from leporello.messages import Message, Messages
    from leporello.models import Limits
    from leporello.plugins.context import PluginExtras
    from leporello.plugins.host import PluginHost
    from leporello.providers.base import ModelReply
    from leporello.recall.base import RecallMode, RecallQuery, Window
    from leporello.recall.tools import RecallTools
    from leporello.store import Store, StoreOptions, open_store
    from leporello.store.records import Metadata, Pin, UsageTotals, View, ViewLine
    from leporello.summaries.base import Summariser, Summary, SummaryTask
    from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section
    from leporello.tokens import TokenCounter
    from leporello.tokens.meter import PromptSize
    from leporello.turns import Violation, ViolationKind, validate
    from leporello.usage import CanonicalUsage

_NAMES = {
    "leporello.api": "Compressed compress",
    "leporello.cancel": "CancelToken",
    "leporello.config": "Home Settings load_settings",
    "leporello.conversation": "Conversation Request",
    "leporello.conversation.artifacts": "Pinboard",
    "leporello.engines.base": "ContextEngine",
    "leporello.engines.compressor": "ContextCompressor",
    "leporello.errors": (
        "Cancelled ConfigError EngineError FixedPartTooLarge InputError "
        "LeaseLost LeporelloError NoModel NotFound PluginError ProviderError SchemaTooNew "
        "StoreBusy StoreConflict StoreCorrupt StoreError StoreUnavailable SummaryError "
        "ToolError"
    ),
    "leporello.events": "CompactionEvent CompactionReport Outcome Span Verification",
    "leporello.messages": "Message Messages",
    "leporello.models": "Limits",
    "leporello.plugins.context": "PluginExtras",
    "leporello.plugins.host": "PluginHost",
    "leporello.providers.base": "ModelReply",
    "leporello.recall.base": "RecallMode RecallQuery Window",
    "leporello.recall.tools": "RecallTools",
    "leporello.store": "Store StoreOptions open_store",
    "leporello.store.records": "Metadata Pin UsageTotals View ViewLine",
    "leporello.summaries.base": "Summariser Summary SummaryTask",
    "leporello.summaries.handoff": "Handoff HandoffLine LineOrigin Section",
    "leporello.tokens": "TokenCounter",
    "leporello.tokens.meter": "PromptSize",
    "leporello.turns": "Violation ViolationKind validate",
    "leporello.usage": "CanonicalUsage",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "CancelToken",
    "Cancelled",
    "CanonicalUsage",
    "CompactionEvent",
    "CompactionReport",
    "Compressed",
    "ConfigError",
    "ContextCompressor",
    "ContextEngine",
    "Conversation",
    "EngineError",
    "FixedPartTooLarge",
    "Handoff",
    "HandoffLine",
    "Home",
    "InputError",
    "LeaseLost",
    "LeporelloError",
    "Limits",
    "LineOrigin",
    "Message",
    "Messages",
    "Metadata",
    "ModelReply",
    "NoModel",
    "NotFound",
    "Outcome",
    "Pin",
    "Pinboard",
    "PluginError",
    "PluginExtras",
    "PluginHost",
    "PromptSize",
    "ProviderError",
    "RecallMode",
    "RecallQuery",
    "RecallTools",
    "Request",
    "SchemaTooNew",
    "Section",
    "Settings",
    "Span",
    "Store",
    "StoreBusy",
    "StoreConflict",
    "StoreCorrupt",
    "StoreError",
    "StoreOptions",
    "StoreUnavailable",
    "Summariser",
    "Summary",
    "SummaryError",
    "SummaryTask",
    "TokenCounter",
    "ToolError",
    "UsageTotals",
    "Verification",
    "View",
    "ViewLine",
    "Violation",
    "ViolationKind",
    "Window",
    "compress",
    "load_settings",
    "open_store",
    "validate",
]


find_moved_modules()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'leporello' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
