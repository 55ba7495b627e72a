"""What a short message goes on with: the question, the offer or the proposal before it, or what it calls "this"."""

from __future__ import annotations

import json

import pytest

from leporello.summaries.decisions import option_named
from leporello.summaries.deterministic import SectionSource, build, plain_sections
from leporello.summaries.endings import does_it_himself, says_that_is_all
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


@pytest.mark.parametrize(
    "text",
    [
        "No, that's all for now. Thank you for your help.",
        "That’s everything I needed to do today.",
        "No, nothing else, thanks!",
        "Nein danke, das war alles.",
        "C'est tout, merci.",
        "就这些，谢谢。",
        "以上です。ありがとうございました。",
        "It works now, that's all. Bye!",
        "My lamp is back. Thank you so much for your help!",
        "Thank you! That’s all I needed for now. Have a great day! ###STOP###",
        "Das war's für heute, schönen Abend noch",
    ],
)
def test_nothing_is_at_hand_when_that_is_all(text: str) -> None:
    ledger = ledger_of(user("Send the lamp back please, it is too dark."), answer("It is done."), user(text))
    assert active_task(ledger) == []


@pytest.mark.parametrize(
    "text",
    [
        "That's all good, now oil the hinges.",
        "Is that all?",
        "That's all I need for it. Can you book it now?",
        "Rename latch to bolt in barn.py, nothing else.",
        "Delete the old keys, that's all.",
        "Nothing else needs changing except the README: add the new key.",
        "Lösche die alten Schlüssel, das ist alles.",
        "Supprime les vieilles clés, c'est tout.",
        "Borra las llaves viejas, eso es todo.",
        "Удали старые ключи, больше ничего",
        "删除旧钥匙，就这些。",
        "古い鍵を消してください。以上です。",
        "Thanks, that's all good, but the door is still open",
        "thanks for the latch but please take the spring out again",
        "The hinges creak, that's all I know.",
        # A yes answers what was asked, whoever gives thanks with it.
        "Yes, thank you.",
        "Looks good, thanks!",
        "thanks for taking option 2 and running it",
        "Thank you for going with 2",
        "thanks for doing #2 and oiling it",
        "Thanks for choosing the second one and trying it",
        "thanks for option b",
        "danke für Variante 2",
        "gracias por la opción 2",
    ],
)
def test_more_is_wanted_when_more_is_said(text: str) -> None:
    assert not says_that_is_all(text)


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


@pytest.mark.parametrize(
    "text",
    [
        "Great, thank you for finalizing the booking. ###STOP###",
        "Thanks so much for it!",
        "Thank you for the refund of $209.",
        "Thanks for cancelling order #W112!",
        "Thank you for taking the time.",
        "Thanks for sending the 2 keys back",
    ],
)
def test_nothing_but_thanks_is_no_task(text: str) -> None:
    assert says_that_is_all(text)
    assert not says_that_is_all(f"{text[:5]}, add the tests too.")


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


def test_what_the_user_does_himself_is_no_open_request() -> None:
    later = [call("terminal", "x", command="ls"), user("Oil the hinges now."), answer("Done.")]
    himself = ledger_of(EDIT, user("ok, let me try the light paint on the gate real quick"), *later)
    assert pending_asks(himself, ALL) == []
    asked = ledger_of(EDIT, user("I'll paint the gate by hand. what's next on the list of the barn?"), *later)
    assert len(pending_asks(asked, ALL)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "let me see if it opens by itself",
        "Okay. Let me check the spring first.",
        "I'll go to the barn and come back",
        "I'm going to oil it tonight",
        "Ich werde es morgen im Stall ölen",
        "je vais l'essayer demain matin",
        "I'll oil it, it looks dry",
        "ok, let me try it, I think it opens",
        "I'll be back at 5, tomorrow",
        "I'll look at the latch first, then I'll oil it, thanks",
        "I'll mend it, because it hangs",
        "I'm going to ask Bob",
        "I'll add the key to the box",
        "I'll do it by hand, not with the drill",
        "I'm going to lunch, back in an hour",
        "Ich werde schauen, ob es geht",
        "je vais l'essayer, parce que ça bloque",
    ],
)
def test_what_somebody_is_about_to_do_is_asked_of_nobody(text: str) -> None:
    assert does_it_himself(text)


@pytest.mark.parametrize(
    "text",
    [
        "Let me know which hinges creak",
        "Let me see the list of all keys",
        "Let me clarify: only the upper hinge",
        "I'll need a drawing of the latch too",
        "I'm going to need the keys as a list",
        "I will also want a second spring",
        "I'll go with the second one, it is cheaper.",
        "I'll leave the colour to you",
        "Ich werde auch eine Liste der Schlüssel brauchen",
        "voy a necesitar las llaves",
        "I'll oil it. Paint the door in red.",
        "I'll oil the hinges, you paint the door",
        "I'm going to lunch, oil the hinges",
        "I'm going to bed, run the drill overnight",
        "I'll be back at 5, finish the door",
        "I'll be out until 3: paint the door",
        "I'll be in a meeting; mend the latch",
        "I'm gonna grab a coffee — paint it",
        "I'm going to lunch - paint the door",
        "I'll be away (paint the door)",
        "I'm going to lunch, today paint the door",
        "ok, I'll test it, update the plan",
        "I'm going to sleep, it should be painted by morning",
        "I'll test it, I want the door painted",
        "I'll add one more requirement: the latch must be of steel",
        "let me add one more thing: no screws",
        "Let me restate the task: build a gate",
        "Let me put it differently: sort the keys",
        "I will describe the task: sort the keys",
        "I'm going to ask you to build a gate",
        "I'll give you one more rule: no screws",
        "Je vais tester, corrige la porte",
        "Je vais te demander une porte",
        "Ich werde es testen, streich die Tür",
        "Ich werde dich bitten, die Tür zu streichen",
        "Voy a probarlo, arregla la puerta",
        "Voy a pedirte una puerta",
        "Vou testar, pinta a porta",
        "ok, thanks",
    ],
)
def test_what_somebody_will_need_is_asked_for(text: str) -> None:
    assert not does_it_himself(text)


def test_what_somebody_will_need_stays_open() -> None:
    later = [call("terminal", "x", command="ls"), user("Sweep the yard of the barn now."), answer("Done.")]
    needed = "I'll need a drawing of the latch too"
    asked = [line.sources for line in pending_asks(ledger_of(EDIT, user(needed), *later), ALL)]
    assert asked == [(3,)]


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


def test_a_goal_that_is_a_number_says_what_it_means() -> None:
    ledger = ledger_of(answer(FAULTS), user("3 but leave the old hinges as they are, they are fine"), EDIT)
    assert told(goal(ledger, ALL)) == ["3 but leave the old hinges as they are, they are fine (“3. No oil.”)"]


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


def test_a_request_that_was_worked_on_is_not_open_once_a_later_one_was_closed() -> None:
    left = [user("Go on with the last door of the barn, please, and read the plan of it whole."), EDIT]
    assert len(pending_asks(ledger_of(*left, user("How is the weather up there at the gate?"), EDIT), ALL)) == 1
    closed = [user("I did the rest by hand. How do we solve it for the gate?"), answer("With a second spring.")]
    assert pending_asks(ledger_of(*left, *closed, user("Oil the hinges now."), EDIT), ALL) == []
