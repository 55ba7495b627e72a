"""What is sent of a view is the same whether it is followed line by line or worked out from the whole."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from leporello.compaction.assemble import repair
from leporello.compaction.view import Item, join_neighbours
from leporello.conversation.rendering import RenderedView, sent_messages
from leporello.messages import Message
from leporello.store.records import View, ViewLine
from tests.support.strategies import any_conversation


def from_the_whole(messages: list[Message]) -> list[Message]:
    lines = [Item(number, message) for number, message in enumerate(messages, 1)]
    return [line.message for line in join_neighbours(repair(lines))]


def grown(view: View, messages: list[Message]) -> View:
    lines = [ViewLine(message, number) for number, message in enumerate(messages, view.last + 1)]
    return replace(view, lines=(*view.lines, *lines), last=view.last + len(messages))


@given(any_conversation(longest=24), st.lists(st.integers(1, 4), min_size=24, max_size=24))
def test_line_by_line_is_the_same_as_the_whole(messages: list[Message], steps: list[int]) -> None:
    sent = RenderedView()
    view = View(
        conversation="a",
        session="a",
        generation=3,
        last=0,
        lines=(),
        folds=0,
        compactions=0,
        waits_for_hard_limit=False,
    )
    done = 0
    for step in steps:
        view = grown(view, messages[done : done + step])
        done += step
        assert sent.messages(view) == from_the_whole(messages[:done])
        told = sent_messages(view)
        assert [item.message for item in told] == sent.messages(view)
        numbers = [line.number for item in told for line in item.lines]
        assert numbers == sorted(set(numbers))


@given(any_conversation(longest=12), any_conversation(longest=12), st.booleans())
def test_another_view_is_read_afresh(one: list[Message], other: list[Message], same_generation: bool) -> None:
    sent = RenderedView()
    empty = View(
        conversation="a",
        session="a",
        generation=1,
        last=0,
        lines=(),
        folds=0,
        compactions=0,
        waits_for_hard_limit=False,
    )
    sent.messages(grown(empty, one))
    following = grown(replace(empty, generation=1 if same_generation else 2), other)
    assert sent.messages(following) == from_the_whole(other)
