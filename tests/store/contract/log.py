"""The log: what is read equals what was written, for ever, by number."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.conversation import Conversation
from leporello.errors import InputError, NotFound, StoreConflict, StoreError
from leporello.events import Span
from leporello.messages import message_hash
from leporello.providers.base import ModelReply
from leporello.store import Store
from leporello.store.records import ModelCall
from leporello.usage import CanonicalUsage
from tests.store.contract.base import (
    CommitCounter,
    ContractBase,
    any_text,
    assistant,
    example_settings,
    json_values,
    tool_turn,
    user,
)


class LogContract(ContractBase):
    """`store.log`."""

    def test_numbers_count_from_one_and_go_on(self, store: Store) -> None:
        store.conversations.create("c")
        assert store.log.append("c", [user("a"), user("b")]) == [1, 2]
        assert store.log.append("c", []) == []
        assert store.log.append("c", [user("c")]) == [3]
        assert store.log.count("c") == 3
        assert store.log.message("c", 2).message == user("b")
        assert store.log.message("c", 2).id == "m2"

    def test_an_answer_is_recorded_with_its_usage_and_state(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("a")])
        store.state.add("c", "attempts", 2)
        call = ModelCall(CanonicalUsage(input_tokens=5, output_tokens=3), "m", cost=0.25)
        assert store.log.record("c", assistant("b"), call, {"meter": {"a": [1]}, "attempts": None}) == 2
        assert store.log.message("c", 2).message == assistant("b")
        assert (store.usage.totals("c").calls, store.usage.totals("c").cost) == (1, 0.25)
        assert store.state.items("c") == {"meter": {"a": [1]}}

    def test_an_answer_that_can_not_be_recorded_leaves_nothing(self, store: Store) -> None:
        store.conversations.create("c")
        call = ModelCall(CanonicalUsage(input_tokens=5), "m")
        with pytest.raises(NotFound):
            store.log.record("nobody", assistant("b"), call, {"k": 1})
        for message, state in (
            ({"content": object()}, {"k": 1}),
            (assistant("b"), {"k": object()}),
            (assistant("b"), {"": 1}),
        ):
            with pytest.raises(InputError):
                store.log.record("c", message, call, state)
        # One that only the database finds: a counter beyond what a column can hold.
        with pytest.raises((InputError, StoreError)):
            store.log.record("c", assistant("b"), ModelCall(CanonicalUsage(input_tokens=2**70), "m"), {"k": 1})
        assert (store.log.count("c"), store.usage.totals("c").calls, store.state.items("c")) == (0, 0, {})

    def test_an_answer_of_a_conversation_is_one_commit(self, store: Store) -> None:
        """Message, usage and measure: a process that dies leaves all of them or none."""
        database = CommitCounter(store.database)
        counted = Store(database, store.index, store.care)
        with Conversation.open("c", window=100_000, store=counted) as talk:
            talk.append(user("a"))
            talk.request()
            for number in range(2, 5):
                before = database.commits
                assert (
                    talk.record(ModelReply(assistant(f"answer {number}"), CanonicalUsage(input_tokens=40)))
                    == f"m{number}"
                )
                assert database.commits == before + 1
        assert store.usage.totals("c").calls == 3

    def test_an_unknown_conversation_is_not_found(self, store: Store) -> None:
        for use in (
            lambda: store.log.append("nobody", [user("a")]),
            lambda: store.log.count("nobody"),
            lambda: store.log.message("nobody", 1),
            lambda: list(store.log.iterate("nobody")),
            lambda: store.views.view("nobody"),
            lambda: store.conversations.resolve("nobody"),
        ):
            with pytest.raises(NotFound):
                use()

    @pytest.mark.parametrize("number", [0, -1, 2, 2**31, 2**63, 2**70, -(2**70)])
    def test_a_number_outside_the_log_is_not_found(self, store: Store, number: int) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("a")])
        with pytest.raises(NotFound):
            store.log.message("c", number)

    def test_spans_are_read_in_order_and_cut_at_the_end(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(str(n)) for n in range(1, 11)])
        assert [m.number for m in store.log.span("c", Span(4, 6))] == [4, 5, 6]
        assert [m.number for m in store.log.span("c", Span(9, 2**70))] == [9, 10]
        assert store.log.span("c", Span(11, 20)) == []

    def test_scattered_messages_are_picked_in_order(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(str(n)) for n in range(1, 501)])
        wanted = [400, 1, 2, 2, 0, -5, 501, 2**70, *range(10, 490, 3)]
        found = [item.number for item in store.log.pick("c", wanted)]
        assert found == sorted({number for number in wanted if 1 <= number <= 500})
        assert store.log.pick("c", []) == []

    def test_iterating_a_long_log_gives_every_message_once(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(str(n)) for n in range(1, 1301)])
        assert [m.message["content"] for m in store.log.iterate("c")] == [str(n) for n in range(1, 1301)]
        assert [m.number for m in store.log.iterate("c", 499, 502)] == [499, 500, 501, 502]

    def test_a_log_is_iterated_from_one_message_to_another(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(str(number)) for number in range(1, 10)])
        for first, last, numbers in (
            (1, None, [*range(1, 10)]),
            (7, None, [7, 8, 9]),
            (2, 5, [2, 3, 4, 5]),
            (3, 2, []),
        ):
            assert [stored.number for stored in store.log.iterate("c", first, last)] == numbers

    def test_conversations_do_not_see_each_other(self, store: Store) -> None:
        store.conversations.create("a")
        store.conversations.create("b")
        store.log.append("a", [user("of a")])
        store.log.append("b", [user("of b")])
        assert store.log.message("a", 1).message == user("of a")
        assert store.log.message("b", 1).message == user("of b")
        assert store.log.find("b", user("of a")) is None

    def test_a_repeated_message_is_stored_once_and_read_at_every_place(self, store: Store) -> None:
        store.conversations.create("c")
        big = user("the same again " * 2000)
        store.log.append("c", [big, user("x"), big])
        before = store.care.checkup().sizes
        for _ in range(50):
            store.log.append("c", [big])
        assert [m.message for m in store.log.span("c", Span(1, 3))] == [big, user("x"), big]
        assert store.log.message("c", 53).message == big
        assert store.log.find("c", big) == 1
        grown = sum(store.care.checkup().sizes.values()) - sum(before.values())
        assert grown < 50 * 30_000 / 4

    def test_key_order_and_unknown_fields_survive(self, store: Store) -> None:
        store.conversations.create("c")
        odd = {"zeta": [1.0, 1, {"b": None, "a": True}], "content": "x", "role": "user", "name": "", "x-unknown": {}}
        store.log.append("c", [odd])
        assert json.dumps(store.log.message("c", 1).message) == json.dumps(odd)

    @example_settings
    @given(messages=st.lists(st.dictionaries(any_text, json_values, max_size=6), max_size=5))
    def test_any_json_object_reads_back_byte_for_byte(self, store: Store, messages: list[dict[str, Any]]) -> None:
        id = store.conversations.create().id
        numbers = store.log.append(id, messages)
        back = [item.message for item in store.log.iterate(id)]
        assert len(numbers) == len(back)
        assert [json.dumps(message) for message in back] == [json.dumps(message) for message in messages]
        assert [message_hash(message) for message in back] == [message_hash(message) for message in messages]

    @pytest.mark.parametrize(
        "bad",
        [
            {"role": "user", "content": b"bytes"},
            {"role": "user", "content": ("tuple",)},
            {1: "a number as key"},
            {"role": "user", "content": {1, 2}},
            "not a dict",
        ],
    )
    def test_what_json_cannot_carry_is_refused_and_nothing_is_written(self, store: Store, bad: Any) -> None:
        store.conversations.create("c")
        with pytest.raises(InputError):
            store.log.append("c", [user("good"), bad])
        assert store.log.count("c") == 0

    def test_not_a_number_is_kept(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [{"role": "user", "content": float("nan"), "x": [float("inf"), 2**100]}])
        back = store.log.message("c", 1).message
        assert back["content"] != back["content"]
        assert back["x"] == [float("inf"), 2**100]

    def test_an_expected_end_guards_against_other_writers(self, store: Store) -> None:
        store.conversations.create("c")
        assert store.log.append("c", [user("a")], after=0) == [1]
        with pytest.raises(StoreConflict):
            store.log.append("c", [user("b")], after=0)
        assert store.log.count("c") == 1
        assert store.log.append("c", [user("b")], after=1) == [2]

    def test_times_are_kept_to_the_millisecond(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("old"), user("older")], at=[1_500_000_000.125, 946_684_800.0])
        assert [m.created_at for m in store.log.iterate("c")] == [1_500_000_000.125, 946_684_800.0]
        for times in ([1.0, 2.0], [float("nan")], [float("inf")], [1e300], []):
            with pytest.raises(InputError):
                store.log.append("c", [user("x")], at=times)
        assert store.log.count("c") == 2

    def test_everything_is_there_after_closing_and_opening(self, url: str) -> None:
        messages = [user("a"), *tool_turn("bash", "x" * 50_000), user("a")]
        with self.open(url) as store:
            store.conversations.create("c")
            store.log.append("c", messages)
        with self.open(url) as store:
            assert [m.message for m in store.log.iterate("c")] == messages
            assert store.care.checkup().clean

    def test_a_message_of_many_megabytes_is_kept(self, store: Store) -> None:
        store.conversations.create("c")
        huge = user("0123456789abcdef\n" * 600_000)
        store.log.append("c", [huge])
        assert store.log.message("c", 1).message == huge
