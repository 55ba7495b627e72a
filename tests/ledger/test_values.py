"""Values over time: a later value for the same thing replaces the earlier one, and nothing else."""

from __future__ import annotations

import pytest

from leporello.ledger.ledger import Ledger, load, save
from leporello.ledger.ranking import Ranking
from leporello.ledger.statements import read
from leporello.ledger.things import things_in
from leporello.ledger.values import LATER, MOST_OPEN, Values
from tests.ledger import changed_values
from tests.ledger.changed_values import Changed
from tests.ledger.value_pairs import APART, SILENT, SPOKEN

BETWEEN = (
    "The parser tests pass and I cleaned up the fixtures.",
    "The weather in Oslo was 12 degrees yesterday.",
    "I have looked at `main.py`, which has 240 lines.",
)


def after(old: str, new: str) -> Values:
    values = Values()
    values.set(1, [old])
    values.add(1, "user", [old])
    for number, sentence in enumerate(BETWEEN, 2):
        values.add(number, "assistant", [sentence])
    values.set(9, [new])
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


def in_talk(old: str, new: str) -> tuple[Values, int, int]:
    """Two sentences in a conversation about other things."""
    values = Values()
    talk = [*changed_values.BETWEEN[:10], old, *changed_values.BETWEEN[10:], new]
    for number, sentence in enumerate(talk, 1):
        own = sentence in (old, new)
        values.add(number, "user" if own or number % 2 else "assistant", [sentence])
    return values, 11, len(talk)


def found(pairs: tuple[Changed, ...]) -> int:
    count = 0
    for pair in pairs:
        values, first, last = in_talk(pair.old, pair.new)
        count += any((change.was_since, change.since) == (first, last) for change in values.changes)
    return count


def wrong(pairs: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    return [(a, b) for one, other in pairs for a, b in ((one, other), (other, one)) if in_talk(a, b)[0].changes]


def test_most_changes_told_in_other_words_are_found() -> None:
    assert found(changed_values.SILENT[::2]) >= 14
    assert found(changed_values.SPOKEN[::2]) >= 15


def test_most_changes_that_nothing_was_tuned_on_are_found() -> None:
    assert found(changed_values.SILENT[1::2]) >= 13
    assert found(changed_values.SPOKEN[1::2]) >= 13


def test_pairs_that_look_alike_are_told_apart() -> None:
    assert wrong(changed_values.APART[::2]) == []
    assert len(wrong(changed_values.APART[1::2])) <= 2


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


def test_an_answer_that_repeats_a_replaced_value_is_marked_too() -> None:
    values = Values()
    values.add(1, "user", ["The deposit for the cabin comes to 240 euros, which we split four ways."])
    values.add(2, "assistant", ["Good to know, 240 euros, so 60 each."])
    values.add(3, "assistant", ["The old tent had cost 240 euros."])
    values.add(9, "user", ["The deposit for the cabin is now 310 euros, before Friday."])
    assert [change.value for change in values.replaced_in(1)] == ["310 euros"]
    assert [change.value for change in values.replaced_in(2)] == ["310 euros"]
    assert values.replaced_in(3) == []


def test_what_is_said_by_the_way_with_a_replaced_value_is_marked() -> None:
    values = after("The deposit for the cabin comes to 240 euros.", "The deposit for the cabin is 310 euros.")
    by_the_way = "With a deposit of 240 euros we need 60 from everybody."
    assert values.marked(4, by_the_way) == f"{by_the_way} (was; since m9: 310 euros)"
    assert values.marked(4, by_the_way, is_output=True) == by_the_way
    assert values.marked(10, by_the_way) == by_the_way
    assert values.marked(4, "The tent had cost 240 euros.") == "The tent had cost 240 euros."


def test_a_sentence_goes_on_about_what_stood_before_it() -> None:
    values = Values()
    values.add(1, "user", ["The newsletter goes out on Tuesday."])
    values.add(9, "user", ["Can you prepare the newsletter?", "Thursday is when it gets sent."])
    assert [(change.was, change.value) for change in values.replaced_in(1)] == [("Tuesday", "Thursday")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The admin user for Grafana is ops-admin.", "The admin user for Jenkins is buildmaster."),
        ("La rama de Pablo es feature/pagos.", "La rama de Irene es feature/envios."),
        ("The Paris cluster has 6 nodes.", "the Milan cluster has 9 nodes, bigger boxes too"),
    ],
)
def test_another_name_in_the_same_place_is_another_thing(one: str, other: str) -> None:
    values, _, _ = in_talk(one, other)
    assert not values.changes


def test_questions_and_suppositions_replace_nothing() -> None:
    for later in ("Could the uploader retry limit be 8?", "If the uploader retry limit were 8, it would be slow."):
        assert after("The retry limit for the uploader is 5.", later).changes == []


def test_what_happened_twice_replaces_nothing() -> None:
    values = after("We visited the castle with the kids on Saturday.", "We visited the castle with the kids on Sunday.")
    assert values.changes == []


def test_two_people_speak_of_their_own_things() -> None:
    values = Values()
    values.add(1, "user", ["My commute to the office takes 30 minutes."])
    values.add(2, "assistant", ["My commute to the office takes 45 minutes."])
    assert values.changes == []


def test_only_so_many_statements_wait_for_another_value() -> None:
    values = Values()
    for number in range(1, MOST_OPEN + 50):
        values.add(number, "user", [f"Box a{number}x weighs {number} kg at depot q{number}z."])
    assert len(values.open) == MOST_OPEN


def test_settings_follow_the_order_of_the_conversation() -> None:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": "DB_HOST=10.0.0.7"})
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "bash", "arguments": '{"command": "DB_HOST=10.0.0.9"}'},
    }
    ledger.add(2, {"role": "assistant", "content": None, "tool_calls": [call]})
    assert [(change.was, change.value, change.since) for change in ledger.values.changes] == [
        ("10.0.0.7", "10.0.0.9", 2)
    ]


def test_values_are_stored_with_the_ledger() -> None:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": "The billing portal launch is on 12 May."})
    assert ledger.values.changes == []
    loaded = load(save(ledger))
    loaded.add(2, {"role": "user", "content": "The billing portal launch is on 19 May."})
    again = load(save(loaded))
    assert [(change.was, change.value) for change in again.values.replaced_in(1)] == [("12 May", "19 May")]


AGAIN = (
    (
        "We use Mailgun to send the newsletter.",
        "The newsletter bounced, I wrote to Postmark since they send it for us.",
    ),
    ("The product demo for the Halden team is on Tuesday.", "Can you suggest slides for the Halden demo on Thursday?"),
    ("Mein Hund ist drei Jahre alt.", "Mein Hund ist vier Jahre alt, welches Futter passt zu ihm?"),
    ("Notre serveur de sauvegarde se trouve à Lyon.", "Le serveur de sauvegarde de Nantes est plein, que faire ?"),
    ("产品发布会定在周三上午。", "帮我写一份周五产品发布会的主持词。"),
)


@pytest.mark.parametrize(("old", "new"), AGAIN)
def test_a_statement_is_shown_with_what_the_user_said_later_of_the_same_thing(old: str, new: str) -> None:
    values, first, last = in_talk(old, new)
    assert f"(later m{last}: {new})" in values.marked(first, old)
    assert new in values.told_anew()[last]


def test_what_is_asked_without_a_question_mark_is_no_newer_value() -> None:
    values, first, _ = in_talk(
        "We start the engine with OPK_DEBUG=0.", "Am I supposed to start it with OPK_DEBUG=1 here"
    )
    assert all(row.replaced_by is None for row in values.rows() if row.since == first)


def test_a_remark_stands_behind_no_rule() -> None:
    ledger = Ledger()
    rule = "Always format dates as Month Day, Year in your answers to me."
    ledger.add(1, {"role": "user", "content": rule})
    ledger.add(2, {"role": "user", "content": "Should I write at one time each day? I have a hard time with dates"})
    assert ledger.stated.marked(1, rule) == rule


def test_the_answer_that_repeats_a_statement_is_shown_with_what_was_said_later_too() -> None:
    values = Values()
    values.add(1, "user", ["We use Mailgun for the newsletter of the bakery."])
    values.add(2, "assistant", ["Got it, Mailgun."])
    values.add(3, "user", ["I wrote to Postmark about the bakery's newsletter that bounced."])
    assert "(later m3: I wrote to Postmark" in values.marked(2, "Got it, Mailgun.")


@pytest.mark.parametrize(("one", "other"), APART)
def test_of_statements_about_different_things_none_is_told_to_be_replaced(one: str, other: str) -> None:
    """Some may be shown together: which thing is meant can't be told by words alone."""
    assert "(was" not in after(one, other).marked(1, one)


CHATTER = (
    ("Sure, you should come down and paddle with me on the lake!", "We're going to see a new lake with a rare heron."),
    ("They have been so helpful in my recovery.", "Music's allowed me to accept my recovery and my changing mind."),
    (
        "And here's my `Cargo.toml` file:",
        "Can you help me write a `clippy.toml` file that extends the style guide?",
    ),
    (
        "However, I'm not sure how to handle the seam between phone and desk.",
        "However, considering the 1,000 daily readings, we need to handle the cache of the phone often, not too much, "
        "in order to see which of the desks have been used in the last week and which of them have not.",
    ),
)


@pytest.mark.parametrize(("one", "other"), CHATTER)
def test_what_merely_shares_words_is_not_shown_together(one: str, other: str) -> None:
    values, first, _ = in_talk(one, other)
    assert "(later" not in values.marked(first, one)


def test_what_may_be_about_the_same_is_shown_beside_it_without_a_claim() -> None:
    old, new = "Mr. Albrecht teaches the kids the oboe.", "The oboe lesson moved, a Felix comes to our place now."
    values, first, last = in_talk(old, new)
    assert values.marked(first, old) == f"{old} (later m{last}: {new})"
    assert values.shown_beside(first, values.marked(first, old)) == (last, new)
    assert not values.replaced_in(first)


NAMED_OTHERWISE = (
    ("My supervisor is Henrike.", "I report to Babatunde, he signs my leave."),
    ("Meine Vorgesetzte ist Henrike.", "Mein Chef heißt Babatunde."),
    ("We send packets to the server on port 7001.", "Our box listens on 7400, the old one was taken."),
    ("Мой начальник — Хенрике.", "Теперь я подчиняюсь Олегу."),
)


@pytest.mark.parametrize(("old", "new"), NAMED_OTHERWISE)
def test_a_thing_is_known_by_its_other_names(old: str, new: str) -> None:
    values, first, last = in_talk(old, new)
    assert f"(later m{last}" in values.marked(first, old)


SIBLINGS = (
    ("The budget for the kitchen is 9k.", "We've set aside 4k for the garden."),
    ("My dentist is in Elm Street at 3 pm.", "My eye doctor is in Oak Street at 5 pm."),
)


@pytest.mark.parametrize(("one", "other"), SIBLINGS)
def test_two_things_of_a_kind_are_two(one: str, other: str) -> None:
    values, first, _ = in_talk(one, other)
    assert "(later" not in values.marked(first, one)


def test_a_sentence_of_prose_may_begin_like_code() -> None:
    assert read("for the tacos we take coriander", 1, "user") is not None
    assert read("for taco in tacos:", 1, "user") is None


def test_a_question_states_nothing_that_could_be_replaced() -> None:
    values = Values()
    values.add(1, "user", ["Does the newsletter go out on Tuesday?"])
    values.add(2, "user", ["The newsletter goes out on Thursday."])
    assert not values.changes
    assert not values.related


def test_what_an_assistant_says_takes_no_place_of_what_the_user_said() -> None:
    values = Values()
    values.add(1, "user", ["The staging port is 8042."])
    values.add(2, "assistant", ["The staging port is now 9137."])
    values.add(3, "user", ["The staging port is 9200 now."])
    assert [(row.value, row.replaced_by) for row in values.rows()] == [("8042", 3), ("9200", None)]


def test_no_figure_of_an_assistant_is_told_to_replace_another() -> None:
    """It explains, gives examples and tries one thing after another."""
    values = Values()
    plans = (
        "- **May 3**: Print brochures and approve updated drafts.",
        "- **May 9:** Print brochures and approve changed drafts.",
    )
    for number, sentence in enumerate([*changed_values.BETWEEN[:10], plans[0], *changed_values.BETWEEN[10:], plans[1]]):
        values.add(number + 1, "assistant" if sentence in plans else "user", [sentence])
    assert [change for change in values.latest() if "May" in change.value] == []


LOOK_ALIKE = (
    ("I've already set a debounce delay of 300ms.", "The input latency of the debounce is around 520ms."),
    ("Our flat in Graz is 68 square metres.", "Grandpa's flat in Graz has 90 square metres."),
    ("The cheese shop closes at 6.", "The bakery next to the cheese shop closes at 1."),
    ("Write a migration that moves limit to payout_policy.", "Write a migration that moves limit to refund_policy."),
    ("James has two dogs, Max and Daisy.", "James showed Max and Daisy the new pup Ned."),
)


@pytest.mark.parametrize(("one", "other"), LOOK_ALIKE)
def test_nothing_is_claimed_where_a_word_may_tell_two_things_apart(one: str, other: str) -> None:
    values, first, _ = in_talk(one, other)
    assert values.latest() == []
    assert "(was" not in values.marked(first, one)


def test_the_last_of_several_statements_about_a_thing_is_shown() -> None:
    values = Values()
    said = ("We do the flags with Unleash.", "Flags come from Flipt these days.", "Karim runs the flags on Growthbook.")
    for number, sentence in zip((1, 5, 9), said, strict=True):
        values.add(number, "user", [sentence])
    assert values.marked(1, said[0]) == f"{said[0]} (later m9: {said[2]})"


def test_words_that_begin_alike_and_numbers_tell_what_is_meant() -> None:
    for old, new in (
        ("I weigh about 84 kilos.", "My weight is at 81 kilos today."),
        ("Ticket 4471 waits for Ines.", "Give 4471 to Marek please."),
    ):
        values, first, last = in_talk(old, new)
        assert values.marked(first, old) == f"{old} (later m{last}: {new})"


def test_what_a_long_statement_is_about_is_not_guessed() -> None:
    """From the words it shares with another that can't be told: nothing later is shown beside it."""
    short, later = "We keep the invoices in the Lyon folder.", "Invoices sit in Bergen, by the way."
    long = f"{short[:-1]}, {'as it was with all of them and as it is with all of us, ' * 2}and that is that."
    for said, related in ((short, [1]), (long, [])):
        values = Values()
        values.add(1, "user", [said])
        values.add(9, "user", [later])
        assert [*values.related] == related


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We release on Monday.", "Releasing happens on Friday."),
        ("The default branch is main.", "Feature branches start with topic/."),
        ("The front door sticks.", "Tapez 7790A pour entrer dans l'immeuble."),
        ("データベースはMySQLです。", "DBはPostgreSQLに移行しました。"),
    ],
)
def test_a_thing_is_known_in_whatever_form_its_name_stands(one: str, other: str) -> None:
    assert things_in(one) & things_in(other)


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("The guest list got cut to sixty-four.", "sixty-four"),
        ("Wir sind jetzt fünfundzwanzig Leute.", "fünfundzwanzig Leute"),
        ("打ち合わせは午後二時からです。", "二時"),
        ("我住在三楼。", "三楼"),
    ],
)
def test_numbers_that_are_spelt_out_are_values(sentence: str, value: str) -> None:
    said = read(sentence, 1, "user")
    assert said is not None
    assert value in [found.text for found in said.values]


def test_a_little_is_no_hour() -> None:
    said = read("这里有一点问题。", 1, "user")
    assert said is not None
    assert said.values == ()


def test_a_question_does_not_take_the_place_of_a_newer_value() -> None:
    values = Values()
    said = (
        "We do the flags with Unleash.",
        "Flags come from Flipt these days.",
        "Does Unleash keep flags for 30 days?",
    )
    for number, sentence in zip((1, 5, 9), said, strict=True):
        values.add(number, "user", [sentence])
    assert values.related_to(1, said[0]) is not None
    assert values.marked(1, said[0]).startswith(f"{said[0]} (later m5")


def test_what_a_rule_ended_is_marked_where_it_was_said() -> None:
    ledger = Ledger()
    for number, text in ((1, "Commit messages are in English."), (2, "From now on write commit messages in German.")):
        ledger.add(number, {"role": "user", "content": text})
    ended = [rule.text for rule in ledger.rules if rule.ended_by == 2]
    shown = [unit.unit.text for unit in Ranking(ledger, {1, 2}) if unit.number == 1]
    assert ended == ["Commit messages are in English."]
    assert shown
    assert all(f"{LATER}2" in text or "since m2" in text for text in shown)
