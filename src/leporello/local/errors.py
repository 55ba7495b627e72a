"""What can go wrong with the model on this machine."""

from __future__ import annotations

from leporello.errors import ProviderError


class LocalModelError(ProviderError):
    """The local model can't be fetched, started or reached; the text says what to do."""


class DownloadFailed(LocalModelError):
    """The package index could not be reached or does not have what is needed."""
