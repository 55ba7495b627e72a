"""One resolver: SPEC's numbers, hard caps for every window, and a source for every value."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.models import Limits, model_facts, resolve_limits

windows = st.integers(1, 2_100_000)
shares = st.floats(0.01, 1.0)


def test_the_worked_numbers_of_a_200k_window() -> None:
    """Threshold 100,000, tail 20,000, largest summary 10,000."""
    limits = Limits.for_window(200_000)
    assert (limits.threshold_tokens, limits.tail_tokens, limits.summary_ceiling) == (100_000, 20_000, 10_000)
    assert (limits.output_reserve, limits.hard_tokens) == (20_000, 180_000)
    assert (limits.head_message_tokens, limits.head_tokens, limits.pin_tokens) == (10_000, 20_000, 10_000)
    assert (limits.summary_floor, limits.aim_tokens, limits.protect_last_n) == (2_000, 50_000, 20)


@pytest.mark.parametrize(
    ("window", "floor", "ceiling"),
    [
        (1_000_000, 2_000, 12_000),
        (240_000, 2_000, 12_000),
        (128_000, 2_000, 6_400),
        (40_000, 2_000, 2_000),
        (32_768, 1_638, 1_638),
        (16_384, 819, 819),
        (8_192, 409, 409),
        (4_096, 400, 400),
        (2_048, 341, 341),
        (1_000, 166, 166),
    ],
)
def test_the_summary_budget_of_small_and_large_windows(window: int, floor: int, ceiling: int) -> None:
    """5% up to 12,000; below 40K the ceiling (5%, at least 400, at most a third of the threshold) beats the floor."""
    limits = Limits.for_window(window)
    assert (limits.summary_floor, limits.summary_ceiling) == (floor, ceiling)


@given(
    window=windows,
    threshold=shares,
    ratio=st.floats(0.1, 0.8),
    max_output=st.none() | st.integers(1, 10**6),
    turn=windows,
)
def test_the_caps_hold_for_every_window(
    window: int, threshold: float, ratio: float, max_output: int | None, turn: int
) -> None:
    """Every value is positive; the trigger leaves room for the answer; nothing exceeds what contains it."""
    limits = Limits.for_window(window, threshold, ratio, max_output=max_output, largest_turn=turn)
    values = [value for _, value, _ in limits.explain()]
    assert all(isinstance(value, int) and value >= 1 for value in values)
    assert limits.output_reserve <= max(1, window // 10)
    assert max_output is None or limits.output_reserve <= max_output
    assert limits.hard_tokens <= max(1, window - limits.output_reserve)
    assert limits.threshold_tokens <= max(1, int(window * threshold))
    assert limits.threshold_tokens <= limits.hard_tokens
    assert limits.tail_tokens <= limits.threshold_tokens
    assert limits.aim_tokens <= limits.threshold_tokens
    assert limits.summary_floor <= limits.summary_ceiling <= max(window // 20, 400)


@given(window=st.integers(8_000, 2_000_000), share=st.floats(0.0, 0.7), threshold=shares)
def test_the_trigger_leaves_room_for_the_largest_turn(window: int, share: float, threshold: float) -> None:
    """From 8K to 2M: one more turn as large as the largest so far still fits."""
    turn = int(window * share)
    limits = Limits.for_window(window, threshold, largest_turn=turn)
    if turn <= limits.hard_tokens * 3 // 4:
        assert limits.threshold_tokens + turn <= limits.hard_tokens


@given(small=windows, large=windows, threshold=shares)
def test_a_larger_window_never_means_smaller_limits(small: int, large: int, threshold: float) -> None:
    """No cliff anywhere between a tiny and a huge window, the summary floor included."""
    small, large = sorted((small, large))
    one, other = Limits.for_window(small, threshold), Limits.for_window(large, threshold)
    for field in ("output_reserve", "hard_tokens", "threshold_tokens", "tail_tokens", "head_tokens", "summary_floor"):
        assert getattr(one, field) <= getattr(other, field), field


def test_a_window_of_nothing_is_refused() -> None:
    """With words, not with a division by zero later."""
    with pytest.raises(ValueError, match="positive"):
        Limits.for_window(0)


def test_limits_are_values() -> None:
    """Frozen and comparable; the explanation takes no part in comparing."""
    limits = Limits.for_window(100_000)
    assert limits == Limits.for_window(100_000, window_source="elsewhere")
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.window = 5  # type: ignore[misc]


def test_every_value_has_a_source() -> None:
    """`explain` leaves nothing out."""
    limits = resolve_limits("claude-opus-5")
    rows = limits.explain()
    fields = {field.name for field in dataclasses.fields(limits)} - {"sources", "window_assumed"}
    assert {name for name, _, _ in rows} == fields
    assert all(value == getattr(limits, name) and why for name, value, why in rows)


@given(
    declared=st.none() | st.integers(1_000, 2_000_000),
    served=st.none() | st.integers(1_000, 2_000_000),
    learned=st.none() | st.integers(1_000, 2_000_000),
    model=st.sampled_from(["claude-haiku-4-5", "gpt-5", "gpt-4o", "unheard-of", None]),
)
def test_the_smallest_stated_window_wins(
    declared: int | None, served: int | None, learned: int | None, model: str | None
) -> None:
    """Declared, served, learned; the table only when nobody who knows better spoke. The user's is never raised."""
    limits = resolve_limits(model, declared_window=declared, served_window=served, learned_window=learned)
    stated = [value for value in (declared, served, learned) if value]
    if declared is None and served is None:
        stated.append(model_facts(model).window)
    assert limits.window == min(stated)
    assert declared is None or limits.window <= declared


@pytest.mark.parametrize(
    ("given_windows", "source"),
    [
        ({"declared_window": 50_000}, "declared by the user"),
        ({"declared_window": 900_000, "served_window": 50_000}, "served by the endpoint"),
        ({"learned_window": 50_000}, "learned from a provider's error"),
        ({}, "model table"),
    ],
)
def test_the_windows_source_is_recorded(given_windows: dict[str, int], source: str) -> None:
    """`explain` says who set the window."""
    assert source in resolve_limits("claude-haiku-4-5", **given_windows).sources["window"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "given", "assumed"),
    [
        ("unheard-of", {}, True),
        (None, {}, True),
        ("unheard-of", {"overrides": {"unheard-of": {"prices": [1, 2]}}}, True),
        ("unheard-of", {"overrides": {"unheard-of": {"window": 32_768}}}, False),
        ("unheard-of", {"declared_window": 50_000}, False),
        ("unheard-of", {"served_window": 50_000}, False),
        ("unheard-of", {"learned_window": 50_000}, False),
        ("unheard-of[1m]", {}, False),
        ("claude-haiku-4-5", {}, False),
    ],
)
def test_a_guessed_window_is_called_assumed(model: str | None, given: dict[str, Any], assumed: bool) -> None:
    """Only where nobody named one: not the user, not the provider, not the table."""
    limits = resolve_limits(model, **given)
    assert limits.window_assumed == assumed
    assert ("assumed" in limits.window_text) == assumed


def test_the_user_may_declare_more_than_the_table_knows() -> None:
    """A declared window is taken as it is, in both directions."""
    limits = resolve_limits("claude-haiku-4-5", declared_window=500_000)
    assert (limits.window, limits.threshold_tokens) == (500_000, 250_000)


def test_the_largest_input_bounds_the_hard_limit() -> None:
    """GPT-5's window is 400,000, but no request above 272,000 is taken."""
    limits = resolve_limits("gpt-5")
    assert (limits.window, limits.hard_tokens, limits.threshold_tokens) == (400_000, 272_000, 200_000)
    assert resolve_limits("gpt-5", threshold=0.9).threshold_tokens == 272_000


def test_the_trigger_stays_below_a_price_step() -> None:
    """Above 272,000 tokens the whole request costs double, so the trigger is there."""
    limits = resolve_limits("gpt-5.6-sol")
    assert limits.threshold_tokens == 272_000
    assert "price step" in limits.sources["threshold_tokens"]
    assert resolve_limits("gpt-5.6-sol", threshold=0.1).threshold_tokens == 105_000


def test_a_step_at_the_bottom_of_the_window_does_not_strangle() -> None:
    """A price step below a tenth of the window is crossed; the next one counts."""
    overrides = {"cheap": {"window": 1_000_000, "prices": [1, 2], "steps": [[32_000, [2, 4]], [128_000, [3, 6]]]}}
    assert resolve_limits("cheap", overrides=overrides).threshold_tokens == 128_000


def test_the_users_output_cap_is_the_reserve() -> None:
    """`model.max_output` beats the table's."""
    assert resolve_limits("claude-haiku-4-5", max_output=4_096).output_reserve == 4_096
    assert resolve_limits("claude-haiku-4-5").output_reserve == 20_000
