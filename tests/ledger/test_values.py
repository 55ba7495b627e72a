"""Values over time: a later value for the same thing replaces the earlier one, and nothing else."""

from __future__ import annotations

import pytest

from leporello.ledger.ledger import Ledger, load, save
from leporello.ledger.values import MOST_OPEN, Values
from tests.ledger.value_pairs import APART, SILENT, SPOKEN

BETWEEN = (
    "The parser tests pass and I cleaned up the fixtures.",
    "The weather in Oslo was 12 degrees yesterday.",
    "I have looked at `main.py`, which has 240 lines.",
)


def after(old: str, new: str) -> Values:
    values = Values()
    values.add(1, "user", [old])
    for number, sentence in enumerate(BETWEEN, 2):
        values.add(number, "assistant", [sentence])
    values.add(9, "user", [new])
    return values


@pytest.mark.parametrize(("old", "new", "was", "now"), SILENT + SPOKEN)
def test_a_later_value_for_the_same_thing_replaces_the_earlier_one(old: str, new: str, was: str, now: str) -> None:
    changes = [(change.was, change.value, change.was_since, change.since) for change in after(old, new).changes]
    assert changes == [(was, now, 1, 9)]


@pytest.mark.parametrize(("one", "other"), APART)
def test_values_of_different_things_stay(one: str, other: str) -> None:
    assert after(one, other).changes == []
    assert after(other, one).changes == []


def test_the_newest_of_several_values_is_named() -> None:
    values = Values()
    values.add(1, "user", ["The billing portal launch is on 12 May."])
    values.add(5, "user", ["The billing portal launch is on 19 May."])
    values.add(9, "user", ["The billing portal launch is on 26 May."])
    assert [(change.was, change.value, change.since) for change in values.replaced_in(1)] == [("12 May", "26 May", 9)]
    assert [(change.was, change.value) for change in values.latest()] == [("19 May", "26 May")]


def test_a_value_that_came_back_is_not_marked() -> None:
    values = Values()
    for number, day in ((1, 12), (5, 19), (9, 12)):
        values.add(number, "user", [f"The billing portal launch is on {day} May."])
    assert values.marked(1, "The billing portal launch is on 12 May.") == "The billing portal launch is on 12 May."


def test_a_replaced_value_is_marked_where_it_stands() -> None:
    values = after("The retry limit for the uploader is 5.", "Uploader retry limit: 8")
    said = "Hello. The retry limit for the uploader is 5. Bye."
    assert values.marked(1, said) == "Hello. The retry limit for the uploader is 5. (was; since m9: 8) Bye."
    assert values.marked(2, said) == said


def test_questions_and_suppositions_replace_nothing() -> None:
    for later in ("Could the uploader retry limit be 8?", "If the uploader retry limit were 8, it would be slow."):
        assert after("The retry limit for the uploader is 5.", later).changes == []


def test_only_so_many_statements_wait_for_another_value() -> None:
    values = Values()
    for number in range(1, MOST_OPEN + 50):
        values.add(number, "user", [f"Box a{number}x weighs {number} kg at depot q{number}z."])
    assert len(values.open) == MOST_OPEN


def test_values_are_stored_with_the_ledger() -> None:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": "The billing portal launch is on 12 May."})
    loaded = load(save(ledger))
    loaded.add(2, {"role": "user", "content": "The billing portal launch is on 19 May."})
    again = load(save(loaded))
    assert [(change.was, change.value) for change in again.values.replaced_in(1)] == [("12 May", "19 May")]
