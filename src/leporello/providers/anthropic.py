"""Anthropic Messages on the official `anthropic` client, at Anthropic or at an endpoint that speaks its dialect."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from leporello.dialects import Dialect, Target, anthropic
from leporello.messages import Message, message_hash, role_of
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
        if "thinking" in body and _unthinking(request) in self._learned:
            del body["thinking"]
        return body

    def _heal(self, verdict: ErrorVerdict, request: ModelRequest) -> bool:
        if verdict.cause == "missing_thinking" and "thinking" in request.options:
            # A turn that began without thinking can't go on with it; the next turn can.
            return self._learn(_unthinking(request))
        return super()._heal(verdict, request)


def _unthinking(request: ModelRequest) -> str:
    """The name of the turn that goes on without thinking: its user message."""
    asked = [message for message in request.messages if role_of(message) == "user"]
    return f"no_thinking:{message_hash(asked[-1])}" if asked else "no_thinking"
