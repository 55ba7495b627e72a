"""What a short message goes on with: the question, the offer or the proposal before it, or what it calls "this"."""

from __future__ import annotations

import json

import pytest

from leporello.summaries.deterministic import SectionSource, build, plain_sections
from leporello.summaries.episodes import done_so_far, plan_lines
from leporello.summaries.handoff import Section
from leporello.summaries.replies import PROPOSAL_CHARS
from leporello.summaries.requests import active_task, goal, pending_asks
from leporello.summaries.sections import resolved_questions
from leporello.summaries.work_state import blocked, things_left
from tests.summary.test_what_held import ALL, EDIT, answer, call, ledger_of, told, user

GATE = "Why does the gate of the barn swing open at night, and what would you do about it?"
PLAN = """The latch is worn.

## Best way: a second spring behind the latch

1. Take the latch off.
2. Put the spring in.

"""


def test_a_question_in_bold_with_a_word_behind_it_is_a_question() -> None:
    asked = "**Want me to do it this way?** It needs no new bolts and takes an hour of work in the morning."
    lines = told(active_task(ledger_of(EDIT, user(GATE), answer(PLAN + asked), user("yes")), ALL))
    assert lines[0] == GATE
    assert "a second spring behind the latch" in lines[1]
    assert "1. Take the latch off.\n2. Put the spring in." in lines[1]
    assert lines[2:] == [asked, "yes"]


def test_an_agreement_is_told_with_what_was_proposed_without_a_question() -> None:
    ledger = ledger_of(EDIT, user(GATE), answer(PLAN + "Nothing else has to change."), user("ok, let's do this"))
    lines = told(active_task(ledger, ALL))
    assert len(lines) == 3
    assert "2. Put the spring in.\nNothing else has to change." in lines[1]
    # Beside the fold the message still stands whole.
    assert told(active_task(ledger, ())) == [GATE, "ok, let's do this"]


@pytest.mark.parametrize("reply", ["yes please", "yes p[lease", "ok do that", "sure, both of them"])
def test_an_agreement_is_told_with_what_was_offered(reply: str) -> None:
    offer = "If you want, I can also oil the hinges and add a list of all keys."
    lines = told(active_task(ledger_of(EDIT, user(GATE), answer(f"It is done.\n- {offer}"), user(reply))))
    assert lines == [GATE, f"- {offer}", reply]


def test_a_heading_is_no_question_and_no_offer() -> None:
    said = "## Where should it go?\n\nBehind the latch.\n\n**More** (if you want to be nice):\n- a drop of oil"
    lines = told(active_task(ledger_of(EDIT, user(GATE), answer(said), user("yes, let's add this"))))
    assert lines == [GATE, "yes, let's add this"]


def test_a_proposal_is_no_longer_than_what_was_meant() -> None:
    long = "\n".join(f"- board {n} of the gate is painted twice and dried for a day" for n in range(40))
    lines = told(active_task(ledger_of(EDIT, user(GATE), answer(f"{long}\n\nShall I?"), user("yes")), ALL))
    assert len(lines[1]) <= PROPOSAL_CHARS + 40
    assert "board 39" in lines[1]
    assert "board 0 " not in lines[1]


def test_a_reply_of_many_words_is_told_with_what_it_takes_up() -> None:
    offers = "\n".join(
        f"Booking B{n}:\n- from {place} on Monday\n- two seats"
        for n, place in enumerate(["Ulm", "Bonn", "Kiel", "Graz"], 1)
    )
    reply = (
        "Yes, booking B3 from Kiel is mine. I would like to move it to the day after, and take a seat by the window."
    )
    ledger = ledger_of(
        user("Look up my bookings, please."), answer(f"{offers}\n\nWhich one do you want to change?"), user(reply)
    )
    proposed = told(active_task(ledger, ALL))[1]
    assert "Kiel" in proposed
    assert "Graz" not in proposed
    assert "Ulm" not in proposed


def test_lines_that_stood_apart_are_not_told_as_one_list() -> None:
    said = "Booking B1 of the coach at noon:\n- from Ulm\n- from Bonn at noon by coach\n\nIs that the coach you mean?"
    reply = "Yes, I mean the coach from Bonn at noon, and please keep two seats of it for me and my brother."
    ledger = ledger_of(user("Look up my coach, please."), answer(said), user(reply))
    assert told(active_task(ledger, ALL))[1] == "Booking B1 of the coach at noon: […]\n- from Bonn at noon by coach"


def test_the_request_is_found_behind_any_number_of_goings_on() -> None:
    asked = "Now add a changelog entry for release 2.4."
    begun = [one for step in range(40) for one in (answer(f"Step {step} of the changelog is made."), user("go on"))]
    assert told(active_task(ledger_of(EDIT, user(GATE), answer("Oiled."), user(asked), *begun))) == [asked, "go on"]


def test_a_request_stands_behind_what_it_calls_this() -> None:
    found = "Both hinges creak for one reason: the oil is older than the gate."
    ledger = ledger_of(EDIT, user(GATE), answer(f"I looked at them.\n\n{found}"), user("Can you add this to NOTES.md?"))
    assert told(active_task(ledger, ALL)) == [GATE, found, "Can you add this to NOTES.md?"]
    named = "where is `latch_of` and what is it used for?"
    assert told(active_task(ledger_of(EDIT, user(GATE), answer(found), user(named)), ALL)) == [named]


def test_what_was_said_before_the_last_request_is_not_what_a_reply_means() -> None:
    ledger = ledger_of(
        EDIT,
        user("Please paint the gate of the barn red."),
        answer("Done. If you want, I can oil the hinges too."),
        user("Now write all that you know of the barn into a file."),
        call("terminal", "x", command="ls"),
        user("OK, continue"),
    )
    assert told(active_task(ledger, ALL)) == ["Now write all that you know of the barn into a file.", "OK, continue"]


def test_a_few_words_that_take_one_of_two_things_are_told_with_the_question() -> None:
    asked = "Shall it be a minor change of the gate, or a patch?"
    ledger = ledger_of(EDIT, user(GATE), answer(asked), user("minor, this is a big change"))
    assert told(active_task(ledger))[-2:] == [asked, "minor, this is a big change"]


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        ("minor please, the old bolts stay", True),
        ("minor because the bolts stay", True),
        ("minor change of the gate please", True),
        ("patch the lock of the door too", False),
        ("minor scratches remain on the door", False),
    ],
)
def test_an_order_that_begins_with_a_word_of_the_question_is_no_answer(said: str, *, answers: bool) -> None:
    asked = "Shall it be a major or a minor change of the gate, or a patch?"
    lines = told(active_task(ledger_of(EDIT, user(GATE), answer(asked), user(said))))
    assert lines == ([GATE, asked, said] if answers else [said])


def test_a_reason_that_was_asked_for_is_told_with_the_request() -> None:
    request = "I'd also like to cancel the coach of Friday, the one with the number NQ55."
    ledger = ledger_of(
        user(request), answer("What is the reason for it?"), user("This one is also due to a change of plan.")
    )
    assert told(active_task(ledger)) == [
        request,
        "What is the reason for it?",
        "This one is also due to a change of plan.",
    ]


def test_a_command_that_nothing_was_typed_behind_asks_for_nothing() -> None:
    left = "<command-name>/exit</command-name>\n<command-message>exit</command-message>\n<command-args></command-args>"
    ledger = ledger_of(EDIT, user(GATE), answer("The latch is worn."), user(left))
    assert [ask.text for ask in ledger.asks] == [GATE]


def test_names_of_tests_that_passed_block_nothing() -> None:
    name = "TestGate/unknown_key_returns_error"
    printed = f"Exit code 137\n=== RUN   {name}\n--- PASS: {name}\nok  barn/gate 0.4s"
    ledger = ledger_of(user("Run the tests of the gate."), call("terminal", printed, command="go test ./gate -v"))
    assert not any("unknown_key" in line for line in told(blocked(ledger, ALL)))


@pytest.mark.parametrize(
    "empty",
    [
        "Ha, good question.",
        "Thank you for your patience with the latch of the barn door.",
        "I've checked the latch of the barn door for its spring.",
    ],
)
def test_courtesy_answers_no_question(empty: str) -> None:
    asked = "Where does the latch of the barn door get its spring from?"
    ledger = ledger_of(EDIT, user(asked), answer(f"{empty}\n\nIt takes it from `gate.toml`."))
    assert told(resolved_questions(ledger, ALL)) == [f"“{asked}” → It takes it from `gate.toml`."]


def test_a_question_that_is_asked_again_is_not_resolved() -> None:
    asked = "any ideas why the hinges of the gate are creaking?"
    ledger = ledger_of(
        EDIT, user(asked), answer("The hinges of the gate are creaking from the cold."), user("try it out yourself")
    )
    made = plain_sections(SectionSource(ledger, ALL), 4_000, len)
    assert made[Section.ACTIVE_TASK][0].text == asked
    assert not made.sections.get(Section.RESOLVED)


def test_what_was_done_for_the_request_at_hand_is_told_before_the_story_has_it() -> None:
    ledger = ledger_of(
        EDIT,
        user("Paint the gate and the door of the barn, and run the tests."),
        call("edit_file", path="barn/gate.py", old_string="x", new_string="y"),
        call("terminal", "12 passed in 2s", command="pytest -q"),
    )
    assert told(done_so_far(ledger, range(1, 4))) == ["Done so far: changed barn/gate.py; pytest -q → 12 passed in 2s"]
    # The story has all of it.
    assert done_so_far(ledger, ALL) == []
    assert json.dumps(told(plain_sections(SectionSource(ledger, ALL), 4_000, len)[Section.COMPLETED])).count("gate.py")


@pytest.mark.parametrize("asked", ["What would you like to work on next?", "Is there anything else?", "## What now?"])
def test_a_question_that_holds_nothing_out_is_no_part_of_the_task(asked: str) -> None:
    said = "ok so with the oil on the hinges only, the gate of the barn obviously still creaks in the night"
    assert told(active_task(ledger_of(EDIT, user(GATE), answer(f"That is done.\n\n{asked}"), user(said)))) == [said]


def test_an_older_request_is_not_what_a_yes_goes_on_with() -> None:
    ledger = ledger_of(
        EDIT,
        user("Can you look for more hinges of this kind and add them?"),
        EDIT,
        answer("Added."),
        user("Does our list name the oil of each hinge, and if not, why not?"),
        answer("It does now."),
        user("Does our list have a field for the screws, too, and for what else?"),
        answer("It has. Should I add examples?"),
        user("yes please"),
    )
    assert [line.sources[0] for line in active_task(ledger)] == [9, 10, 11]


def test_a_decision_by_this_says_what_it_means() -> None:
    found = "Callers take the latch from the store, and never from the gate itself."
    ledger = ledger_of(EDIT, user(GATE), answer(f"A proposal.\n\n{found}"), user("ok, let's do this"), EDIT)
    made = build(ledger, ALL, 4_000, len)
    assert any(line.text == f"ok, let's do this (“{found}”)" for line in made[Section.DECISIONS])


def order(name: str) -> list[dict]:
    return call("get_order", json.dumps({"order_id": name, "user_id": "ann_12", "status": "open"}), order_id=name)


def test_things_that_are_to_stay_as_they_are_are_not_left_to_do() -> None:
    known = [message for name in ("#W11", "#W22", "#W33") for message in order(name)]
    ledger = ledger_of(user("I understand that #W11 can't be cancelled. Please change #W22 and #W33."), known)
    assert told(things_left(ledger)) == ["Asked for and not changed yet: #W22, #W33"]
    asked = "Order #W11 went to your new address. Shall I send #W22 and #W33 there as well?"
    ledger = ledger_of(user("Please look at my orders."), known, answer(asked), user("Yes, please do that."))
    assert told(things_left(ledger)) == ["Asked for and not changed yet: #W22, #W33"]


def test_a_plan_of_a_closed_request_is_not_told_after_other_work() -> None:
    todo = call("update_plan", plan=[{"step": "Write docs", "status": "pending"}])
    first = [user("First the gate, then the docs of it please."), todo, answer("The gate is done.")]
    assert told(plan_lines(ledger_of(*first))[1]) == ["Write docs"]
    other = [user("Now paint the door of the barn, please."), EDIT, answer("Painted.")]
    assert plan_lines(ledger_of(*first, *other)) == ([], [])


def test_a_question_that_was_answered_is_no_goal() -> None:
    ledger = ledger_of(user("How do I open the gate of the barn?"), answer("By the latch."), EDIT, user("Oil it."))
    assert goal(ledger, ALL) == []


def test_a_question_that_was_asked_twice_and_answered_is_no_goal() -> None:
    """The first time it was interrupted."""
    asked = "Are there any bolts that would let us open the gate from inside?"
    begun = ledger_of(user(asked), user(asked), EDIT)
    assert [line.sources for line in goal(begun, ALL)] == [(2,)]
    later = [answer("By the latch."), EDIT, user("Then oil the latch of the gate, please.")]
    assert goal(ledger_of(user(asked), user(asked), *later), ALL) == []


def test_a_field_of_a_record_answers_less_than_a_sentence() -> None:
    asked = "Are there coaches that leave Ulm after 11 in EST, and when?"
    said = "Arrival: 08:30 PM EST\n\nTwo coaches leave Ulm after 11."
    ledger = ledger_of(EDIT, user(asked), answer(said))
    assert told(resolved_questions(ledger, ALL))[0].endswith("→ Two coaches leave Ulm after 11.")


def test_a_yes_is_told_with_all_that_was_said_of_the_matter_at_hand() -> None:
    """Whoever is served tells what is wanted bit by bit; what was done before it is another matter."""
    request = "I would like to change the name on the booking to mine, and to add three bags to it."
    before = [user("Please send my lamp #W11 back to the shop, it is too dark for me."), order("#W11")]
    done = call("return_items", json.dumps({"order_id": "#W11", "status": "return requested"}), order_id="#W11")
    asked = "Please confirm: the new name, three bags, $209 on the card. Do you confirm?"
    ledger = ledger_of(
        *before,
        done,
        answer("It is on its way."),
        user(request),
        answer("That costs $209. Which card would you like to use for it?"),
        user("I would like to use the gift card with the $280 that I still have on it for all of that."),
        answer(asked),
        user("Yes, I confirm these changes."),
    )
    lines = told(active_task(ledger))
    assert lines[0] == request
    assert "$280" in lines[1]
    assert lines[2:] == ["Do you confirm?", "Yes, I confirm these changes."]


def test_a_request_that_was_worked_on_is_not_open_once_a_later_one_was_closed() -> None:
    left = [user("Go on with the last door of the barn, please, and read the plan of it whole."), EDIT]
    assert len(pending_asks(ledger_of(*left, user("How is the weather up there at the gate?"), EDIT), ALL)) == 1
    closed = [user("I did the rest by hand. How do we solve it for the gate?"), answer("With a second spring.")]
    assert pending_asks(ledger_of(*left, *closed, user("Oil the hinges now."), EDIT), ALL) == []
