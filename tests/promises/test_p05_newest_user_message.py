"""Promise 5: the newest user message stands after the summary byte for byte; the summary is never the last turn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.messages import Message, encode_json, role_of, text_of
from leporello.testing.sessions import SessionSpec, Style, generate
from tests.support import checks
from tests.support.rounds import fold_once, rounds
from tests.support.strategies import any_conversation, conversations

BREAKS = re.compile(r"\[…\]|\[REDACTED\]|\n")
WINDOWS = st.sampled_from((1_500, 3_000, 6_000, 16_000))


@pytest.mark.fault(
    "the newest user message is folded when it lies far back",
    "compaction/plan.py",
    old="lifted = newest if newest is not None and newest in between else None",
    new="lifted = None",
)
@pytest.mark.fault(
    "the newest user message is clipped like any other",
    "compaction/assemble.py",
    old="if index in plan.open_calls or k == newest or item.is_summary or is_instruction(item.message):",
    new="if index in plan.open_calls or item.is_summary or is_instruction(item.message):",
)
@pytest.mark.fault(
    "a newest user message from further back is shown before the fold",
    "compaction/assemble.py",
    old="[*head, *folds, *lifted,",
    new="[*head, *lifted, *folds,",
)
@given(conversations(longest=24, with_folds=True), WINDOWS)
def test_it_stands_behind_the_fold_byte_for_byte(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    if not done.report.committed:
        return
    newest, fold = checks.newest_user(done.messages), checks.fold_in(done.messages)
    assert newest is not None
    before = checks.newest_user(messages)
    assert before is not None
    assert encode_json(done.messages[newest]) == encode_json(messages[before])
    if done.report.fold or checks.fold_in(messages):
        assert fold is not None, "the fold is not recognised in its own list"
    if done.report.fold:
        assert newest > fold[0]


@given(any_conversation(longest=20), WINDOWS)
def test_in_any_list_the_newest_words_of_the_user_are_kept(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    newest = checks.newest_user(messages)
    words = "" if newest is None else text_of(messages[newest])
    if not done.report.committed or newest is None or not words:
        return
    shown = checks.newest_user(done.messages)
    assert shown is not None
    before, kept, behind = text_of(done.messages[shown]).rpartition(words)
    assert kept, "the newest words are not there as they were"
    # Neighbouring messages in the user's role are shown as one: earlier ones, whole or visibly cut, and folds that
    # somebody pasted later.
    for text, neighbours in ((before, messages[:newest]), (behind, messages[newest + 1 :])):
        source = "\n".join(text_of(message) for message in neighbours if role_of(message) == "user")
        place = 0
        for piece in map(str.strip, BREAKS.split(text)):
            found = source.find(piece, place)
            assert found >= 0, "what is shown beside it is no piece of what was said"
            place = found + len(piece)


@pytest.mark.fault(
    "the newest user message is folded when it lies far back",
    "compaction/plan.py",
    old="lifted = newest if newest is not None and newest in between else None",
    new="lifted = None",
)
@given(conversations(longest=12), WINDOWS)
def test_a_second_compaction_keeps_it_too(messages: list[Message], window: int) -> None:
    first = fold_once(messages, window)
    if not first.report.committed:
        return
    # The assistant works on alone: the newest user message is now far back, a fold stands before it.
    more: list[Message] = [{"role": "assistant", "content": f"Step {n}: " + "working on it. " * 60} for n in range(40)]
    second = fold_once([*first.messages, *more], window)
    assert checks.newest_request(second.messages) == checks.newest_request(messages)


@pytest.mark.parametrize("style", list(Style))
def test_through_ten_rounds_of_a_session(style: Style) -> None:
    session = generate(SessionSpec(seed=71, messages=300, tokens=40_000, style=style))
    for done in rounds(session.messages, 8_000, 10):
        newest = checks.newest_user(session.messages[: done.seen])
        assert newest is not None
        assert encode_json(session.messages[newest]) in [encode_json(message) for message in done.after]
        fold = checks.fold_in(done.after)
        assert fold is None or role_of(done.after[fold[0]]) != "user" or fold[0] < (checks.newest_user(done.after) or 0)
