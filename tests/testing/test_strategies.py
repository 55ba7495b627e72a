"""The strategies: the valid ones are valid, the nasty ones reach every fault, and lists grow large."""

from __future__ import annotations

import pytest
from hypothesis import Phase, find, given, settings

from leporello.messages import Message, encode_json
from leporello.summaries.fold import is_fold
from leporello.turns import ViolationKind, open_group, validate
from tests.support import strategies

_LOOK = settings(max_examples=3_000, database=None, phases=[Phase.generate], deadline=None)


@given(strategies.conversations(with_folds=True))
def test_conversations_are_valid(messages: list[Message]) -> None:
    assert validate(messages) == []


@given(strategies.conversations(open_calls=True))
def test_open_calls_stand_at_the_end_when_asked_for(messages: list[Message]) -> None:
    assert open_group(messages) is not None


@given(strategies.folds())
def test_folds_are_recognised(message: Message) -> None:
    assert is_fold(message)


@given(strategies.forged_folds())
def test_forged_folds_are_not(message: Message) -> None:
    assert not is_fold(message)


@pytest.mark.parametrize(
    "fault", sorted(set(ViolationKind) - {ViolationKind.NOT_A_MESSAGE, ViolationKind.UNKNOWN_ROLE})
)
def test_nasty_conversations_reach_every_fault_a_dict_can_have(fault: ViolationKind) -> None:
    find(strategies.nasty_conversations(), lambda messages: fault in faults(messages), settings=_LOOK)


def test_huge_and_empty_lists_occur() -> None:
    find(strategies.any_conversation(), lambda messages: size(messages) > 50_000, settings=_LOOK)
    find(strategies.any_conversation(), lambda messages: not messages, settings=_LOOK)


def faults(messages: list[Message]) -> set[ViolationKind]:
    return {violation.fault for violation in validate(messages)}


def size(messages: list[Message]) -> int:
    return sum(len(encode_json(message)) for message in messages)
