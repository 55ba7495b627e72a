"""Promise 20, never silent: every attempt is one report with outcome, sizes and reason; failures are shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.engines.compressor import ContextCompressor
from leporello.errors import ProviderError
from leporello.events import CompactionEvent, Outcome
from leporello.messages import Message
from leporello.providers.scripted import ScriptedProvider, Step
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from tests.support.rounds import fold_once
from tests.support.strategies import any_conversation

WINDOWS = st.sampled_from((1_500, 4_000, 16_000))
SESSION = generate(SessionSpec(seed=201, messages=40, tokens=8_000, images=0))


@pytest.mark.fault(
    "a refusal gives no reason",
    "compaction/pipeline.py",
    old="replace(done, reason=reason, details=details or {})",
    new="replace(done, details=details or {})",
)
@pytest.mark.fault(
    "the size after is not filled in",
    "compaction/pipeline.py",
    old="        messages_after=len(messages),\n        tokens_after",
    new="        tokens_after",
)
@given(any_conversation(longest=16), WINDOWS, st.booleans())
def test_every_attempt_leaves_one_full_report(messages: list[Message], window: int, force: bool) -> None:
    engine = ContextCompressor(window)
    result = engine.compress(messages, focus_topic="cache", force=force)
    report = engine.last_report
    assert report is not None, "the attempt left no report"
    assert report.outcome in list(Outcome)
    assert report.engine == "compressor"
    assert report.trigger == ("manual" if force else "automatic")
    assert report.focus == "cache"
    assert report.messages_before == len(messages)
    assert report.messages_after == len(result)
    assert bool(report.reason) is (report.outcome is not Outcome.COMMITTED)
    if report.committed:
        assert report.summariser
        # A compaction that only pruned has no fold and covers nothing.
        assert bool(report.fold) is (report.covered is not None)
        assert report.fold or report.pruned
        assert report.tokens_after < report.tokens_before
    else:
        assert report.tokens_after == report.tokens_before


@pytest.mark.fault(
    "an event drops the reason",
    "events.py",
    old='report["outcome"] = self.report.outcome.value',
    new='report["outcome"] = self.report.outcome.value; report["reason"] = ""',
)
@given(any_conversation(longest=12), WINDOWS)
def test_an_event_is_json_and_holds_no_message_text(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    event = CompactionEvent("c1", 1, done.report).as_dict()
    written = json.dumps(event)
    assert event["outcome"] == done.report.outcome.value
    assert event["reason"] == done.report.reason
    assert {"tokens_before", "tokens_after", "cost", "seconds", "summariser", "warnings"} <= set(event)
    assert "The parser drops the last row" not in written


BROKEN: dict[str, Step] = {
    "gone": ProviderError("connection refused"),
    "empty": "",
    "prose": "No summary today.",
}


@pytest.mark.fault(
    "a model's failure leaves no warning",
    "summaries/model.py",
    old='warnings.append(f"{candidate.model} gave no summary: {_why(error)}")',
    new="pass",
)
@pytest.mark.parametrize("failure", list(BROKEN))
def test_a_failing_summary_model_is_named_with_its_reason(failure: str) -> None:
    provider = ScriptedProvider(lambda _: BROKEN[failure])
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4.1", 128_000)], TokenCounter.for_model("gpt-4.1"))
    report = fold_once(SESSION.messages, 4_000, summariser=summariser).report
    assert report.committed
    assert report.summariser == "model-free"
    assert any("gpt-4.1" in warning for warning in report.warnings)
    assert any("without a model" in warning for warning in report.warnings)


@pytest.mark.fault(
    "what the summary cost is not reported",
    "compaction/pipeline.py",
    old="        usage=told.usage,\n",
    new="",
)
def test_the_use_of_a_summary_model_is_reported() -> None:
    provider = ScriptedProvider(lambda _: "## Goal\n- Keep it running\n\n## Active State\n- Tests ran\n")
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4.1", 128_000)], TokenCounter.for_model("gpt-4.1"))
    report = fold_once(SESSION.messages, 4_000, summariser=summariser).report
    assert report.summariser == "model:gpt-4.1"
    assert report.usage == provider.replies[0].usage
    assert report.usage.prompt_tokens > 0
