"""Promise 2, never worse: a compaction commits a valid list that saves a tenth, or it leaves everything as it was."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leporello.engines.compressor import ContextCompressor
from leporello.events import Outcome
from leporello.messages import Message, encode_json, is_instruction
from leporello.policy import LEAST_SAVING
from leporello.testing.sessions import SessionSpec, Style, generate
from leporello.tokens import TokenCounter
from tests.support.rounds import fold_once, rounds
from tests.support.strategies import any_conversation, conversations

WINDOWS = st.sampled_from((1_500, 3_000, 6_000, 16_000, 64_000))
COUNTER = TokenCounter.for_model(None)


def foldable(messages: list[Message]) -> int:
    return COUNTER.messages(message for message in messages if not is_instruction(message))


@pytest.mark.fault(
    "a fold may save nothing",
    "policy.py",
    old="return after <= before * (1 - LEAST_SAVING)",
    new="return True",
)
@given(any_conversation(longest=16), WINDOWS)
def test_a_commit_saves_at_least_a_tenth(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    if done.report.committed:
        assert foldable(done.messages) <= foldable(messages) * (1 - LEAST_SAVING)


@pytest.mark.fault(
    "a refused compaction hands out the new list",
    "engines/compressor.py",
    old="        if not done.report.committed:\n            return list(messages)",
    new="        if False:\n            return list(messages)",
)
@given(any_conversation(longest=16), WINDOWS)
def test_without_a_commit_the_list_is_the_one_that_was_given(messages: list[Message], window: int) -> None:
    engine = ContextCompressor(window)
    result = engine.compress(messages)
    assert engine.last_report is not None
    if not engine.last_report.committed:
        assert encode_json(result) == encode_json(list(messages))
        assert engine.last_report.reason


@pytest.mark.fault(
    "pruning writes into the original message",
    "compaction/prune.py",
    old='return {**message, "content": note}',
    new="message.update(content=note); return message",
)
@given(any_conversation(longest=16), WINDOWS)
def test_the_input_is_never_changed(messages: list[Message], window: int) -> None:
    before = encode_json(list(messages))
    fold_once(messages, window)
    assert encode_json(list(messages)) == before


@pytest.mark.fault(
    "a fold above the aim does not wait",
    "policy.py",
    old='wait_for=limits.hard_tokens if report.details.get("above_aim") else 0',
    new="wait_for=0",
)
@given(conversations(longest=16), WINDOWS)
def test_after_a_poor_compaction_the_next_trigger_is_the_hard_limit(messages: list[Message], window: int) -> None:
    engine = ContextCompressor(window)
    engine.compress(messages)
    report = engine.last_report
    assert report is not None
    assume(report.committed)
    engine.update_from_response({"prompt_tokens": 1})
    hard = engine.limits.hard_tokens
    assert engine.should_compress(hard)
    assert engine.should_compress(hard - 1) == (not report.details["above_aim"] or engine.threshold_tokens == hard)


@pytest.mark.fault(
    "an attempt that brought nothing is repeated at once",
    "policy.py",
    old="wait_for=max(state.wait_for, min(grown, limits.hard_tokens))",
    new="wait_for=state.wait_for",
)
@given(conversations(longest=12), WINDOWS, st.booleans())
def test_after_an_attempt_in_vain_there_must_be_more_to_fold(
    messages: list[Message], window: int, by_hand: bool
) -> None:
    """An attempt in vain is not repeated at once. One made by hand changes nothing about the automatic ones."""
    engine = ContextCompressor(window)
    engine.compress(messages, force=by_hand)
    report = engine.last_report
    assert report is not None
    assume(report.outcome in (Outcome.NO_GAIN, Outcome.NOTHING_TO_DO))
    engine.update_from_response({"prompt_tokens": 1})
    threshold, hard = engine.threshold_tokens, engine.limits.hard_tokens
    due = threshold if by_hand else max(threshold, min(report.tokens_before + threshold // 4, hard))
    assert engine.should_compress(due)
    assert not engine.should_compress(due - 1)


@pytest.mark.parametrize("style", list(Style))
def test_generated_sessions_shrink_below_the_threshold(style: Style) -> None:
    session = generate(SessionSpec(seed=41, messages=250, tokens=60_000, style=style))
    *_, last = rounds(session.messages, 24_000, 3)
    assert last.report.outcome is Outcome.COMMITTED
    assert foldable(last.after) < foldable(last.before) * (1 - LEAST_SAVING)
    assert foldable(last.after) < 12_000
