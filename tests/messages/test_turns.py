"""Calls and results pair by position, cuts never split them, and `validate` lists what a provider would refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.messages import is_result
from leporello.turns import Group, ViolationKind, closing_role, groups, open_group, opening_role, validate
from tests.support.checks import cut_points


def call(*ids: str) -> dict:
    calls = [{"id": i, "type": "function", "function": {"name": "t", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id: str, text: str = "ok") -> dict:
    return {"role": "tool", "tool_call_id": id, "content": text}


USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "x"}
SYSTEM = {"role": "system", "content": "rules"}
DEVELOPER = {"role": "developer", "content": "rules"}


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


def test_the_open_group_is_told_in_numbers_of_the_whole_list() -> None:
    before = [USER, call("a"), result("a"), SAID]
    assert open_group([*before, call("a", "b", "c"), result("x"), result("b")]) == Group(4, 7, (None, 6, None), (5,))
    assert open_group([call("a", "b"), result("a")]) == Group(0, 2, (1, None))
    assert open_group([call("a")]) == Group(0, 1, (None,))
    closed: list[list[Any]] = [[], [USER], before, [result("a")], [result("a"), result("b")], [call("a"), USER]]
    assert [open_group(messages) for messages in closed] == [None] * 6


@pytest.mark.parametrize(
    ("messages", "opening", "closing"),
    [
        ([], "", ""),
        ([USER], "user", "user"),
        ([SAID, USER], "assistant", "user"),
        ([SYSTEM], "", ""),
        ([SYSTEM, USER, SAID, SYSTEM], "user", "assistant"),
        ([USER, call("a")], "user", "assistant"),
        ([USER, call("a", "b"), result("a")], "user", "tool"),
        ([USER, call("a"), result("x")], "user", "assistant"),
        ([result("a")], "", ""),
        ([result("a"), SAID, result("b")], "assistant", "assistant"),
    ],
)
def test_the_roles_a_list_begins_and_ends_with(messages: list[Any], opening: str, closing: str) -> None:
    """Instructions and results that answer no call don't count."""
    assert (opening_role(messages), closing_role(messages)) == (opening, closing)


def test_groups_of_a_list_with_everything_in_it() -> None:
    messages = [result("x"), result("y"), USER, call("a", "b"), result("b"), result("z"), SAID, call("c"), USER]
    assert groups(messages) == [
        Group(0, 2, (), (0, 1)),
        Group(2, 3),
        Group(3, 6, (None, 4), (5,)),
        Group(6, 7),
        Group(7, 8, (None,)),
        Group(8, 9),
    ]
    assert [len(group) for group in groups(messages)] == [2, 1, 3, 1, 1, 1]


def with_calls(calls: Any) -> dict:
    return {"role": "assistant", "content": None, "tool_calls": calls}


def asked(arguments: Any) -> dict:
    return with_calls([{"id": "a", "type": "function", "function": {"name": "t", "arguments": arguments}}])


CUSTOM = {"id": "a", "type": "custom", "custom": {"name": "t", "input": "no JSON"}}


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], []),
        ([USER, 7, result("x")], [(1, "not_a_message")]),
        (["text"], [(0, "not_a_message")]),
        ([USER, {"role": "wizard"}, {}], [(1, "unknown_role"), (2, "unknown_role")]),
        ([SAID], [(0, "no_user")]),
        ([SYSTEM, SAID, SAID], [(2, "no_user")]),
        ([USER, USER, SAID, USER], [(1, "neighbours")]),
        ([USER, SAID, USER, USER, USER], [(3, "neighbours"), (4, "neighbours")]),
        ([SYSTEM, SYSTEM, USER], []),
        ([USER, SAID, SYSTEM], [(2, "late_system")]),
        ([USER, DEVELOPER, SAID], []),
        ([SYSTEM, DEVELOPER, SYSTEM, USER], []),
        ([USER, result("x"), SAID], [(1, "orphan_result")]),
        ([USER, call("a", "b"), result("b"), SAID], [(1, "missing_result")]),
        ([USER, call("a", "b"), SAID], [(1, "missing_result"), (1, "missing_result")]),
        ([USER, call("a", "b")], []),
        ([USER, with_calls("x")], [(1, "bad_arguments")]),
        ([USER, with_calls(7)], [(1, "bad_arguments")]),
        ([USER, with_calls(["x"])], []),
        ([USER, with_calls([CUSTOM]), result("a")], []),
        ([USER, with_calls([{"id": "a", "type": "function"}]), result("a")], [(1, "bad_arguments")]),
        *(([USER, asked(text), result("a")], []) for text in ("", " ", "null", "{}", "[1]", "1")),
        *(([USER, asked(text), result("a")], [(1, "bad_arguments")]) for text in ("{", "x", None, {}, 7)),
    ],
)
def test_what_a_provider_would_refuse(messages: list[Any], found: list[tuple[int, str]]) -> None:
    assert [(violation.index, violation.fault.value) for violation in validate(messages)] == found


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
    st.sampled_from([USER, call("a"), call("a", "b"), result("a"), result("b"), SAID]),
    max_size=12,
)


@given(MESSAGES)
def test_groups_cover_the_list_without_gaps_and_cuts_never_split_them(messages: list) -> None:
    found = groups(messages)
    assert [index for group in found for index in range(group.start, group.stop)] == list(range(len(messages)))
    for cut in cut_points(messages):
        after_call = 0 < cut < len(messages) and is_result(messages[cut])
        assert not after_call
