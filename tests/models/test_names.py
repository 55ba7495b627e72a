"""Names: however a router, a region or a date decorates them, they lead to the same model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.models.facts import candidates, fold, long_context, region_of, routes, shorter_names, vendor_of


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("claude-opus-4-6", "claude-opus-4-6"),
        ("Claude-Opus-4.6", "claude-opus-4-6"),
        ("openrouter/anthropic/claude-opus-4.6", "claude-opus-4-6"),
        ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("bedrock/us.anthropic.claude-opus-4-6-v1:0", "claude-opus-4-6"),
        ("us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("vertex_ai/claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("claude-4-opus-20250514", "claude-opus-4"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("openai/gpt-4.1", "gpt-4-1"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("azure/gpt-5.6-sol", "gpt-5-6-sol"),
        ("models/gemini-2.5-pro-preview-05-06", "gemini-2-5-pro"),
        ("mistral/mistral-large-2411", "mistral-large"),
        ("moonshotai/kimi-k2-0905", "kimi-k2"),
        ("deepseek/deepseek-v4-flash:free", "deepseek-4-flash"),
        ("fireworks_ai/accounts/fireworks/models/llama-v3p1-8b-instruct", "llama-3-1-8b"),
    ],
)
def test_decorations_fall_away(name: str, folded: str) -> None:
    """The last candidate is the plain model."""
    assert list(candidates(name))[-1] == folded


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4", "gpt-4-turbo"),
        ("gpt-5", "gpt-5-mini"),
        ("gpt-5", "gpt-5-chat"),
        ("claude-opus-4-1", "claude-opus-4"),
        ("claude-opus-5", "claude-opus-5-5"),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
        ("deepseek-chat", "deepseek-reasoner"),
        ("qwen3-8b", "qwen3-80b"),
    ],
)
def test_different_models_stay_different(one: str, other: str) -> None:
    """Folding never makes one model out of two."""
    assert not set(candidates(one)) & set(candidates(other))


@given(st.text(max_size=60) | st.from_regex(r"[a-z/.:@\[\]_0-9-]{0,40}", fullmatch=True))
def test_any_text_can_be_a_name(name: str) -> None:
    """Never an exception, never an endless list, always a settled spelling."""
    found = list(candidates(name))
    assert 1 <= len(found) <= len(name) + 2
    assert found[0] == fold(name)
    assert len(list(shorter_names(name))) <= len(name)
    assert isinstance(vendor_of(name), str)


def test_routes_are_the_parts_before_the_model() -> None:
    """Outermost first, in the table's spelling."""
    assert routes("openrouter/x-ai/grok-4") == ("openrouter", "xai")
    assert routes("google/gemini-3-pro") == ("gemini",)
    assert routes("gpt-5") == ()


def test_a_region_is_read_from_a_bedrock_name() -> None:
    """Only a real region prefix counts."""
    assert region_of("bedrock/eu.anthropic.claude-opus-5") == "eu"
    assert region_of("us-gov.anthropic.claude-opus-5") == "us-gov"
    assert region_of("anthropic.claude-opus-5") == ""
    assert region_of("eu-model") == ""


def test_a_name_may_state_its_window() -> None:
    """The form that Claude Code writes."""
    assert long_context("claude-sonnet-4-5[1m]") == 1_000_000
    assert long_context("claude-sonnet-4-5") is None


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("bedrock/us.anthropic.claude-opus-5", "anthropic"),
        ("azure/o3-mini", "openai"),
        ("chatgpt-5-latest", "openai"),
        ("vertex_ai/gemini-3-pro", "google"),
        ("together_ai/meta-llama/Llama-3-70b", "meta"),
        ("z-ai/glm-5.2", "zai"),
        ("something-else", ""),
    ],
)
def test_the_vendor_is_who_made_it(name: str, vendor: str) -> None:
    """Whoever serves it."""
    assert vendor_of(name) == vendor
