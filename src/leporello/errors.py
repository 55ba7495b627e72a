"""Every exception Leporello raises on purpose; each message says what happened, where, and what to do."""

from __future__ import annotations

from collections.abc import Mapping


class LeporelloError(Exception):
    """Base of all errors that a caller may want to catch."""


class Cancelled(LeporelloError):
    """Somebody asked the work to stop; nothing of it is kept."""


class ConfigError(LeporelloError):
    """A setting is unknown or has a bad value; the text names key, source and what is allowed."""


class NoModel(ConfigError):
    """There is no model to call: none is set, or its key is missing."""


class InputError(LeporelloError):
    """Input from outside can't be used; `where` is a file position or an index."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class FixedPartTooLarge(LeporelloError):
    """What must be sent whatever is folded already exceeds the window."""

    def __init__(self, window: int, parts: Mapping[str, int]) -> None:
        listed = ", ".join(f"{name} {tokens:,}" for name, tokens in parts.items())
        super().__init__(
            f"The part that can't be folded needs {sum(parts.values()):,} tokens of a window of {window:,} ({listed}). "
            f"{_remedy(parts)}, or use a model with a larger window."
        )
        self.window = window
        self.parts = dict(parts)


def _remedy(parts: Mapping[str, int]) -> str:
    """What would help most: something about the largest part."""
    remedies = {
        "system": "Shorten the system prompt",
        "tools": "Offer fewer tools",
        "newest user message": "Shorten the newest message, or put what is long in it into a file",
        "open calls": "Shorten the results of the newest tool calls",
    }
    largest = max(parts, key=lambda name: parts[name], default="")
    return remedies.get(largest, "Shorten the newest messages")


class EngineError(LeporelloError):
    """A context engine broke its contract; names engine and method."""


class SummaryError(LeporelloError):
    """A summariser failed or gave nothing usable."""


class ProviderError(LeporelloError):
    """A model API refused or failed. Refined by `leporello.providers`."""


class ToolError(LeporelloError):
    """A tool could not do what it was asked; the text is shown to the model."""


class PluginError(LeporelloError):
    """A plugin could not be loaded; names the plugin and the reason."""


class StoreError(LeporelloError):
    """The store can't serve the request."""


class NotFound(StoreError):
    """No such conversation, session, message, fold or artifact."""


class StoreBusy(StoreError):
    """Another process holds the database beyond the waiting time; trying again may help."""


class InboxFull(StoreError):
    """As many inbox messages as may wait for a conversation do so already."""


class InboxConflict(StoreError):
    """The id of an inbox message was used before, for another text; nothing was taken in."""


class StoreConflict(StoreError):
    """The conversation's generation moved on: somebody else committed first."""


class LeaseLost(StoreError):
    """The compaction lease expired and was taken over; this owner may not commit."""


class StoreUnavailable(StoreError):
    """Disk full, read-only file, or server gone; nothing was written."""


class StoreUnreachable(StoreUnavailable):
    """No server answered: it may be started later."""


class StoreCorrupt(StoreError):
    """The file is damaged or is not a Leporello store."""


class SchemaTooNew(StoreError):
    """The store was written by a newer Leporello."""


def how_to_install(extra: str) -> str:
    """How to install what an error misses, from a package index and from a clone."""
    return f"pip install 'leporello[{extra}]' (from a clone of it: pip install 'PATH/OF/CLONE[{extra}]')"
