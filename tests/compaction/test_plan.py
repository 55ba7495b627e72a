"""Where a list is cut: SPEC's numbers, whole groups, the newest user message, open calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leporello.compaction.assemble import assemble, settle
from leporello.compaction.plan import (
    CompactionPlan,
    Protection,
    can_be_clipped,
    can_be_pointer,
    fitted,
    fixed_parts,
    make_plan,
    scaled,
    too_large,
)
from leporello.compaction.view import Item, number_messages
from leporello.events import Span
from leporello.models import Limits
from leporello.summaries.fold import Fold
from leporello.summaries.handoff import Handoff
from leporello.tokens import TokenCounter

COUNTER = TokenCounter.for_model(None)
LIMITS_64K = Limits.for_window(64_000)


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict:
    return {"role": "assistant", "content": text}


def step(k: int, size: int = 200) -> list[dict]:
    call = {"id": f"c{k}", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{k}", "content": "word " * size},
    ]


def plan(messages: list[dict], window: int, last: int = 20):
    return make_plan(number_messages(messages), COUNTER.message, Limits.for_window(window), Protection(3, last))


def test_worked_numbers_for_a_200k_window() -> None:
    limits = Limits.for_window(200_000)
    assert (limits.threshold_tokens, limits.tail_tokens, limits.summary_ceiling) == (100_000, 20_000, 10_000)


def test_head_is_the_system_message_and_three_others_as_whole_groups() -> None:
    messages = [{"role": "system", "content": "be good"}, user("go"), *step(1), *step(2)]
    messages += [m for k in range(3, 200) for m in step(k)] + [user("now this")]
    assert plan(messages, 64_000).head == (0, 1, 2, 3)


def test_long_results_in_the_head_are_pointers_and_their_calls_stay() -> None:
    """SPEC 4, phase 1: outside the tail a result over 200 characters is one line."""
    messages = [user("go"), *step(1, 4_000), *(m for k in range(3, 200) for m in step(k)), user("now this")]
    found = plan(messages, 64_000)
    assert found.head == (0, 1, 2)
    assert min(found.shortened) == 3
    assert found.shortened == {found.items[index].number for index in found.pointers}
    shown = assemble(found, [Item(4, user("a fold"))], 1_000)
    assert [item.message for item in shown[:2]] == messages[:2]
    assert shown[2].message["content"] == "[terminal: ls → 1 line; output cleared here, kept as m3]"
    again = make_plan([*shown, *number_messages(messages)[90:]], COUNTER.message, LIMITS_64K, Protection())
    assert min(again.shortened) == 3
    assert assemble(again, [Item(4, user("a fold"))], 1_000)[:3] == shown[:3]


def test_the_first_request_stays_before_long_results_whatever_the_tail_begins_with() -> None:
    """Alone in the head it would leave no role for the fold, and would be given to it."""
    messages = [user("the first request"), *step(1, 9_000), *(m for k in range(2, 90) for m in step(k, 400))]
    messages += [user("and this"), *(m for k in range(90, 94) for m in step(k, 90))]
    found, role = settle(plan(messages, 64_000, last=15))
    assert (found.head, found.role_behind, role) == ((0, 1, 2), "assistant", "user")


def test_results_in_the_head_stay_while_nothing_behind_it_is_folded() -> None:
    messages = [user("go"), *step(1, 900), assistant("It is done."), user("and now?")]
    assert plan(messages, 64_000).pointers == frozenset()


def test_a_huge_first_message_goes_into_the_fold() -> None:
    messages = [user("word " * 5_000), assistant("ok")] + [m for k in range(200) for m in step(k)] + [user("now")]
    found = plan(messages, 64_000)
    assert found.head == ()
    assert 0 in found.middle


def test_the_tail_never_splits_a_call_from_its_results() -> None:
    messages = [user("go")] + [m for k in range(300) for m in step(k)] + [user("now")]
    for window in (8_000, 16_000, 33_333, 64_000, 128_000):
        start = plan(messages, window).tail[0]
        assert messages[start]["role"] != "tool"


def test_a_newest_user_message_far_back_is_lifted_and_the_tail_not_stretched() -> None:
    messages = [user("first"), assistant("yes"), user("the task")] + [m for k in range(300) for m in step(k)]
    found = plan(messages, 64_000)
    assert found.lifted is None or found.lifted == 2
    assert found.lifted == 2
    assert found.tail[0] > 500


def test_open_calls_are_always_in_the_tail_and_never_pointers() -> None:
    messages = [user("go")] + [m for k in range(100) for m in step(k)]
    calls = [{"id": f"p{k}", "type": "function", "function": {"name": "t", "arguments": "{}"}} for k in range(3)]
    messages += [{"role": "assistant", "content": "", "tool_calls": calls}]
    messages += [{"role": "tool", "tool_call_id": "p0", "content": "word " * 20_000}]
    found = plan(messages, 32_000)
    assert set(found.open_calls) <= set(found.tail)
    assert not set(found.open_calls) & found.pointers


def test_large_results_in_the_protected_tail_become_pointers() -> None:
    messages = [user("go")] + [m for k in range(100) for m in step(k, 2_000)] + [user("now")]
    found = plan(messages, 64_000)
    assert len(found.tail) >= 20
    assert found.pointers


def test_an_earlier_fold_that_the_tail_reaches_goes_into_the_new_one() -> None:
    """The head gives its message up, because no role is left for a fold behind it: one fold holds both."""
    fold = Fold(1, Span(2, 9), Handoff({}))
    lines = [
        Item(1, user("first")),
        Item(2, assistant("the fold"), fold),
        Item(10, user("go on")),
        Item(11, assistant("yes")),
    ]
    settled, role = settle(CompactionPlan(lines, head=(0,), middle=(), tail=(1, 2, 3)))
    assert (settled.head, settled.middle, settled.tail, role) == ((), (0, 1), (2, 3), "assistant")


@pytest.mark.parametrize("window", [8_000, 16_000, 32_000])
def test_of_two_user_messages_in_a_row_the_newest_follows_the_fold(window: int) -> None:
    """A long run of calls follows them: there is no role for the fold behind the first one but the assistant's."""
    asked = [user("This repository is called alpha."), user("Fix the failing test in beta.")]
    made = plan([*asked, *(m for k in range(60) for m in step(k, 300))], window)
    assert made.lifted == 1


def test_instructions_inside_the_span_stay_and_are_never_summarised() -> None:
    messages = [user("go")] + [m for k in range(100) for m in step(k)]
    messages[51:51] = [{"role": "developer", "content": "new rule of the house"}]
    messages += [m for k in range(100, 300) for m in step(k)] + [user("now")]
    found = plan(messages, 32_000)
    assert 51 in found.head


def test_a_talk_in_a_small_window_leaves_more_to_the_fold_than_work_does() -> None:
    talk = [message for k in range(60) for message in (user(f"What about {k}?"), assistant(f"That is {k}."))]
    work = [message for k in range(60) for message in step(k, size=20)]
    assert len(plan(talk, 16_000).tail) == 8
    assert len(plan([user("Go on."), *work], 16_000).tail) == 20
    assert len(plan(talk, 16_000, last=40).tail) == 16
    assert len(plan(talk, 200_000).tail) >= 20


def sized(tokens: int, role: str = "", text: str = "x", **more: Any) -> dict:
    """A message of so many tokens, as `planned` measures them."""
    return {"role": role, "content": text, "tokens": tokens, **more}


def talk(*sizes: int) -> list[dict]:
    return [sized(size, ("user", "assistant")[place % 2]) for place, size in enumerate(sizes)]


def worked(size: int, text: str = "x" * 201) -> list[dict]:
    """A call of ten tokens and its result of so many."""
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    return [sized(10, "assistant", "", tool_calls=[call]), sized(size, "tool", text, tool_call_id="c")]


def planned(messages: list[dict], *, first: int = 0, last: int = 20, **limits: int) -> CompactionPlan:
    known = replace(Limits.for_window(100_000), **limits)
    return make_plan(number_messages(messages), lambda message: message["tokens"], known, Protection(first, last))


class TestTheTail:
    """By numbers: half of a small tail whole, then slim up to one and a half times the tail."""

    @pytest.mark.parametrize(
        ("size", "tail", "last", "kept"),
        [
            # A tail of 1,000 tokens: 500 whole, and as far as 1,500 what can't be made slim.
            (100, 1_000, 40, 15),
            # Where nothing was called, of two fifths of what is protected.
            (100, 1_000, 20, 8),
            (101, 1_000, 40, 14),
            # Three messages stay, whatever they take.
            (5_000, 1_000, 40, 3),
            # From 16,000 tokens on it is shown whole: up to 24,000 what is protected, 16,000 of the rest.
            (1_000, 16_000, 40, 24),
            (1_000, 16_000, 20, 20),
            (1_000, 16_000, 10, 16),
            (1_000, 15_999, 25, 10),
        ],
    )
    def test_how_far_it_reaches(self, size: int, tail: int, last: int, kept: int) -> None:
        found = planned(talk(*[size] * 61), last=last, tail_tokens=tail)
        assert len(found.tail) == kept
        assert (found.pointers, found.clipped) == (frozenset(), frozenset())
        assert found.middle == tuple(range(61 - kept))

    def test_results_are_whole_in_its_first_half_and_pointers_behind_it(self) -> None:
        """Each turn takes 110 tokens whole and 100 as a pointer; the last result is awaited and never one."""
        messages = [*talk(1), *(message for _ in range(40) for message in worked(100))]
        found = planned(messages, last=80, tail_tokens=1_000)
        # Four turns whole (440), ten as pointers (1,000): 1,440 of 1,500.
        assert len(found.tail) == 28
        assert sorted(found.pointers) == [index for index in range(54, 73) if messages[index]["role"] == "tool"]

    def test_long_texts_are_clipped_where_results_are_pointers(self) -> None:
        long = [sized(300, ("user", "assistant")[place % 2], "x" * 1_201) for place in range(41)]
        found = planned(long, last=80, tail_tokens=1_000)
        # One whole (300), then 200 for each of the assistant and 300 for each of the user: 1,500.
        assert found.tail == (35, 36, 37, 38, 39, 40)
        assert found.clipped == {35, 37, 39}

    def test_what_the_model_waits_for_is_never_a_pointer_and_counts_as_the_tail_at_most(self) -> None:
        found = planned([*talk(300, 300, 300), *worked(90_000)], last=20, tail_tokens=1_000)
        assert found.tail == (2, 3, 4)
        assert not found.pointers

    def test_twenty_messages_are_protected_at_the_end_and_three_at_the_beginning(self) -> None:
        assert Protection() == Protection(first=3, last=20)

    @pytest.mark.parametrize(("more", "whole"), [(0, True), (1, False)])
    def test_one_message_of_it_may_be_so_long_and_no_longer(self, more: int, whole: bool) -> None:
        """Its text and the arguments of its calls together."""
        arguments = '{"text": "' + "x" * (1_990 - len('{"text": ""}') + more) + '"}'
        turn = worked(10)
        turn[0] |= {"content": "Look here.", "tool_calls": [{**turn[0]["tool_calls"][0]}]}
        turn[0]["tool_calls"][0]["function"] = {"name": "t", "arguments": arguments}
        plan = planned([*talk(10), *turn, *talk(10)])
        shown = assemble(plan, (), 2_000)
        assert (shown[1].message is turn[0]) is whole
        assert ("_left_out" in str(shown[1].message)) is not whole


class TestTheHead:
    @pytest.mark.parametrize(
        ("sizes", "first", "head"),
        [
            ([10, 10, 10, 10], 3, 3),
            ([10, 10, 10, 10], 0, 0),
            ([100, 100, 50, 10], 3, 3),
            ([100, 100, 51, 10], 3, 2),
            ([101, 10, 10, 10], 3, 0),
            ([100, 101, 10, 10], 3, 1),
        ],
    )
    def test_each_message_has_a_cap_and_all_together_have_one(self, sizes: list[int], first: int, head: int) -> None:
        messages = [*talk(*sizes), *talk(*[50] * 40)]
        found = planned(messages, first=first, tail_tokens=100, last=2, head_message_tokens=100, head_tokens=250)
        assert found.head == tuple(range(head))

    def test_a_group_is_in_it_whole_or_not_at_all(self) -> None:
        messages = [*talk(10), *worked(10), *worked(10), *talk(*[50] * 40)]
        assert planned(messages, first=2, tail_tokens=100, last=2).head == (0, 1, 2)
        assert planned(messages, first=4, tail_tokens=100, last=2).head == (0, 1, 2, 3, 4)

    def test_the_newest_user_message_is_never_in_it(self) -> None:
        messages = [*talk(10), *(message for _ in range(40) for message in worked(100))]
        found = planned(messages, first=3, tail_tokens=300)
        assert (found.head, found.lifted, found.middle[0]) == ((), 0, 1)

    def test_instructions_lead_and_those_of_the_span_stay_once_in_front(self) -> None:
        system, other = sized(10, "system"), sized(10, "developer", "y")
        turns = talk(*[50] * 40)
        messages = [system, *turns[:4], other, *turns[4:10], other, system, *turns[10:]]
        found = planned(messages, first=2, tail_tokens=100, last=2)
        # The newer of two equal ones; the one at the beginning leads anyway.
        assert found.head == (0, 12, 13, 1, 2)
        assert 5 in found.middle
        assert not {12, 13} & set(found.middle)


class TestWhatCanBeSlim:
    @pytest.mark.parametrize(("length", "can"), [(200, False), (201, True)])
    def test_a_result_above_two_hundred_characters(self, length: int, can: bool) -> None:
        assert can_be_pointer({"role": "tool", "tool_call_id": "c", "content": "x" * length}) is can
        assert not can_be_pointer(user("x" * length))

    def test_a_result_of_parts_always(self) -> None:
        assert can_be_pointer({"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "x"}]})

    @pytest.mark.parametrize(("length", "can"), [(1_200, False), (1_201, True)])
    def test_a_text_of_the_assistant_above_twelve_hundred(self, length: int, can: bool) -> None:
        assert can_be_clipped(assistant("x" * length)) is can
        assert not can_be_clipped(user("x" * length))


class TestTheFixedPart:
    def measure(self, message: dict) -> int:
        return int(message["tokens"])

    def test_it_is_told_by_what_it_is_for(self) -> None:
        """An instruction that stands twice is sent once; open calls are work in progress."""
        messages = [sized(7, "system"), *talk(30, 40, 50, 60), sized(7, "system"), *worked(90)]
        items = number_messages(messages)
        assert fixed_parts(items, self.measure, 100, 20) == {"system": 107, "tools": 20, "newest user message": 50}
        assert fixed_parts(items[:-1], self.measure, 0, 0)["open calls"] == 10
        assert fixed_parts([], self.measure, 1, 2) == {"system": 1, "tools": 2, "newest user message": 0}

    def test_only_more_than_the_window_is_too_large(self) -> None:
        assert too_large(100, {"a": 60, "b": 40}) is None
        assert too_large(100, {"a": 60, "b": 41}) is not None

    def test_limits_shrink_with_what_is_left_of_the_window(self) -> None:
        """Head, summary and tail take half of the window: what leaves more than that changes nothing."""
        limits = replace(Limits.for_window(100_000), hard_tokens=90_000, tail_tokens=10_000, aim_tokens=30_000)
        assert fitted(limits, {"a": 40_000}, 30_000) == limits
        half = fitted(limits, {"a": 65_000}, 30_000)
        assert (half.window, half.tail_tokens, half.aim_tokens) == (50_000, 5_000, 15_000)
        assert half.hard_tokens == 90_000
        shallow = fitted(limits, {"a": 40_000}, 6_000)
        assert (shallow.window, shallow.tail_tokens, shallow.aim_tokens) == (20_000, 2_000, 6_000)
        none = fitted(limits, {"a": 200_000}, 30_000)
        assert (none.tail_tokens, none.summary_floor, none.head_tokens, none.head_message_tokens) == (1, 1, 1, 1)
        assert scaled(limits, 2.0) == limits
        tenth = scaled(limits, 0.1)
        for name in ("window", "tail_tokens", "summary_floor", "summary_ceiling", "head_message_tokens", "head_tokens"):
            assert getattr(tenth, name) == int(getattr(limits, name) * 0.1)
