"""One request as the model will get it: the folded view with cache breakpoints, in any of the three dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello import caching
from leporello.dialects import Target, anthropic, chat, responses
from leporello.messages import Message


@dataclass(frozen=True, slots=True)
class Request:
    """What `Conversation.request` returns. `messages` are in OpenAI format, the system prompt first, without marks."""

    conversation: str
    model: str
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    max_tokens: int | None = None
    provider: str = ""
    layout: str = "system_and_3"
    ttl: str = "5m"
    tokens: int = 0
    """The size of the whole request as the meter sees it."""
    room: int | None = None
    """What is left of the window for the answer."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def marked(self, *, native: bool = True) -> list[Message]:
        """The messages with cache breakpoints in the internal form."""
        lay = caching.anchored if self.layout == "anchored" else caching.system_and_3
        return lay(self.messages, self.ttl, native=native)

    def anthropic(self) -> dict[str, Any]:
        """Keyword arguments for `client.messages.create`."""
        target = Target(self.provider or "anthropic", self.model, cache_marks=True, native=True)
        # This API wants to be told how long the answer may be; more than there is room for would be refused.
        usual = anthropic.DEFAULT_MAX_TOKENS
        most = usual if self.room is None else max(1, min(usual, self.room))
        return self._encoded(anthropic.encode_request, self.marked(), target, self.max_tokens or most)

    def openai_chat(self) -> dict[str, Any]:
        """Keyword arguments for `client.chat.completions.create`."""
        use = caching.cache_use(self.model, self.provider)
        messages: Sequence[Message] = self.marked(native=False) if use.marks else self.messages
        target = Target(self.provider, self.model, cache_marks=use.marks, native=self.provider == "openai")
        return self._encoded(chat.encode_request, messages, target, self.max_tokens)

    def openai_responses(self) -> dict[str, Any]:
        """Keyword arguments for `client.responses.create`."""
        target = Target(self.provider or "openai", self.model, native=True)
        return self._encoded(responses.encode_request, self.messages, target, self.max_tokens)

    def _encoded(
        self, encode: Any, messages: Sequence[Message], target: Target, max_tokens: int | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = encode(
            messages, self.tools, target=target, max_tokens=max_tokens, options=dict(self.options)
        )
        return body
