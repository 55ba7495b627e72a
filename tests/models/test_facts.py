"""Facts about models: the well-known ones are right, the unknown ones say that they are guesses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import ConfigError
from leporello.models import Prices, model_facts
from leporello.models.facts import table


@pytest.mark.parametrize(
    ("name", "window", "max_output", "prices"),
    [
        ("claude-fable-5-1", 1_000_000, 128_000, (10, 50, 0.25)),
        ("claude-opus-5-5", 1_000_000, 128_000, (4, 20, 0.2)),
        ("claude-opus-5", 1_000_000, 128_000, (5, 25, 0.5)),
        ("claude-haiku-5-5", 1_000_000, 128_000, (0.1, 0.5, 0.01)),
        ("claude-haiku-4-5", 200_000, 64_000, (1, 5, 0.1)),
        ("gpt-6-astra", 1_050_000, 128_000, (10, 50, 1.0)),
        ("gpt-6.1-sol", 1_050_000, 128_000, (2, 10, 0.1)),
        ("gpt-5.6-sol", 1_050_000, 128_000, (4, 20, 0.4)),
        ("gpt-5", 400_000, 128_000, (1.25, 10, 0.125)),
        ("gpt-4o", 128_000, 16_384, (2.5, 10, 1.25)),
        ("gemini-3.5-flash", 1_048_576, 65_536, (1.5, 9, 0.15)),
        ("glm-5.2", 1_048_576, 131_072, (1.4, 4.4, 0.14)),
    ],
)
def test_well_known_models(name: str, window: int, max_output: int, prices: tuple[float, float, float]) -> None:
    """Checked by hand against the vendors' pages."""
    facts = model_facts(name)
    assert facts.known
    assert (facts.window, facts.max_output) == (window, max_output)
    assert facts.prices is not None
    assert (facts.prices.input, facts.prices.output, facts.prices.cache_read) == prices
    assert table().as_of in facts.source


@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-4-6",
        "anthropic/claude-opus-4.6",
        "openrouter/anthropic/claude-opus-4.6:beta",
        "claude-opus-4-6-20260205",
        "vertex_ai/claude-opus-4-6@default",
        "claude-4.6-opus",
        "bedrock/global.anthropic.claude-opus-4-6-v1:0",
    ],
)
def test_every_name_of_a_model_gives_its_facts(name: str) -> None:
    """Routed, dated and re-ordered names."""
    facts = model_facts(name)
    assert facts.known
    assert (facts.window, facts.vendor) == (1_000_000, "anthropic")
    assert facts.prices == Prices(5, 25, 0.5, 6.25, 10)
    assert facts.cache.min_prefix == 4_096
    assert facts.name == name


def test_a_gpt_5_window_is_not_its_largest_input() -> None:
    """The data lists 272,000 as input; the window holds the output too."""
    for name in ("gpt-5", "gpt-5-codex", "gpt-5-mini", "azure/gpt-5"):
        facts = model_facts(name)
        assert (facts.window, facts.max_input) == (400_000, 272_000), name


def test_a_region_may_cost_more() -> None:
    """Bedrock's regional names carry their own prices."""
    general, regional = model_facts("claude-opus-5"), model_facts("us.anthropic.claude-opus-5")
    assert general.prices is not None
    assert regional.prices is not None
    assert regional.prices.input == pytest.approx(general.prices.input * 1.1)
    assert regional.window == general.window


def test_a_provider_may_serve_less() -> None:
    """The same model behind another door has that door's window."""
    assert model_facts("gpt-4o", provider="github_copilot").window <= model_facts("gpt-4o").window
    assert model_facts("github_copilot/gpt-4o").window == model_facts("gpt-4o", provider="github-copilot").window


@pytest.mark.parametrize(
    ("name", "min_prefix", "lookback", "ttl", "long_ttl"),
    [
        ("claude-opus-5", 512, 20, 300, 3_600),
        ("claude-sonnet-4-5", 1_024, 20, 300, 3_600),
        ("claude-opus-4-7", 2_048, 20, 300, 3_600),
        ("claude-haiku-4-5", 4_096, 20, 300, 3_600),
        ("gpt-5.6-sol", 1_024, None, 1_800, None),
        ("gpt-6-luna", 1_024, None, 1_800, None),
        ("gpt-4.1", 1_024, None, 1_200, 86_400),
        ("gemini-3.5-flash", 4_096, None, 300, None),
    ],
)
def test_cache_rules(name: str, min_prefix: int, lookback: int | None, ttl: int, long_ttl: int | None) -> None:
    """Minimum prefix, lookback and lifetimes of the vendors' prompt caches."""
    rules = model_facts(name).cache
    assert (rules.min_prefix, rules.lookback) == (min_prefix, lookback)
    assert (rules.ttl_seconds, rules.long_ttl_seconds) == (ttl, long_ttl)


def test_price_steps_are_known() -> None:
    """Above 272,000 input tokens GPT-5.6 doubles input and cache and takes half as much again for output."""
    (step,) = model_facts("gpt-5.6-sol").steps
    assert step.above == 272_000
    assert step.prices == Prices(8, 30, 0.8, 10)
    (step,) = model_facts("claude-haiku-5-5").steps
    assert (step.above, step.prices.input, step.prices.output) == (100_000, 0.5, 2.5)


def test_a_close_relative_lends_its_window_but_not_its_prices() -> None:
    """A version nobody has heard of: a fair window, no claim about money, and both are said."""
    facts = model_facts("gpt-5.6-nova")
    assert not facts.known
    assert facts.window == model_facts("gpt-5.6-sol").window
    assert facts.prices is None
    assert "gpt-5-6" in facts.source


@pytest.mark.parametrize(
    ("name", "window"), [("claude-opus-99", 200_000), ("my-own", 128_000), ("", 128_000), (None, 128_000)]
)
def test_an_unknown_model_gets_a_stated_guess(name: str | None, window: int) -> None:
    """128,000 unless the vendor never served less than more."""
    facts = model_facts(name)
    assert not facts.known
    assert facts.window == window
    assert "assumed" in facts.source
    assert facts.prices is None


@given(st.text(max_size=40), st.text(max_size=10))
def test_any_name_resolves(name: str, provider: str) -> None:
    """Never an exception, always a usable window."""
    facts = model_facts(name, provider)
    assert facts.window > 0
    assert 0 < facts.max_input <= facts.window
    assert facts.source


@given(st.sampled_from(sorted(table().rows)))
def test_every_row_of_the_table_is_sound(row_id: str) -> None:
    """Sizes are positive, the input fits the window, steps rise and stay inside it."""
    provider, _, name = row_id.rpartition("/")
    facts = model_facts(name, provider)
    assert 0 < facts.max_input <= facts.window
    assert facts.max_output is None or facts.max_output > 0
    bounds = [step.above for step in facts.steps]
    assert bounds == sorted(set(bounds))
    assert all(0 < bound < facts.window for bound in bounds)
    if facts.prices:
        assert facts.prices.input >= 0
        assert facts.prices.output >= 0
        assert facts.prices.cache_read is None or facts.prices.cache_read <= facts.prices.input * 1.01


def test_a_name_that_states_its_window_is_believed() -> None:
    """`[1m]` asks for the long-context variant."""
    facts = model_facts("claude-sonnet-4-5[1m]")
    assert (facts.window, facts.max_input) == (1_000_000, 1_000_000)
    assert "[1m]" in facts.source


def test_the_user_overrides_the_table() -> None:
    """By any name of the model; what is not given stays as the table has it."""
    overrides = {"anthropic/claude-opus-5": {"window": 300_000, "prices": {"input": 1, "output": 2, "cache_read": 0.1}}}
    facts = model_facts("openrouter/anthropic/claude-opus-5", overrides=overrides)
    assert (facts.window, facts.max_input, facts.max_output) == (300_000, 300_000, 128_000)
    assert facts.prices == Prices(1, 2, 0.1)
    assert "anthropic/claude-opus-5" in facts.source
    assert model_facts("claude-opus-5-5", overrides=overrides).window == 1_000_000


def test_an_override_makes_an_unknown_model_known() -> None:
    """A fine-tune or a local model."""
    facts = model_facts("my-own", overrides={"my-own": {"window": 32_768, "max_output": 4_096, "prices": [1, 2]}})
    assert facts.known
    assert (facts.window, facts.max_output, facts.prices) == (32_768, 4_096, Prices(1, 2))


def test_new_prices_drop_the_old_steps() -> None:
    """The table's steps belong to the table's prices; new ones can be given."""
    assert model_facts("gpt-5.6-sol", overrides={"gpt-5.6-sol": {"prices": [1, 2]}}).steps == ()
    given_steps = {"gpt-5.6-sol": {"prices": [1, 2], "steps": [[100_000, [3, 4]]]}}
    assert model_facts("gpt-5.6-sol", overrides=given_steps).prices_at(100_001) == Prices(3, 4)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"windw": 5}, "windw"),
        ({"window": "big"}, "window"),
        ({"window": -1}, "window"),
        ({"window": True}, "window"),
        ({"prices": 3}, "prices"),
        ({"prices": [1]}, "prices"),
        ({"prices": [1, "two"]}, "output"),
        ({"prices": {"input": 1}}, "output"),
        ({"prices": {"input": 1, "output": 1, "cached": 1}}, "cached"),
        ({"prices": [1, float("nan")]}, "output"),
        ({"steps": [5]}, "steps"),
        ({"steps": [[5, [1]]]}, "steps"),
        (None, "mapping"),
    ],
)
def test_a_bad_override_is_named(row: object, said: str) -> None:
    """The error says which model and which field."""
    with pytest.raises(ConfigError, match=said) as caught:
        model_facts("m", overrides={"m": row})  # type: ignore[dict-item]
    assert "models.m" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("claude-sonnet-4-5", True),
        ("claude-opus-4-5-20251101", True),
        ("claude-sonnet-5", True),
        ("claude-haiku-4-5", True),
        ("claude-haiku-4-5-20251001", True),
        ("claude-3-5-haiku-20241022", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-3-5-sonnet", False),
        ("gpt-5.4", True),
        ("gpt-5", False),
        ("gpt-4o", False),
        ("deepseek-chat", False),
    ],
)
def test_who_searches_tools_itself(name: str, has: bool) -> None:
    """As the vendors document it: Claude since 4.5, GPT since 5.4."""
    assert (model_facts(name).tool_search is not None) is has
