"""The provider for a model: which dialect, which endpoint, which client.

    provider = make_provider(ProviderSettings(model="claude-sonnet-5", api_key=key))
    provider = make_provider(ProviderSettings(model="qwen3", base_url="http://127.0.0.1:8080/v1"))

Nothing here reads the environment: keys and addresses come from the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from leporello.dialects import Dialect
from leporello.errors import ConfigError
from leporello.models.names import provider_name, routes, vendor_of
from leporello.providers.anthropic import AnthropicProvider
from leporello.providers.openai import OpenAIProvider
from leporello.providers.responses import ResponsesProvider
from leporello.providers.retry import RetryPolicy
from leporello.providers.sdk import Endpoint, SdkProvider, Tools

AUTO = "auto"

ADDRESSES = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
_CLASSES: dict[Dialect, type[SdkProvider]] = {
    Dialect.ANTHROPIC: AnthropicProvider,
    Dialect.OPENAI_CHAT: OpenAIProvider,
    Dialect.OPENAI_RESPONSES: ResponsesProvider,
}


@dataclass(frozen=True, slots=True)
class ProviderSettings:
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


def make_provider(settings: ProviderSettings, tools: Tools | None = None) -> SdkProvider:
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


def choose_provider(settings: ProviderSettings) -> str:
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
        f"The name {settings.model!r} does not say who serves the model. Set model.provider or model.base_url."
    )


def choose_dialect(settings: ProviderSettings, name: str) -> Dialect:
    """Which wire format the endpoint speaks: as set, else Anthropic's for Anthropic, else Chat Completions."""
    if settings.dialect and settings.dialect != AUTO:
        try:
            return Dialect(settings.dialect)
        except ValueError:
            allowed = ", ".join(dialect.value for dialect in Dialect)
            raise ConfigError(f"api_mode is {settings.dialect!r}. It must be one of {allowed}.") from None
    address = urlsplit(settings.base_url)
    if (
        name == "anthropic"
        or address.hostname == "api.anthropic.com"
        or address.path.rstrip("/").endswith("/anthropic")
    ):
        return Dialect.ANTHROPIC
    if address.path.rstrip("/").endswith("/responses"):
        return Dialect.OPENAI_RESPONSES
    return Dialect.OPENAI_CHAT
