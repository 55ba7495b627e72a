"""What the user calls by its number is told with it."""

from __future__ import annotations

import pytest

from leporello.summaries.decisions import option_named
from leporello.summaries.requests import active_task, goal
from tests.summary.test_what_held import ALL, EDIT, answer, ledger_of, told, user

GATE = "Why does the gate of the barn swing open at night, and what would you do about it?"


def test_what_is_called_by_its_number_at_the_end_is_told() -> None:
    second = "2. **The real fault:** the spring is taken from the gate itself. It should be from the barn."
    found = f"1. The latch is worn.\n{second}\n3. No oil."
    ledger = ledger_of(
        EDIT, user(GATE), answer(f"{found}\n\nShould I?"), user("yeah let's begin anew, and then add a fix for 2")
    )
    lines = told(active_task(ledger, ALL))
    assert "the spring is taken from the gate itself" in lines[1]
    assert "The latch is worn" not in lines[1]


FAULTS = "Three faults:\n\n1. The latch is worn.\n2. The spring is cold.\n3. No oil."


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2", "2. The spring is cold."),
        ("go with 2", "2. The spring is cold."),
        ("let's do 2 and 3", "2. The spring is cold.; 3. No oil."),
        ("number 3 please", "3. No oil."),
        ("2, but with a light hand", "2. The spring is cold."),
        ("2 does seem like the one to begin with", "2. The spring is cold."),
        ("the second", "2. The spring is cold."),
        ("I'd take the third one, it is the cheapest", "3. No oil."),
        ("nimm 2", "2. The spring is cold."),
        ("die zweite, bitte", "2. The spring is cold."),
        ("第二个", "2. The spring is cold."),
        ("let us begin with point 2", "2. The spring is cold."),
        ("use 3, not 1", "3. No oil."),
        ("2 and 3, not 1", "2. The spring is cold.; 3. No oil."),
        ("don't do 1, do 3", "3. No oil."),
        ("not 1 but go with 2", "2. The spring is cold."),
        ("no, 3 please", "3. No oil."),
        ("no the second one please", "2. The spring is cold."),
        ("don't worry, take 2", "2. The spring is cold."),
    ],
)
def test_a_number_that_takes_an_item_is_told_with_it(said: str, meant: str) -> None:
    ledger = ledger_of(EDIT, user(GATE), answer(FAULTS), user(said))
    assert option_named(ledger, ledger.last, said).text == meant


@pytest.mark.parametrize(
    "said",
    [
        "2 of the boards of the door are loose",
        "3 people complained",
        "1 MB is too much for a picture of the barn",
        "return issue 2",
        "2, 3 people complained",
        "2 and a half hours is too long",
        "take 2 boards of the old door",
        "use 2 spaces",
        "1. Oil the hinges.\n2. Paint the door.",
        "First, oil the hinges.",
        "the second hinge creaks",
        "2/3 of the boards are loose",
        "2 Bretter sind lose",
        "do not pick 1",
        "don't do 3",
        "don’t go with 2",
        "dont do 3",
        "no 3 please",
        "I'd never do 3",
        "I would not go with 2",
        "please do not take number 2",
        "there is no need to do 3",
        "let's not do 2",
        "instead of 2",
        "do anything but do 2",
        "2 sounds wrong",
        "auf keinen Fall mach 2",
    ],
)
def test_a_figure_takes_no_item(said: str) -> None:
    ledger = ledger_of(EDIT, user(GATE), answer(FAULTS), user(said))
    assert option_named(ledger, ledger.last, said).text == ""


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("option 2", "Option 2: a spring"),
        ("do not take option 2", ""),
        ("I'd never go for option 1", ""),
        ("not option 1, option 2", "Option 2: a spring"),
        ("option 1 instead of option 2", "Option 1: a bolt"),
        ("anything but option 2", ""),
        ("nimm nicht Option 2", ""),
        ("why not option 2", "Option 2: a spring"),
    ],
)
def test_an_option_that_is_refused_is_not_taken(said: str, meant: str) -> None:
    ledger = ledger_of(EDIT, user(GATE), answer("Two ways:\n\nOption 1: a bolt\n\nOption 2: a spring"), user(said))
    assert option_named(ledger, ledger.last, said).text == meant


def test_a_goal_that_is_a_number_says_what_it_means() -> None:
    ledger = ledger_of(answer(FAULTS), user("3 but leave the old hinges as they are, they are fine"), EDIT)
    assert told(goal(ledger, ALL)) == ["3 but leave the old hinges as they are, they are fine (“3. No oil.”)"]
