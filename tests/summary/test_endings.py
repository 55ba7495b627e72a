"""Messages that ask nobody for anything: what ends a conversation, and what the user does himself."""

from __future__ import annotations

import pytest

from leporello.summaries.endings import does_it_himself, says_that_is_all
from leporello.summaries.requests import active_task, pending_asks
from tests.summary.test_what_held import ALL, EDIT, answer, call, ledger_of, user


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
