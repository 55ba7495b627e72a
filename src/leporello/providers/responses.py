"""The Responses API on the official `openai` client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.dialects import Dialect, Target, responses
from leporello.messages import Message
from leporello.providers.base import ModelRequest
from leporello.providers.errors import CallFailed, classify
from leporello.providers.openai import OpenAIProvider, is_openai
from leporello.providers.sdk import SdkProvider


class ResponsesProvider(OpenAIProvider):
    """Responses. Nothing is stored at the provider; reasoning comes back encrypted and is carried along."""

    dialect = Dialect.OPENAI_RESPONSES
    path = "/responses"

    def _codec(self) -> Any:
        return responses

    def target(self, model: str) -> Target:
        """Only OpenAI's own endpoint knows about stored and encrypted items."""
        return Target(self.name, model, native=is_openai(self.endpoint.base_url))

    def _body(self, request: ModelRequest, messages: list[Message], stream: bool) -> dict[str, Any]:
        return SdkProvider._body(self, request, messages, stream)

    def _feed(self, assembler: Any, events: Any, shown: Any) -> None:
        super()._feed(assembler, events, shown)
        if assembler.error:
            raise CallFailed(classify(None, assembler.error, now=self._tools.clock()), self.name)

    def _check(self, wire: Mapping[str, Any]) -> None:
        if wire.get("status") == "failed" or wire.get("error"):
            raise CallFailed(classify(None, wire.get("error") or wire, now=self._tools.clock()), self.name)
