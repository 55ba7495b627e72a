"""Promise 2, never worse: a compaction commits a valid list that saves a tenth, or it leaves everything as it was."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leporello.engines.compressor import ContextCompressor
from leporello.events import Outcome
from leporello.messages import Message, encode_json, is_instruction
from leporello.testing.sessions import SessionSpec, Style, generate
from leporello.tokens import TokenCounter
from tests.support.rounds import fold_once, rounds
from tests.support.strategies import any_conversation, conversations

WINDOWS = st.sampled_from((1_500, 3_000, 6_000, 16_000, 64_000))
COUNTER = TokenCounter.for_model(None)


LEFT = re.compile(r"would leave (\d+) of")


def talk(turns: int, text: str) -> list[Message]:
    return [{"role": ("user", "assistant")[turn % 2], "content": f"{turn}: {text}"} for turn in range(turns)]


def foldable(messages: list[Message]) -> int:
    return COUNTER.messages(message for message in messages if not is_instruction(message))


@pytest.mark.fault(
    "a fold may save nothing",
    "policy/decision.py",
    old="return after <= before * (1 - LEAST_SAVING)",
    new="return True",
)
@given(any_conversation(longest=16), WINDOWS)
def test_a_commit_saves_at_least_a_tenth(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    if done.report.committed:
        assert foldable(done.messages) <= foldable(messages) * 0.9


def before_a_tail(turns: int) -> list[Message]:
    return [*talk(turns, "word " * 25), *talk(6, "detail " * 600)]


@pytest.mark.fault(
    "a hundredth is worth it",
    "policy/decision.py",
    old="LEAST_SAVING = 0.10",
    new="LEAST_SAVING = 0.01",
)
def test_the_tenth_is_neither_more_nor_less() -> None:
    """More and more small talk before a tail that stays: committed from where it saves a tenth, and not before."""
    saved: dict[str, list[float]] = {"committed": [], "no_gain": []}
    for turns in range(22, 76, 4):
        messages = before_a_tail(turns)
        done = fold_once(messages, 64_000, trigger="automatic")
        left = (
            int(LEFT.findall(done.report.reason.replace(",", ""))[0]) if done.report.reason else foldable(done.messages)
        )
        saved[done.report.outcome.value].append(1 - left / foldable(messages))
    assert saved["no_gain"], "whatever it saves is worth it"
    assert saved["committed"], "nothing is worth it"
    assert max(saved["no_gain"]) < 0.1 <= min(saved["committed"])
    assert max(saved["no_gain"]) > 0.08, "nothing came near the tenth from below"
    assert min(saved["committed"]) < 0.13, "nothing came near the tenth from above"


@pytest.mark.fault(
    "no second look",
    "compaction/pipeline.py",
    old="for share in DEEPER if folded.fold else ():",
    new="for share in ():",
)
def test_what_the_user_asked_for_is_made_smaller_until_it_saves_a_tenth() -> None:
    """The end of the work stands in no fold yet, and the view stands near its aim: `/compress` still folds it."""
    messages = before_a_tail(22)
    assert fold_once(messages, 64_000, trigger="automatic").report.outcome is Outcome.NO_GAIN
    done = fold_once(messages, 64_000)
    assert done.report.committed
    assert foldable(done.messages) <= foldable(messages) * 0.9


NUMBERED_RULE = re.compile(r"Never touch the folder bed-(\d+)")


@pytest.mark.fault(
    "rules make room",
    "compaction/pipeline.py",
    old="if deeper is None or not bound <= _binding(deeper):",
    new="if deeper is None:",
)
def test_asking_again_costs_no_rule() -> None:
    """However often the user asks for it: what was told of the rules is told afterwards, or nothing is folded."""
    rules = [f"Never touch the folder bed-{number}, {'it belongs to the warden ' * 2}at all." for number in range(100)]
    asked = [{"role": "user", "content": rule} for rule in rules]
    said = [message for rule in asked for message in (rule, {"role": "assistant", "content": "Noted."})]
    messages, engine, told = [*talk(20, "word " * 25), *said, *before_a_tail(40)], ContextCompressor(32_000), []
    for _ in range(5):
        messages = [*engine.compress(messages, force=True), *talk(2, "detail " * 60)]
        told.append(len({rule for one in messages for rule in NUMBERED_RULE.findall(str(one["content"]))}))
    assert told == sorted(told), told


def test_the_outcomes_are_five() -> None:
    assert [outcome.value for outcome in Outcome] == ["committed", "nothing_to_do", "no_gain", "blocked", "failed"]


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
    "a threshold that can't be kept is met again and again",
    "policy/decision.py",
    old="limits.hard_tokens if met else limits.threshold_tokens",
    new="limits.threshold_tokens",
)
@given(conversations(longest=16), WINDOWS)
def test_where_a_compaction_ends_near_the_threshold_the_next_waits_for_the_hard_limit(
    messages: list[Message], window: int
) -> None:
    engine = ContextCompressor(window)
    engine.compress(messages)
    report = engine.last_report
    assert report is not None
    assume(report.committed)
    engine.update_from_response({"prompt_tokens": 1})
    threshold, hard = engine.threshold_tokens, engine.limits.hard_tokens
    stays = report.details["above_aim"] and report.details["foldable_after"] >= 0.9 * threshold
    assert engine.should_compress(hard)
    assert engine.should_compress(hard - 1) == (not stays or threshold == hard)
    assert not engine.should_compress(threshold - 1)


@pytest.mark.fault(
    "an attempt that brought nothing is repeated at once",
    "policy/state.py",
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
    assert foldable(last.after) <= foldable(last.before) * 0.9
    assert foldable(last.after) < 12_000
