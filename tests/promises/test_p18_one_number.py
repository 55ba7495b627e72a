"""Promise 18, one number: one resolver for window and threshold serves every path, and each value names its source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.api import compress
from leporello.engines.compressor import ContextCompressor
from leporello.messages import Message
from leporello.models import Limits, resolve_limits
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from tests.support.rounds import fold_once
from tests.support.strategies import conversations


@pytest.mark.fault(
    "the tail budget is a share of the window",
    "models/limits.py",
    old='("tail_tokens", max(1, int(trigger * target_ratio)),',
    new='("tail_tokens", max(1, int(window * target_ratio)),',
)
def test_the_worked_numbers_of_a_window_of_200k() -> None:
    limits = Limits.for_window(200_000)
    assert (limits.threshold_tokens, limits.tail_tokens, limits.summary_ceiling) == (100_000, 20_000, 10_000)


@pytest.mark.fault(
    "the engine has a threshold of its own",
    "engines/compressor.py",
    old="self.threshold_tokens = limits.threshold_tokens",
    new="self.threshold_tokens = int(limits.window * 0.6)",
)
@given(st.integers(1_000, 2_000_000))
def test_engine_status_and_trigger_use_the_resolver(window: int) -> None:
    engine = ContextCompressor(window)
    limits = resolve_limits(None, declared_window=window)
    assert engine.context_length == limits.window == window
    assert engine.threshold_tokens == limits.threshold_tokens == engine.get_status()["threshold_tokens"]
    assert engine.should_compress(limits.threshold_tokens)
    assert not engine.should_compress(limits.threshold_tokens - 1)
    engine.update_model("another", window // 2)
    assert engine.threshold_tokens == resolve_limits(None, declared_window=window // 2).threshold_tokens


@given(st.integers(400, 2_000_000), st.floats(0.05, 1.0), st.floats(0.1, 0.8))
def test_every_limit_lies_within_the_window_and_names_its_source(window: int, threshold: float, ratio: float) -> None:
    limits = Limits.for_window(window, threshold, ratio)
    assert 0 < limits.threshold_tokens <= limits.hard_tokens < window
    assert limits.summary_floor <= limits.summary_ceiling <= limits.threshold_tokens
    assert limits.tail_tokens <= limits.threshold_tokens
    rows = {name: (value, why) for name, value, why in limits.explain()}
    for name, (value, why) in rows.items():
        assert value == getattr(limits, name)
        assert why, f"{name} does not say where it comes from"
    assert {"window", "output_reserve", "threshold_tokens", "tail_tokens", "summary_ceiling"} <= set(rows)


@pytest.mark.fault(
    "the report counts by itself",
    "compaction/pipeline.py",
    old="return before + instructions + job.system_tokens + job.tool_tokens",
    new="return len(str(job.items)) // 4",
)
@given(conversations(longest=16), st.sampled_from((2_000, 6_000, 16_000)))
def test_the_report_counts_as_the_counter_does(messages: list[Message], window: int) -> None:
    counter = TokenCounter.for_model(None)
    report = fold_once(messages, window).report
    assert report.tokens_before == counter.messages(messages)
    assert report.messages_before == len(messages)
    assert report.tokens_after <= report.tokens_before


def test_the_library_call_resolves_like_everybody_else() -> None:
    messages = generate(SessionSpec(seed=181, messages=200, tokens=100_000)).messages
    done = compress(messages, window=64_000)
    again = fold_once(messages, 64_000)
    assert done.messages == again.messages
    assert done.report.tokens_after == again.report.tokens_after
