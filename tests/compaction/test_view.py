"""The lines of a view: their numbers, how they are stored and sent, and lists that come back longer."""

from __future__ import annotations

from typing import Any

import pytest

from leporello.compaction.assemble import STUB, apart, repair
from leporello.compaction.view import (
    OPENING,
    ByObject,
    Item,
    Origin,
    Returned,
    are_joined,
    is_opening,
    join,
    join_neighbours,
    number_messages,
)
from leporello.events import Span, ViewEntry
from leporello.messages import Message
from leporello.summaries.fold import Fold, Trust, fold_message, read_fold
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


SYSTEM: Message = {"role": "system", "content": "rules"}
KEY = b"k" * 32
HANDOFF = Handoff({Section.GOAL: (HandoffLine("Keep it running", (1,), LineOrigin.USER),)})


def folded(first: int, last: int, kept: tuple[int, ...] = (), role: str = "user") -> Message:
    return fold_message(Fold(1, Span(first, last), HANDOFF, kept=kept), role, recall=False, key=KEY)


def numbers(messages: list[Message]) -> list[int]:
    return [item.number for item in number_messages(messages, Trust(KEY))]


class TestNumbers:
    def test_a_plain_list_counts_from_one(self) -> None:
        items = number_messages([SYSTEM, user("a"), said("b")])
        assert [(item.number, item.origin, item.fold) for item in items] == [
            (1, Origin.LOG, None),
            (2, Origin.LOG, None),
            (3, Origin.LOG, None),
        ]

    def test_behind_a_fold_they_go_on_where_its_span_ends(self) -> None:
        assert numbers([folded(1, 9), said("a"), user("b")]) == [1, 10, 11]
        assert numbers([user("a"), folded(2, 9, role="assistant"), user("b")]) == [1, 2, 10]

    def test_what_a_fold_leaves_standing_keeps_its_number(self) -> None:
        assert numbers([folded(1, 9, kept=(4, 7)), said("a"), user("b"), said("c"), user("d")]) == [1, 4, 7, 10, 11]

    def test_a_fold_is_believed_only_behind_what_was_said_before_its_span(self) -> None:
        """Instructions and our own opening line were not said."""
        fold = folded(2, 9, role="assistant")
        for before, believed in (([user("a")], True), ([SYSTEM, OPENING], True), ([user("a"), said("b")], False)):
            (item,) = number_messages([*before, fold], Trust(KEY))[len(before) :]
            assert (item.fold is not None, item.unverified is None) == (believed, believed)

    def test_without_trust_no_fold_is_believed(self) -> None:
        for trust in (None, Trust(b"another key" * 3)):
            (item,) = number_messages([folded(1, 9)], trust)
            assert item.fold is None
            assert item.unverified == HANDOFF
            assert (item.role, item.is_summary, item.origin) == ("fold", True, Origin.LOG)


class TestLines:
    FOLD = read_fold(folded(3, 9))

    def test_what_is_stored_of_a_line(self) -> None:
        message = user("a")
        assert Item(4, message).entry == ViewEntry(4, None, None)
        assert Item(4, message, origin=Origin.SHORTENED).entry == ViewEntry(4, message, None)
        assert Item(4, message, origin=Origin.WRITTEN).entry == ViewEntry(None, message, None)
        assert Item(3, message, self.FOLD, Origin.WRITTEN).entry == ViewEntry(None, message, "f1")
        assert Item(3, message, origin=Origin.WRITTEN, engine_fold="f7").entry == ViewEntry(None, message, "f7")

    def test_roles(self) -> None:
        assert Item(1, said("a")).role == "assistant"
        assert not Item(1, said("a")).is_summary
        assert Item(3, user("a"), self.FOLD).role == "fold"

    def test_another_message_makes_it_a_shortened_one(self) -> None:
        line, other = Item(4, user("a")), user("b")
        assert line.showing(line.message) is line
        assert line.showing(other) == Item(4, other, origin=Origin.SHORTENED)
        written = Item(3, user("a"), self.FOLD, Origin.WRITTEN)
        assert written.showing(other) == Item(3, other, self.FOLD, Origin.WRITTEN)

    def test_a_message_is_measured_once(self) -> None:
        asked: list[Message] = []
        measure = ByObject(lambda message: asked.append(message) or len(asked))
        one, same = user("a"), user("a")
        assert [measure(one), measure(one), measure(same), measure(one)] == [1, 1, 2, 1]

    def test_the_opening_is_ours_and_the_users(self) -> None:
        assert is_opening(OPENING)
        assert not is_opening({**OPENING, "role": "assistant"})
        assert not is_opening(user("x"))


class TestJoining:
    @pytest.mark.parametrize(
        ("one", "two", "content"),
        [
            ("a", "b", "a\n\nb"),
            ("", "b", "b"),
            ("a", None, "a"),
            (None, "", ""),
            ([{"type": "x"}], "b", [{"type": "x"}, {"type": "text", "text": "b"}]),
            ("a", [{"type": "x"}], [{"type": "text", "text": "a"}, {"type": "x"}]),
            ([{"type": "x"}], [{"type": "y"}], [{"type": "x"}, {"type": "y"}]),
        ],
    )
    def test_contents(self, one: Any, two: Any, content: Any) -> None:
        joined = join({**user(one), "name": "n", "a": 1}, {**user(two), "b": 2, "a": 3})
        assert joined == {"role": "user", "content": content, "name": "n", "a": 3, "b": 2}

    def test_neighbouring_user_messages_are_one_and_carry_the_newer_number(self) -> None:
        items = number_messages([user("a"), user("b"), said("c"), said("d"), user("e")])
        assert join_neighbours(items) == [Item(2, user("a\n\nb"), origin=Origin.SHORTENED), *items[2:]]
        assert join_neighbours(items[1:], items[:1]) == join_neighbours(items)
        assert join_neighbours([]) == []

    def test_a_fold_is_never_joined(self) -> None:
        fold = Item(1, folded(1, 9), read_fold(folded(1, 9)), Origin.WRITTEN)
        plain = Item(10, user("a"))
        assert not are_joined(fold, plain)
        assert not are_joined(plain, fold)
        assert are_joined(plain, plain)
        assert not are_joined(plain, Item(11, said("b")))
        assert join_neighbours([fold, plain]) == [fold, plain]


class TestReturned:
    SHOWN = (Item(1, user("a")), Item(2, user("b")), Item(7, said("c")))

    def test_a_list_that_begins_with_it_has_its_ids(self) -> None:
        handed = Returned.of(self.SHOWN, 7)
        back = [{**user("a\n\nb"), "_id": 3}, said("c"), user("new"), said("newer")]
        found = handed.match(back)
        assert found is not None
        assert [(item.number, item.message) for item in found] == list(zip([2, 7, 8, 9], back, strict=True))
        assert [item.origin for item in found] == [Origin.SHORTENED, Origin.LOG, Origin.LOG, Origin.LOG]
        assert [item.number for item in handed.match(back[:2]) or ()] == [2, 7]

    def test_any_other_list_is_not_it(self) -> None:
        handed = Returned.of(self.SHOWN, 7)
        for other in ([], [user("a\n\nb")], [user("a"), said("c")], [said("c"), user("a\n\nb")]):
            assert handed.match(other) is None

    def test_what_the_host_changes_later_in_place_does_not_count(self) -> None:
        message = said("c")
        handed = Returned.of([Item(1, user("a")), Item(2, message)], 2)
        message["content"] = "d"
        assert handed.match([user("a"), said("c")]) is not None
        assert handed.match([user("a"), message]) is None

    def test_a_fold_in_what_is_new_is_none_of_ours(self) -> None:
        found = Returned.of([Item(1, user("a"))], 1).match([user("a"), folded(2, 9, role="assistant")])
        assert found is not None
        assert (found[1].fold, found[1].unverified) == (None, HANDOFF)


class TestRepair:
    CALL: Message = {  # noqa: RUF012 - never changed
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}},
            {"id": "", "type": "function", "function": {"name": "u", "arguments": "{"}},
        ],
    }

    def test_lost_results_get_a_stub_and_orphans_go(self) -> None:
        result = {"role": "tool", "tool_call_id": "x", "content": "orphan"}
        lines = repair(number_messages([user("go"), self.CALL, result, said("on")]))
        assert [line.number for line in lines] == [1, 2, 2, 2, 4]
        assert [line.message for line in lines[2:4]] == [
            {"role": "tool", "tool_call_id": "a", "content": STUB},
            {"role": "tool", "tool_call_id": "", "content": STUB, "name": "u"},
        ]
        assert [line.origin.value for line in lines] == ["log", "shortened", "written", "written", "log"]
        assert lines[1].message["tool_calls"][1]["function"]["arguments"] == '{"invalid_json":"{"}'

    def test_open_calls_at_the_end_wait_unless_more_follows(self) -> None:
        items = number_messages([user("go"), self.CALL])
        assert len(repair(items)) == 2
        assert len(repair(items, more_follows=True)) == 4

    def test_a_fold_beside_the_user_takes_the_other_role_and_never_opens_in_it(self) -> None:
        fold = Item(1, folded(1, 9), read_fold(folded(1, 9)), Origin.WRITTEN)
        for lines, roles in (
            ([fold, Item(10, said("a"))], ["user", "assistant"]),
            ([fold, Item(10, user("a"))], ["user", "assistant", "user"]),
            ([Item(1, user("a")), fold, Item(10, said("b"))], ["user", "assistant", "assistant"]),
            ([Item(1, SYSTEM), fold, Item(10, user("a"))], ["system", "user", "assistant", "user"]),
            ([Item(1, said("a")), Item(2, user("b"))], ["assistant", "user"]),
        ):
            shown = apart(lines)
            assert [line.message["role"] for line in shown] == roles
            assert sum(is_opening(line.message) for line in shown) == len(roles) - len(lines)
