"""Anthropic Messages, Chat Completions and Responses on the official clients; which one serves a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from leporello.caching import cache_use
from leporello.dialects import ANTHROPIC, DIALECTS, OPENAI_CHAT, OPENAI_RESPONSES, Dialect, Target
from leporello.errors import ConfigError
from leporello.messages import message_hash, role_of
from leporello.models.facts import provider_name, routes, vendor_of
from leporello.providers.base import ModelRequest
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, ErrorVerdict, classify
from leporello.providers.sdk import Clock, Endpoint, RetryPolicy, SdkProvider


class AnthropicProvider(SdkProvider):
    """Anthropic Messages. Answers are always streamed: the API refuses to hold long ones back."""

    dialect = ANTHROPIC
    path = ANTHROPIC.api.path
    client = "Anthropic"
    always_streams = True

    def _base_url(self) -> str:
        return self.endpoint.base_url.rstrip("/").removesuffix("/v1")

    def target(self, model: str) -> Target:
        """The receiver; marks and state of this dialect are the codec's own."""
        return Target(self.name, model)

    def _body(self, request: ModelRequest, stream: bool) -> dict[str, Any]:
        body = super()._body(request, stream)
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


def is_openai(base_url: str) -> bool:
    """Whether this is OpenAI's own endpoint (or Azure's copy of it)."""
    host = (urlsplit(base_url).hostname or "").lower()
    return host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))


class OpenAIProvider(SdkProvider):
    dialect = OPENAI_CHAT
    path = OPENAI_CHAT.api.path.removeprefix("/v1")
    client = "OpenAI"

    def target(self, model: str) -> Target:
        """OpenAI's own endpoint takes newer fields; OpenRouter takes cache marks for Claude models."""
        url = self.endpoint.base_url
        use = cache_use(model, self.name, url, self.dialect.name)
        own = is_openai(url) or "max_completion_tokens" in self._learned
        return Target(self.name, model, cache_marks=use.style == "chat_marks", native=own)

    def _body(self, request: ModelRequest, stream: bool) -> dict[str, Any]:
        body = super()._body(request, stream)
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


class ResponsesProvider(OpenAIProvider):
    """Responses. Nothing is stored at the provider; reasoning comes back encrypted and is carried along."""

    dialect = OPENAI_RESPONSES
    path = OPENAI_RESPONSES.api.path.removeprefix("/v1")

    def target(self, model: str) -> Target:
        """Only OpenAI's own endpoint knows about stored and encrypted items."""
        return Target(self.name, model, native=is_openai(self.endpoint.base_url))

    def _body(self, request: ModelRequest, stream: bool) -> dict[str, Any]:
        return SdkProvider._body(self, request, stream)

    def _feed(self, assembler: Any, events: Any, shown: Any) -> None:
        super()._feed(assembler, events, shown)
        if assembler.error:
            raise CallFailed(classify(None, assembler.error, now=self._tools.clock()), self.name)

    def _check(self, wire: Mapping[str, Any]) -> None:
        if wire.get("status") == "failed" or wire.get("error"):
            raise CallFailed(classify(None, wire.get("error") or wire, now=self._tools.clock()), self.name)


AUTO = "auto"

ADDRESSES = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
_CLASSES = {made.dialect: made for made in (AnthropicProvider, OpenAIProvider, ResponsesProvider)}


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """What is known about a model's provider; `auto` where it is to be found out."""

    model: str
    provider: str = AUTO
    """A vendor or router, or the name the user gave an endpoint of their own."""
    base_url: str = ""
    dialect: str = AUTO
    api_key: str = field(default="", repr=False)
    timeout: float = 600.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    retry: RetryPolicy = field(default_factory=RetryPolicy)


def make_provider(settings: ProviderChoice, tools: Clock | None = None) -> SdkProvider:
    """The provider; its client is made at the first call."""
    name = choose_provider(settings)
    base_url = settings.base_url or ADDRESSES.get(name, "")
    if not base_url:
        raise ConfigError(
            f"No address is known for the provider {name!r} of model {settings.model!r}. "
            f"Set model.base_url, or use one of {', '.join(sorted(ADDRESSES))}."
        )
    endpoint = Endpoint(name, base_url, settings.api_key, settings.timeout, settings.headers, settings.retry)
    return _CLASSES[choose_dialect(settings, name)](endpoint, tools)


def choose_provider(settings: ProviderChoice) -> str:
    """Who serves the model: as set, else by address, else by the model's name."""
    if settings.provider and settings.provider != AUTO:
        return provider_name(settings.provider)
    if settings.base_url:
        host = (urlsplit(settings.base_url).hostname or "").lower()
        known = (name for name, address in ADDRESSES.items() if urlsplit(address).hostname == host)
        return next(known, host or "local")
    if "openrouter" in routes(settings.model):
        return "openrouter"
    vendor = vendor_of(settings.model)
    if vendor in ADDRESSES:
        return vendor
    raise ConfigError(
        f"The name {settings.model!r} does not say who serves the model. Names such as claude-sonnet-4-5, gpt-5.2 or "
        "openrouter/NAME do; otherwise say who: --set model.provider=anthropic (or openai, openrouter), or "
        "--set model.base_url=http://127.0.0.1:8080/v1 for a server of your own."
    )


def choose_dialect(settings: ProviderChoice, name: str) -> Dialect:
    """Which wire format the endpoint speaks: as set, else Anthropic's for Anthropic, else Chat Completions."""
    if settings.dialect and settings.dialect != AUTO:
        if settings.dialect not in DIALECTS:
            raise ConfigError(f"api_mode is {settings.dialect!r}. It must be one of {', '.join(DIALECTS)}.")
        return DIALECTS[settings.dialect]
    address = urlsplit(settings.base_url)
    if (
        name == "anthropic"
        or address.hostname == "api.anthropic.com"
        or address.path.rstrip("/").endswith("/anthropic")
    ):
        return ANTHROPIC
    if address.path.rstrip("/").endswith("/responses"):
        return OPENAI_RESPONSES
    return OPENAI_CHAT
