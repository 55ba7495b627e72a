"""Chat Completions on the official `openai` client, at OpenAI or at any endpoint that is compatible with it."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from leporello.caching import cache_use
from leporello.dialects import Dialect, Target, chat
from leporello.messages import Message
from leporello.providers.base import ModelRequest
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import ErrorVerdict
from leporello.providers.extras import load
from leporello.providers.sdk import SdkProvider

NO_KEY = "none"
"""Sent to endpoints that want no key: the client insists on one, and would else look for it in the environment."""


def is_openai(base_url: str) -> bool:
    """Whether this is OpenAI's own endpoint (or Azure's copy of it)."""
    host = (urlsplit(base_url).hostname or "").lower()
    return host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))


class OpenAIProvider(SdkProvider):
    """Chat Completions."""

    dialect = Dialect.OPENAI_CHAT
    path = "/chat/completions"

    def _errors(self) -> ModuleType:
        return load("openai")

    def _make_client(self) -> Any:
        endpoint = self.endpoint
        return self._errors().OpenAI(
            api_key=endpoint.api_key or NO_KEY,
            base_url=endpoint.base_url,
            timeout=endpoint.timeout,
            max_retries=0,
            default_headers=dict(endpoint.headers),
        )

    def _codec(self) -> Any:
        return chat

    def target(self, model: str) -> Target:
        """OpenAI's own endpoint takes newer fields; OpenRouter takes cache marks for Claude models."""
        url = self.endpoint.base_url
        use = cache_use(model, self.name, url, self.dialect.value)
        own = is_openai(url) or "max_completion_tokens" in self._learned
        return Target(self.name, model, cache_marks=use.style == "chat_marks", native=own)

    def _body(self, request: ModelRequest, messages: list[Message], stream: bool) -> dict[str, Any]:
        body = super()._body(request, messages, stream)
        if stream and "no_stream_options" not in self._learned:
            body["stream_options"] = {"include_usage": True, **(body.get("stream_options") or {})}
        return body

    def _lesson(self, verdict: ErrorVerdict) -> str:
        if verdict.kind is ErrorKind.MALFORMED:
            said = verdict.message.lower()
            if "stream_options" in said:
                return "no_stream_options"
            if "max_tokens" in said and "max_completion_tokens" in said:
                return "max_completion_tokens"
        return super()._lesson(verdict)
