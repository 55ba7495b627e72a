"""The provider port: one call to a model, whatever wire format stands behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from leporello.cancel import CancelToken
from leporello.messages import Message
from leporello.usage import CanonicalUsage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request in OpenAI format; the codec of the provider turns it into its wire form."""

    model: str
    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]] = ()
    max_tokens: int | None = None
    timeout: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Extra wire fields (temperature, cache key); passed through."""
    cancel: CancelToken | None = field(default=None, compare=False)
    """Ends the call from another thread; then `complete` raises `CallCancelled`."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One answer: the assistant message in OpenAI format, why it ended, and the usage."""

    message: Message
    usage: CanonicalUsage
    finish_reason: str = "stop"
    model: str = ""
    has_usage: bool = True
    """False when the provider sent none: then the caller falls back to an estimate."""


Delta: TypeAlias = Callable[[str], None]  # receives streamed text as it arrives


class Provider(Protocol):
    """Sends requests to a model. Failures are `ProviderError`s."""

    name: str

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        """Run one request to its end; `on_text` sees the text while it streams."""
