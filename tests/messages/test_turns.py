"""Calls and results pair by position, cuts never split them, and `validate` lists what a provider would refuse."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leporello.messages import is_result
from leporello.turns import ViolationKind, groups, open_group, validate
from tests.support.checks import cut_points


def call(*ids: str) -> dict:
    calls = [{"id": i, "type": "function", "function": {"name": "t", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id: str, text: str = "ok") -> dict:
    return {"role": "tool", "tool_call_id": id, "content": text}


USER = {"role": "user", "content": "hi"}


def test_ids_reused_in_every_turn_pair_with_the_nearest_call() -> None:
    messages = [USER, call("1"), result("1", "first"), call("1"), result("1", "second")]
    assert [group.answers for group in groups(messages) if group.answers] == [(2,), (4,)]
    assert validate(messages) == []


def test_two_calls_with_one_id_take_their_results_in_order() -> None:
    messages = [USER, call("1", "1"), result("1", "a"), result("1", "b")]
    assert groups(messages)[1].answers == (2, 3)
    assert validate(messages) == []


def test_parallel_results_may_come_out_of_order() -> None:
    messages = [USER, call("a", "b"), result("b"), result("a")]
    assert groups(messages)[1].answers == (3, 2)


def test_open_calls_at_the_end_are_work_in_progress() -> None:
    messages = [USER, call("a", "b"), result("a")]
    found = open_group(messages)
    assert found is not None
    assert (found.start, found.stop, found.unanswered) == (1, 3, (1,))
    assert validate(messages) == []


def test_violations_name_index_and_reason() -> None:
    messages = [USER, result("x"), call("a"), {"role": "user", "content": "go on"}, {"role": "wizard"}]
    assert [(v.index, v.fault) for v in validate(messages)] == [
        (1, ViolationKind.ORPHAN_RESULT),
        (2, ViolationKind.MISSING_RESULT),
        (4, ViolationKind.UNKNOWN_ROLE),
    ]


def test_arguments_that_are_not_json_are_a_violation() -> None:
    broken = call("a")
    broken["tool_calls"][0]["function"]["arguments"] = '{"x": '
    assert ViolationKind.BAD_ARGUMENTS in {v.fault for v in validate([USER, broken, result("a")])}


MESSAGES = st.lists(
    st.sampled_from([USER, call("a"), call("a", "b"), result("a"), result("b"), {"role": "assistant", "content": "x"}]),
    max_size=12,
)


@given(MESSAGES)
def test_groups_cover_the_list_without_gaps_and_cuts_never_split_them(messages: list) -> None:
    found = groups(messages)
    assert [index for group in found for index in range(group.start, group.stop)] == list(range(len(messages)))
    for cut in cut_points(messages):
        after_call = 0 < cut < len(messages) and is_result(messages[cut])
        assert not after_call
