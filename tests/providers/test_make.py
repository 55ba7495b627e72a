"""Which provider, endpoint and dialect a model gets."""

from __future__ import annotations

import pytest

from leporello.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from leporello.errors import ConfigError, ProviderError
from leporello.providers.clients import ProviderChoice, make_provider
from leporello.providers.sdk import load


@pytest.mark.parametrize(
    ("settings", "name", "address", "dialect"),
    [
        (ProviderChoice("claude-sonnet-5"), "anthropic", "https://api.anthropic.com", ANTHROPIC),
        (ProviderChoice("gpt-6-sol"), "openai", "https://api.openai.com/v1", OPENAI_CHAT),
        (
            ProviderChoice("gpt-6-sol", dialect="openai_responses"),
            "openai",
            "https://api.openai.com/v1",
            OPENAI_RESPONSES,
        ),
        (
            ProviderChoice("openrouter/anthropic/claude-opus-5"),
            "openrouter",
            "https://openrouter.ai/api/v1",
            OPENAI_CHAT,
        ),
        (
            ProviderChoice("x", base_url="https://openrouter.ai/api/v1"),
            "openrouter",
            "https://openrouter.ai/api/v1",
            OPENAI_CHAT,
        ),
        (
            ProviderChoice("qwen3", base_url="http://127.0.0.1:8080/v1"),
            "127.0.0.1",
            "http://127.0.0.1:8080/v1",
            OPENAI_CHAT,
        ),
        (
            ProviderChoice("deepseek-v4", "deepseek", "https://api.deepseek.com/anthropic"),
            "deepseek",
            "https://api.deepseek.com/anthropic",
            ANTHROPIC,
        ),
        (
            ProviderChoice("claude-x", "box", "http://box:1", "anthropic"),
            "box",
            "http://box:1",
            ANTHROPIC,
        ),
    ],
    ids=lambda value: value.model if isinstance(value, ProviderChoice) else None,
)
def test_the_choice(settings: ProviderChoice, name: str, address: str, dialect: Dialect) -> None:
    """As set, else by address, else by the model's name."""
    provider = make_provider(settings)
    assert (provider.name, provider.endpoint.base_url, provider.dialect) == (name, address, dialect)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (ProviderChoice("my-model"), "model.base_url"),
        (ProviderChoice("my-model", "somebody"), "model.base_url"),
        (ProviderChoice("gpt-6", dialect="soap"), "openai_chat"),
    ],
)
def test_what_cannot_be_chosen_is_said(settings: ProviderChoice, says: str) -> None:
    """The error names what to set."""
    with pytest.raises(ConfigError, match=says):
        make_provider(settings)


def test_a_missing_package_is_named() -> None:
    """Without the client's package the error says how to install it."""
    with pytest.raises(ProviderError, match=r"pip install 'leporello\[no_such_client\]'"):
        load("no_such_client")


def test_the_key_is_never_shown() -> None:
    """Settings can be printed."""
    assert "s3cret" not in repr(ProviderChoice("gpt-6", api_key="s3cret"))
