"""`PromptMeter`: real count plus what was added, and a sensible estimate when there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leporello.messages import Message
from leporello.tokens import PromptMeter, TokenCounter

WORDS = "the reader accepts both names, warns once per file and keeps the original spelling in the archive. "


def said(role: str, words: int, mark: int = 0) -> Message:
    return {"role": role, "content": f"{mark}: " + WORDS * words}


def meter(model: str = "gpt-5") -> PromptMeter:
    return PromptMeter(TokenCounter.for_model(model))


def call(meter: PromptMeter, messages: list[Message], real: int, **rest: Any) -> None:
    meter.sent(messages, **rest)
    meter.observe(real)


def test_without_usage_it_is_an_estimate() -> None:
    """The pure estimate counts system, messages and tools, and says that it is one."""
    one = meter()
    messages = [said("user", 10)]
    tools = [{"name": "read", "description": WORDS * 50}]
    reading = one.read(messages, tools, "You are careful.")
    assert not reading.measured
    assert reading.tokens == one.counter.request(messages, tools, "You are careful.")


def test_the_real_count_is_the_base_and_only_the_rest_is_estimated() -> None:
    """SPEC: last real prompt tokens plus what was added since; completion tokens never count."""
    one = meter()
    messages = [said("user", 100)]
    call(one, messages, 54_321)
    assert one.read(messages).tokens == 54_321
    messages = [*messages, said("assistant", 5), said("user", 5)]
    reading = one.read(messages)
    assert reading.real == 54_321
    assert reading.added == pytest.approx(one.counter.messages(messages[1:]), abs=2)
    assert reading.tokens == reading.real + reading.added


@pytest.mark.parametrize("hidden", [0, 5_000, 60_000])
@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.4])
def test_after_one_real_usage_the_error_is_small(hidden: int, ratio: float) -> None:
    """Even when the vocabulary is off and the provider adds parts that nobody shows: within ten per cent at once."""
    one = meter("unheard-of")
    plain = TokenCounter.for_model("unheard-of")
    messages: list[Message] = [said("user", 60)]
    for step in range(30):
        truth = round(plain.request(messages) * ratio) + hidden
        if step:
            assert one.read(messages).tokens == pytest.approx(truth, rel=0.10)
        if step > 10:
            assert one.read(messages).tokens == pytest.approx(truth, rel=0.02)
        call(one, messages, truth)
        messages = [*messages, said("assistant", 4, step), said("user", 6, step)]


@pytest.mark.parametrize("hidden", [0, 5_000, 60_000])
def test_after_a_fold_the_hidden_part_is_still_there(hidden: int) -> None:
    """A fold makes the old count void, but what the provider adds on its own does not go away."""
    one = meter()
    plain = TokenCounter.for_model("gpt-5")
    messages = [said("user", 60)]
    for step in range(12):
        call(one, messages, plain.request(messages) + hidden)
        messages = [*messages, said("assistant", 30, step), said("user", 6, step)]
    folded = [said("user", 20), *messages[-2:]]
    one.reset()
    reading = one.read(folded)
    assert not reading.measured
    assert reading.tokens == pytest.approx(plain.request(folded) + hidden, rel=0.05)


def test_a_list_that_was_replaced_is_noticed() -> None:
    """Shorter, or different anywhere that is looked at: the old count is not used for another list."""
    one = meter()
    messages = [said("user", 5, step) for step in range(40)]
    call(one, messages, 90_000)
    assert not one.read(messages[:-1]).measured
    assert not one.read([said("user", 1, 99), *messages[1:]]).measured
    assert not one.read([*messages[:-1], said("user", 1, 99)]).measured
    assert not one.read([said("user", 1, step + 1_000) for step in range(40)]).measured
    assert one.read(messages).measured


def test_new_tools_are_added_to_the_real_count() -> None:
    """Tools that arrive in mid-session make the next request larger."""
    one = meter()
    messages = [said("user", 50)]
    call(one, messages, 1_000)
    more = [{"name": "search", "description": WORDS * 30}]
    assert one.read(messages, more).tokens >= 1_000 + one.counter.tools(more) - 2


def test_missing_usage_keeps_the_last_real_count() -> None:
    """A provider that reports nothing for a call doesn't erase what is known."""
    one = meter()
    messages = [said("user", 50)]
    call(one, messages, 1_000)
    longer = [*messages, said("assistant", 5), said("user", 5)]
    call(one, longer, 0)
    assert one.read(longer).real == 1_000


def test_usage_without_a_request_is_ignored() -> None:
    """A count that belongs to nothing we sent teaches nothing."""
    one = meter()
    one.observe(77_777)
    assert not one.read([said("user", 5)]).measured


def test_dropped_thinking_does_not_spoil_the_count() -> None:
    """Real counts fall when a provider drops old thinking; the next reading starts from the new real count."""
    one = meter("claude-sonnet-4-5")
    messages = [said("user", 50)]
    call(one, messages, 9_000)
    messages = [*messages, said("assistant", 2), said("user", 2)]
    call(one, messages, 4_000)
    assert one.read(messages).tokens == 4_000
    assert one.counter.calibration.factor <= 1.0


@given(counts=st.lists(st.integers(1, 3_000_000), min_size=1, max_size=12))
def test_no_reading_is_ever_below_the_real_count(counts: list[int]) -> None:
    """Whatever a provider reports: the number that decides is the real count plus something not negative."""
    one = meter("claude-opus-5")
    messages = [said("user", 3)]
    for step, real in enumerate(counts):
        call(one, messages, real)
        messages = [*messages, said("assistant", 2, step), said("user", 1, step)]
        reading = one.read(messages)
        assert reading.tokens >= real == reading.real


@given(steps=st.integers(1, 6), fold=st.booleans())
@settings(max_examples=30)
def test_a_restart_changes_no_reading(steps: int, fold: bool) -> None:
    """Exported, written as JSON and restored, the first reading equals that without the restart."""
    one = meter("claude-opus-5")
    messages = [said("user", 30)]
    for step in range(steps):
        call(one, messages, 4_000 + 900 * step)
        messages = [*messages, said("assistant", 12, step), said("user", 9, step)]
    if fold:
        one.reset()
        messages = messages[-2:]
    again = meter("claude-opus-5")
    assert again.restore(json.loads(json.dumps(one.export())))
    assert again.read(messages).tokens == pytest.approx(one.read(messages).tokens, abs=2)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"v": 2},
        {"v": 1, "hidden": "x", "counter": {"v": 1, "seen": []}},
        {"v": 1, "hidden": 0, "counter": {"v": 1, "seen": []}, "counted": [1, 2]},
        {
            "v": 1,
            "hidden": 0,
            "counter": {"v": 1, "seen": []},
            "counted": [1, 2.0, 3.0, [["a", "b"]]],
            "real": 5,
            "base": [],
        },
    ],
)
def test_a_damaged_state_means_a_fresh_start(state: dict[str, Any]) -> None:
    """Nothing half-read."""
    one = meter()
    call(one, [said("user", 5)], 5_000)
    assert not one.restore(state)
    assert not one.read([said("user", 5)]).measured


class Conversation(RuleBasedStateMachine):
    """A host that appends, calls, folds, loses usage and restarts, with a provider whose counts are known."""

    @initialize(hidden=st.integers(0, 30_000), ratio=st.floats(0.7, 1.5))
    def start(self, hidden: int, ratio: float) -> None:
        self.hidden, self.ratio = hidden, ratio
        self.plain = TokenCounter.for_model("unheard-of")
        self.meter = meter("unheard-of")
        self.messages: list[Message] = [said("user", 20)]
        self.turn = 0
        self.calls_since_fold = 0

    def truth(self) -> int:
        return round(self.plain.request(self.messages) * self.ratio) + self.hidden

    @rule(words=st.integers(1, 80))
    def append(self, words: int) -> None:
        self.turn += 1
        self.messages = [*self.messages, said("assistant", words, self.turn)]

    @rule()
    def call(self) -> None:
        call(self.meter, self.messages, self.truth())
        self.calls_since_fold += 1

    @rule()
    def lost_usage(self) -> None:
        call(self.meter, self.messages, 0)

    @precondition(lambda self: len(self.messages) > 3)
    @rule()
    def fold(self) -> None:
        self.messages = [said("user", 3, self.turn), *self.messages[-2:]]
        self.meter.reset()
        self.calls_since_fold = 0

    @rule()
    def restart(self) -> None:
        state = json.loads(json.dumps(self.meter.export()))
        self.meter = meter("unheard-of")
        assert self.meter.restore(state)

    @invariant()
    def a_measured_reading_is_near_the_truth(self) -> None:
        if not hasattr(self, "messages"):
            return
        reading = self.meter.read(self.messages)
        assert reading.tokens == reading.real + reading.added
        if reading.measured:
            # Only what was added is estimated, so only that can be wrong.
            assert abs(reading.tokens - self.truth()) <= 0.65 * reading.added + 2


Conversation.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestConversation = Conversation.TestCase
