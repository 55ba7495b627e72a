"""The bill of one call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.models import cost, model_facts
from leporello.usage import CanonicalUsage

counts = st.integers(0, 2_000_000)
usages = st.builds(CanonicalUsage, counts, counts, counts, counts)


def test_a_bill_by_hand() -> None:
    """Opus 5: 5 in, 25 out, 0.50 read, 6.25 or 10 written."""
    usage = CanonicalUsage(input_tokens=1_000, output_tokens=2_000, cache_read_tokens=100_000, cache_write_tokens=4_000)
    facts = model_facts("claude-opus-5")
    assert cost(usage, facts) == pytest.approx(0.005 + 0.05 + 0.05 + 0.025)
    assert cost(usage, facts, ttl="1h") == pytest.approx(0.005 + 0.05 + 0.05 + 0.04)


def test_a_price_step_applies_to_the_whole_request() -> None:
    """One token over the step and everything costs more; cached tokens count towards it; output does not."""
    facts = model_facts("gpt-5.6-sol")
    below = CanonicalUsage(input_tokens=72_000, cache_read_tokens=200_000, output_tokens=50_000)
    above = CanonicalUsage(input_tokens=72_001, cache_read_tokens=200_000, output_tokens=50_000)
    assert cost(below, facts) == pytest.approx((72_000 * 4 + 200_000 * 0.4 + 50_000 * 20) / 1e6)
    assert cost(above, facts) == pytest.approx((72_001 * 8 + 200_000 * 0.8 + 50_000 * 30) / 1e6)


def test_without_prices_there_is_no_bill() -> None:
    """Unknown is not free."""
    assert cost(CanonicalUsage(1_000, 1_000), model_facts("unheard-of")) is None


def test_missing_cache_prices_cost_as_much_as_input() -> None:
    """Where the source names none, the careful side is the full price."""
    facts = model_facts("m", overrides={"m": {"prices": [2, 4]}})
    assert cost(CanonicalUsage(0, 0, 1_000_000, 1_000_000), facts, ttl="1h") == pytest.approx(4.0)


@given(one=usages, more=usages, model=st.sampled_from(["claude-opus-5", "claude-haiku-5-5", "gpt-5.6-sol", "gpt-4o"]))
def test_more_tokens_never_cost_less(one: CanonicalUsage, more: CanonicalUsage, model: str) -> None:
    """Across steps too."""
    facts = model_facts(model)
    small, large = cost(one, facts), cost(one + more, facts)
    assert small is not None
    assert large is not None
    assert 0 <= small <= large + 1e-9
