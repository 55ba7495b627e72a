"""Anthropic Messages on the official `anthropic` client, at Anthropic or at an endpoint that speaks its dialect."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from leporello.codecs import Dialect, Target, anthropic
from leporello.messages import Message
from leporello.providers.base import ModelRequest
from leporello.providers.errors import ErrorVerdict
from leporello.providers.extras import load
from leporello.providers.sdk import SdkProvider


class AnthropicProvider(SdkProvider):
    """Anthropic Messages. Answers are always streamed: the API refuses to hold long ones back."""

    dialect = Dialect.ANTHROPIC
    path = "/v1/messages"

    def _errors(self) -> ModuleType:
        return load("anthropic")

    def _make_client(self) -> Any:
        endpoint = self.endpoint
        return self._errors().Anthropic(
            api_key=endpoint.api_key or "none",
            base_url=endpoint.base_url.rstrip("/").removesuffix("/v1"),
            timeout=endpoint.timeout,
            max_retries=0,
            default_headers=dict(endpoint.headers),
        )

    def _codec(self) -> Any:
        return anthropic

    def target(self, model: str) -> Target:
        """The receiver; marks and state of this dialect are the codec's own."""
        return Target(self.name, model)

    def _always_streams(self) -> bool:
        return True

    def _body(self, request: ModelRequest, messages: list[Message], stream: bool) -> dict[str, Any]:
        body = super()._body(request, messages, stream)
        if "no_thinking" in self._learned:
            body.pop("thinking", None)
        return body

    def _lesson(self, verdict: ErrorVerdict) -> str:
        # A turn that began without thinking can't go on with it.
        if verdict.cause == "missing_thinking":
            return "no_thinking"
        return super()._lesson(verdict)
