"""What a colleague who has only the fold needs to go on: what was asked, agreed to, found out, and what is left."""

from __future__ import annotations

import json

import pytest

from leporello.summaries.deterministic import SectionSource, build, plain_sections
from leporello.summaries.episodes import episode_lines
from leporello.summaries.handoff import Section
from leporello.summaries.requests import ASK_CHARS, active_task, condensed, pending_asks
from leporello.summaries.sections import announced_lines, resolved_questions
from leporello.summaries.work_state import at_work, blocked, things_left
from tests.summary.test_what_held import ALL, EDIT, LATCH, WHERE, answer, call, ledger_of, told, user

BRIEF = "\n".join(
    [
        "The gate of the barn opens by itself when the wind turns.",
        *(f"On day {n} it stood open in the morning, though the latch was down in the evening." for n in range(1, 30)),
        "# How to work",
        *(
            f"You may look at board {chr(97 + n)} of the barn whenever you like, it is not far from here."
            for n in range(9)
        ),
        "- DO NOT TOUCH: the old bolts, the roof",
        *(
            f"Some visitors like window {chr(97 + n)} better than the gate, and they say so each time."
            for n in range(9)
        ),
        "You MUST end the work with this EXACT command:",
        "```bash",
        "echo GATE_IS_SHUT && cat report.txt",
        "```",
        *(f"Later we may look at shed {chr(97 + n)} as well, which is another matter altogether." for n in range(9)),
    ]
)


def test_of_a_long_brief_its_rules_and_its_command_are_told() -> None:
    text = condensed(BRIEF, ASK_CHARS)
    assert len(text) <= ASK_CHARS + 40
    assert text.startswith("The gate of the barn opens")
    assert "- DO NOT TOUCH: the old bolts, the roof" in text
    assert "You MUST end the work with this EXACT command:\necho GATE_IS_SHUT && cat report.txt" in text


@pytest.mark.parametrize(
    "rule",
    [
        "Lösche niemals die Riegel.",
        "Ne touche pas aux verrous.",
        "Nunca toques los cerrojos.",
        "不要动旧螺栓。",
        "Нельзя трогать засовы.",
    ],
)
def test_bans_of_a_long_brief_are_told_in_other_languages(rule: str) -> None:
    assert rule in condensed(BRIEF.replace("# How to work", rule), ASK_CHARS)


def test_of_what_a_linter_printed_every_file_is_told_and_of_like_lines_two() -> None:
    files = [f"src/barn/gate{name}.py" for name in "abcdefgh"]
    found = "\n".join(f"{file}\n" + "\n".join(f"  {n}:7  warning  Unexpected any" for n in range(9)) for file in files)
    text = condensed(f"The warnings are still there.\n{found}\n72 problems", 600)
    assert all(file in text for file in files)
    assert text.count("Unexpected any") == 2
    assert text.endswith("72 problems")


def test_the_last_line_of_a_long_brief_is_told() -> None:
    """It says what is wanted, behind all that was pasted."""
    wanted = "Take that out again, we only want to say of each of the gates that it is not supported for now."
    text = condensed(f"{BRIEF}\n{wanted}", 600)
    assert text.endswith(wanted)
    pointer = "If you need specific details from before exiting plan mode, read the full transcript at: /tmp/x.jsonl"
    assert condensed(f"{BRIEF}\n{wanted}\n{pointer}", 600) == text


def test_a_short_message_stays_as_it_is() -> None:
    assert condensed("Shut the gate.\nThen the door.", ASK_CHARS) == "Shut the gate.\nThen the door."


LIST = "I will paint these: gate GATE-11, door DOOR-12."


@pytest.mark.parametrize(
    "asked",
    [
        "Please confirm that I may begin.",
        "Bitte bestätige das kurz.",
        "Merci de confirmer ces travaux.",
        "Por favor, confirma estos trabajos.",
        "请确认。",
    ],
)
def test_a_yes_is_told_with_what_was_asked_without_a_question_mark(asked: str) -> None:
    ledger = ledger_of(
        user("Please paint what is red in the yard."),
        answer(f"{LIST}\n\n{asked}"),
        user("Yes, please do it all at once."),
    )
    lines = told(active_task(ledger, ALL))
    assert lines[0] == "Please paint what is red in the yard."
    assert "GATE-11" in lines[1]
    assert lines[2] == asked


def test_a_yes_goes_on_with_a_request_that_has_the_form_of_a_question() -> None:
    ledger = ledger_of(
        EDIT,
        user("can you look at the newest hinge, and make sure that its length is right?"),
        answer("It is 12 cm long."),
        user("why does the plan say 14 cm"),
        answer("The plan is old. Shall I correct it?"),
        user("yes"),
    )
    assert [line.sources[0] for line in active_task(ledger)] == [3, 5, 6, 7]


def test_a_request_that_begins_with_a_yes_goes_on_with_the_one_before() -> None:
    ledger = ledger_of(
        user("Add a second door to the barn and a list of all its keys."),
        answer("Both can be done. Shall I?"),
        user(
            "Yes to both. The door should open to the yard, and please leave the old lintel where it is,"
            " as it carries the whole roof."
        ),
        answer("The door is in. Shall I go on with the keys?"),
        user("yes"),
    )
    assert [line.sources[0] for line in active_task(ledger)] == [1, 3, 4, 5]


OPTIONS = """1. **Paint Option 1:**
   - white lead
   - two coats
2. **Paint Option 2:**
   - red ochre
   - one coat
3. **Paint Option 3:**
   - none

Which one?"""


def test_an_option_is_told_with_what_it_holds() -> None:
    ledger = ledger_of(
        user("Offer me paints for the gate."), answer(OPTIONS), user("I would like to take Paint Option 2, please.")
    )
    lines = told(active_task(ledger, ALL))
    assert any("red ochre" in line and "one coat" in line for line in lines)
    assert not any("white lead" in line or "none" in line for line in lines)
    assert lines[0] == "Offer me paints for the gate."


def order(name: str, status: str = "delivered") -> str:
    return json.dumps(
        {"order_id": name, "user_id": "ann_12", "status": status, "items": [{"name": "Pet Bed", "price": 9.5}]}
    )


def looked_up(*names: str, status: str = "delivered") -> list[dict]:
    return [message for name in names for message in call("get_order", order(name, status), order_id=name)]


def test_of_several_things_that_were_asked_for_those_left_are_told() -> None:
    ledger = ledger_of(
        user("I'd like to send back what came with #W11, #W22 and #W33, one after the other."),
        looked_up("#W11", "#W22", "#W33"),
        call("return_items", order("#W11", "return requested"), order_id="#W11"),
        call("return_items", "Error: try later", order_id="#W22"),
    )
    assert told(things_left(ledger)) == ["Asked for and not changed yet: #W22, #W33; changed: #W11 (m9)"]


def test_what_a_yes_agrees_to_is_asked_for_and_what_is_over_is_not_left() -> None:
    ledger = ledger_of(
        user("Please cancel all that is still open."),
        looked_up("#W11", "#W22"),
        looked_up("#W33", status="cancelled"),
        answer("These are open: #W11, #W22, #W33. Please confirm."),
        user("Yes, go on with all of them. And how much do I get back?"),
        call("think", "", thought="which first"),
    )
    assert told(things_left(ledger)) == ["Asked for and not changed yet: #W11, #W22"]
    assert told(list(plain_sections(SectionSource(ledger, ALL), 4_000, len)[Section.REMAINING])) == told(
        things_left(ledger)
    )


def test_nothing_is_left_of_one_thing_or_where_files_are_worked_on() -> None:
    one = ledger_of(user("Send #W11 back please."), looked_up("#W11"))
    assert things_left(one) == []
    two = [user("Send #W11 and #W22 back please."), looked_up("#W11", "#W22")]
    assert things_left(ledger_of(*two)) != []
    assert things_left(ledger_of(EDIT, *two)) == []


def test_whoever_serves_somebody_waits_for_the_step_that_was_asked_for() -> None:
    asked = "Please restart the lamp, and let me know when it is on again."
    serving = [user("My lamp stays dark, could you help me with it?"), looked_up("#W11"), answer(f"I see it. {asked}")]
    assert told(active_task(ledger_of(*serving))) == [
        "My lamp stays dark, could you help me with it?",
        f"{asked} (asked of the user)",
    ]
    assert active_task(ledger_of(EDIT, *serving)) == []
    assert active_task(ledger_of(*serving[:2], answer("It is on again. Let me know if you need anything else."))) == []


def test_a_name_that_was_asked_for_is_no_request() -> None:
    ledger = ledger_of(
        user("I need to send all my lamps back, they are too dark for the barn."),
        answer("What is your address?"),
        user("My bad, it's ann@example.com."),
        answer("Do you want all of them sent back?"),
        user("yes"),
    )
    assert [line.sources[0] for line in active_task(ledger)] == [1, 4, 5]


def test_what_was_added_to_an_open_request_stands_with_it() -> None:
    first, added = "any ideas why the hinges are creaking?", "getting a creak on each turn of the door"
    begun = call("terminal", "x", command="ls")
    later = user("look at it yourself in the barn please")
    ledger = ledger_of(user(first), begun, user(added), answer("It is the oil."), later, begun, user("its open"), begun)
    assert told(pending_asks(ledger, ALL))[0] == f"{first}\n{added} (no answer before the user went on)"


def test_code_answers_nothing_and_an_answer_is_no_item() -> None:
    code = "latch := spring.find(gate) // the latch of the barn door"
    ledger = ledger_of(EDIT, user(WHERE), answer(f"{code}\n- {LATCH}"))
    assert told(resolved_questions(ledger, ALL)) == [f"“{WHERE}” → {LATCH}"]


FOUND = "The latch of `gate.toml` holds only while the spring is cold."


def test_a_long_piece_of_work_tells_what_was_found_in_each_part() -> None:
    work = [call("edit_file", path=f"barn/door{n}.py", old_string="x", new_string="y") for n in range(20)]
    ledger = ledger_of(
        user("Find out why the gate opens by itself."), *work[:5], call("terminal", "1", FOUND, command="ls"), *work[5:]
    )
    first, second = told(episode_lines(ledger, ALL))
    assert first.endswith(f"“{FOUND}”")
    assert "“" not in second.partition(", part 2: ")[2]


def test_what_the_story_tells_is_announced_no_more() -> None:
    closing = "The gate now takes its spring from `spring.toml` instead of `gate.toml`."
    ledger = ledger_of(user("Please give the gate another spring."), EDIT, answer(closing), user("And oil it."), EDIT)
    assert told(announced_lines(ledger, ALL)) == [closing]
    made = build(ledger, ALL, 4_000, len)
    assert any(closing in line.text for line in made[Section.COMPLETED])
    assert not made[Section.CRITICAL]


def test_small_talk_announces_and_resolves_nothing() -> None:
    kind = [user("Oh wow, that's so lovely! I'm so happy for you!"), answer("Thanks! It was a great day for us all.")]
    chat = [
        *kind * 5,
        user("From now on my writing takes all my days. Will you bring your sister?"),
        answer("Yes, she will come along on Sunday!"),
        *kind * 2,
    ]
    assert announced_lines(ledger_of(*chat), ALL) == []
    assert resolved_questions(ledger_of(*chat), ALL) == []


def test_a_call_that_failed_says_why() -> None:
    error = "Error: not enough balance on card 77"
    ledger = ledger_of(
        user("Book the coach to the fair please."), call("book_coach", f"{error}\nsee page 9", to="fair")
    )
    assert told(at_work(ledger))[-1] == f"Last call: book_coach: to=fair → {error}"


def test_every_test_that_failed_is_told() -> None:
    lines = [f"FAILED tests/test_gate.py::test_{name} - assert False" for name in "abcdef"]
    ledger = ledger_of(
        user("Run the tests please."), call("terminal", "\n".join([*lines, "6 failed in 2s"]), command="pytest -q")
    )
    assert told(blocked(ledger, ALL))[:6] == lines
    # It still stands whole beside the fold.
    assert blocked(ledger, range(1, 2)) == []
    # Where it is cleared it stands nowhere.
    cleared = build(ledger, [1, 2], 4_000, len, shortened=[3])
    assert told(list(cleared[Section.BLOCKED]))[:6] == lines
