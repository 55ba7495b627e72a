"""What real usage teaches, and what it can't be talked into."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.tokens import Calibration, TokenCounter
from leporello.tokens.counter import HIGHEST, LOWEST, MEMORY

TEXT = "def total(rows):\n    return sum(row.price * row.quantity for row in rows)\n" * 40


@pytest.mark.parametrize("ratio", [0.72, 0.8, 1.0, 1.3, 1.9, 2.4])
@pytest.mark.parametrize("model", ["claude-opus-5", "unheard-of"])
def test_one_real_usage_is_enough(model: str, ratio: float) -> None:
    """After one real count the next estimate is within ten per cent, however far off the first was."""
    counter = TokenCounter.for_model(model)
    first = counter.text(TEXT)
    assert counter.learn(first, round(first * ratio))
    assert counter.text(TEXT * 3) == pytest.approx(first * 3 * ratio, rel=0.1)


@given(
    ratio=st.floats(0.73, 2.0),
    noise=st.lists(st.floats(0.97, 1.03), min_size=5, max_size=25),
    lies=st.lists(st.integers(0, 10**9), max_size=2),
)
def test_a_few_wrong_reports_change_nothing(ratio: float, noise: list[float], lies: list[int]) -> None:
    """Two absurd reports among five honest ones leave the factor where honesty puts it."""
    calibration = Calibration()
    for value in noise[:3]:
        calibration.learn(10_000, round(10_000 * ratio * value))
    for lie in lies:
        calibration.learn(10_000, lie)
    for value in noise[3:]:
        calibration.learn(10_000, round(10_000 * ratio * value))
    assert calibration.factor == pytest.approx(ratio, rel=0.05)


@given(st.lists(st.tuples(st.integers(-5, 10**7), st.integers(-5, 10**9)), max_size=40))
def test_the_factor_stays_in_its_bounds(reports: list[tuple[int, int]]) -> None:
    """Whatever is reported."""
    calibration = Calibration()
    for raw, actual in reports:
        calibration.learn(raw, actual)
        assert LOWEST <= calibration.factor <= HIGHEST
    assert calibration.observations <= MEMORY


def test_a_lasting_change_is_followed() -> None:
    """A provider that changes its vocabulary is believed after some calls."""
    calibration = Calibration()
    for _ in range(MEMORY):
        calibration.learn(10_000, 10_000)
    for _ in range(MEMORY // 2 + 1):
        calibration.learn(10_000, 13_000)
    assert calibration.factor == pytest.approx(1.3)


def test_large_requests_count_for_more_than_small_ones() -> None:
    """A tiny request is mostly framing; it doesn't outvote a large one."""
    calibration = Calibration()
    calibration.learn(100_000, 120_000)
    calibration.learn(100, 200)
    calibration.learn(100, 200)
    assert calibration.factor == pytest.approx(1.2)


def test_usage_that_says_nothing_is_refused() -> None:
    """No usage, a few tokens, or a count that is off by an order of magnitude are not learned from."""
    counter = TokenCounter.for_model("claude-opus-5")
    assert not counter.learn(1_000, 0)
    assert not counter.learn(3, 5)
    assert not counter.learn(1_000, 50_000)
    assert counter.calibration.rejected == 1
    assert counter.calibration.factor == 1.0


@given(st.lists(st.tuples(st.integers(100, 10**6), st.floats(0.72, 2.2)), max_size=30))
def test_what_was_learned_survives_storage(reports: list[tuple[int, float]]) -> None:
    """Exported, written as JSON and restored, the counter says the same."""
    counter = TokenCounter.for_model("claude-opus-5")
    for raw, ratio in reports:
        counter.learn(raw, round(raw * ratio))
    again = TokenCounter.for_model("claude-opus-5")
    assert again.restore(json.loads(json.dumps(counter.export())))
    assert again.calibration.factor == counter.calibration.factor
    assert again.text(TEXT) == counter.text(TEXT)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"v": 99, "seen": []},
        {"v": 1},
        {"v": 1, "seen": "no"},
        {"v": 1, "seen": [[1.0]]},
        {"v": 1, "seen": [[1e9, 5.0]]},
        {"v": 1, "seen": [[1.0, float("nan")]]},
        {"v": 1, "seen": [["1", "2"]]},
        {"v": 1, "seen": [[True, True]]},
    ],
)
def test_a_damaged_state_means_a_fresh_start(state: dict[str, Any]) -> None:
    """Nothing half-read: the factor is one again, and the caller is told."""
    counter = TokenCounter.for_model("claude-opus-5")
    counter.learn(1_000, 1_500)
    assert not counter.restore(state)
    assert counter.calibration.factor == 1.0
    assert counter.calibration.observations == 0
