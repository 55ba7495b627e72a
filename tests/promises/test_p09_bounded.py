"""Promise 9, bounded: what is committed fits the window; what can't fit is one clear outcome and no model call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.engines.compressor import ContextCompressor
from leporello.events import Outcome
from leporello.messages import Message
from leporello.providers.scripted import ScriptedProvider
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import SessionSpec, Style, generate
from leporello.tokens import TokenCounter
from tests.support.rounds import fold_once, rounds
from tests.support.strategies import conversations

COUNTER = TokenCounter.for_model(None)
WINDOWS = st.sampled_from((1_500, 3_000, 6_000, 16_000))


@pytest.mark.fault(
    "nobody measures what came out",
    "compaction/pipeline.py",
    old="return job.system_tokens + job.tool_tokens + sum(map(job.measure, messages))",
    new="return 0",
)
@given(conversations(longest=24, with_folds=True), WINDOWS)
def test_a_committed_list_fits_the_window(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    if done.report.committed:
        assert COUNTER.messages(done.messages) <= window


@given(conversations(longest=16), st.integers(0, 8_000), st.integers(0, 8_000))
def test_system_prompt_and_tools_count_too(messages: list[Message], system: int, tools: int) -> None:
    engine = ContextCompressor(12_000)
    engine.system_tokens, engine.tool_tokens = system, tools
    result = engine.compress(messages, force=True)
    assert engine.last_report is not None
    if engine.last_report.committed:
        assert COUNTER.messages(result) + system + tools <= 12_000
        assert engine.last_report.tokens_after == pytest.approx(COUNTER.messages(result) + system + tools, abs=10)


@pytest.mark.fault(
    "nobody looks whether the fixed part fits",
    "compaction/pipeline.py",
    old="if error is not None:",
    new="if False:",
)
@given(st.sampled_from(("system", "tools", "newest")), st.integers(1, 20_000))
def test_a_fixed_part_beyond_the_window_is_one_clear_outcome(what: str, more: int) -> None:
    provider = ScriptedProvider(lambda _: "## Goal\n- x\n## Active State\n- y")
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4.1", 128_000)], COUNTER)
    engine = ContextCompressor(8_000, summariser=summariser)
    messages = list(generate(SessionSpec(seed=101, messages=60, tokens=30_000)).messages)
    if what == "system":
        engine.system_tokens = 8_000 + more
    elif what == "tools":
        engine.tool_tokens = 8_000 + more
    else:
        messages += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "word " * (8_000 + more)}]
    assert engine.compress(messages, force=True) == messages
    report = engine.last_report
    assert report is not None
    assert report.outcome is Outcome.BLOCKED
    assert "8,000" in report.reason
    assert sum(report.details["parts"].values()) > 8_000
    assert provider.requests == [], "a model was asked although nothing can help"


@pytest.mark.parametrize("style", list(Style))
@pytest.mark.parametrize("window", [6_000, 16_000])
def test_through_twelve_rounds_the_context_does_not_creep_up(style: Style, window: int) -> None:
    session = generate(SessionSpec(seed=102, messages=400, tokens=window * 6, style=style))
    sizes = [COUNTER.messages(step.after) for step in rounds(session.messages, window, 12)]
    assert max(sizes) <= window
    late, early = sizes[-3:], sizes[2:5]
    assert sum(late) <= sum(early) * 1.5, f"the folded context grows round by round: {sizes}"
