"""Work through tools that know orders and accounts: what they said of things with an id is what the next call needs."""

from __future__ import annotations

import json

from leporello.events import Span
from leporello.ledger.ledger import Ledger
from leporello.summaries.deterministic import SectionSource, build, plain_sections
from leporello.summaries.episodes import episode_lines
from leporello.summaries.fold import Fold
from leporello.summaries.handoff import Section, parse, render
from leporello.summaries.import_fold import inherit
from leporello.summaries.requests import active_task
from leporello.summaries.sections import record_lines
from tests.summary.test_handoff_sections import ALL, answer, call, ledger_of, told, user

ORDER = {
    "order_id": "#W55",
    "user_id": "ann_12",
    "status": "delivered",
    "items": [{"name": "Pet Bed", "item_id": "6857", "price": 196.5}],
    "payment_history": [{"payment_method_id": "paypal_30", "amount": 196.5}],
}
LOOKED_UP = call("get_order_details", json.dumps(ORDER), order_id="#W55")
RETURNED = call(
    "return_delivered_order_items", json.dumps({**ORDER, "status": "return requested"}), order_id="#W55", item="6857"
)


def test_a_record_tells_ids_states_and_amounts() -> None:
    (line,) = told(record_lines(ledger_of(LOOKED_UP), ALL))
    assert line == (
        "order_id #W55: user_id ann_12; status delivered; items Pet Bed 6857 196.5; payment_history paypal_30 196.5"
    )


def test_ids_that_could_be_confused_and_amounts_keep_their_names() -> None:
    item = {"name": "Pet Bed", "product_id": "2747", "item_id": "6857", "price": 196.5}
    flight = {"flight_number": "H80", "items": [item], "prices": {"economy": 107, "business": 443}}
    (line,) = told(record_lines(ledger_of(call("get_flight", json.dumps(flight), number="H80")), ALL))
    assert line == (
        "flight_number H80: items Pet Bed product_id 2747 item_id 6857 196.5; prices economy 107, business 443"
    )


def test_of_a_list_that_is_too_long_the_first_are_told() -> None:
    items = [{"name": "Pet Bed of oak", "product_id": f"27{n}", "item_id": f"68{n}", "price": n} for n in range(10, 20)]
    (line,) = told(record_lines(ledger_of(call("get_order", json.dumps({**ORDER, "items": items}), id="#W55")), ALL))
    assert "Pet Bed of oak product_id 2710 item_id 6810 10, Pet Bed" in line
    assert "6819" not in line


def test_what_records_tell_is_not_quoted_beside_them() -> None:
    ledger = ledger_of(user("Where is the pet bed of my last order?"), LOOKED_UP, answer("It came on Monday, at 9:40."))
    text = render(build(ledger, ALL, 2_000, len))
    assert "order_id #W55: user_id ann_12" in text
    assert text.count("paypal_30") == 1
    assert "Monday, at 9:40" in text


def test_only_what_was_told_last_of_a_thing_stands() -> None:
    lines = told(record_lines(ledger_of(LOOKED_UP, RETURNED), ALL))
    assert len(lines) == 1
    assert "status return requested" in lines[0]
    # The newest word on it is still shown beside the fold.
    assert record_lines(ledger_of(LOOKED_UP, RETURNED), range(1, 3)) == []


def test_another_tool_takes_nothing_back() -> None:
    line = {"line_id": "L2", "plan_id": "P2", "status": "Active", "phone": "555"}
    usage = {"line_id": "L2", "used_gb": "15.1", "limit_gb": "15.0"}
    ledger = ledger_of(call("get_line", json.dumps(line), id="L2"), call("get_usage", json.dumps(usage), line_id="L2"))
    assert "plan_id P2" in "\n".join(told(record_lines(ledger, range(1, 3))))


def test_a_short_answer_that_names_something_is_kept_with_its_question() -> None:
    ledger = ledger_of(call("find_user_id", "ann_12", first="Ann", zip="32286"))
    assert told(record_lines(ledger, ALL)) == ["find_user_id first=Ann, zip=32286: ann_12"]


def test_what_was_done_stands_among_the_actions_with_its_outcome() -> None:
    ledger = ledger_of(user("Please send the pet bed of my last order back."), LOOKED_UP, RETURNED)
    (line,) = told(episode_lines(ledger, ALL))
    assert "return_delivered_order_items: order_id=#W55, item=6857 → status return requested" in line


def test_records_survive_a_fold_that_is_read_again() -> None:
    told_first = plain_sections(SectionSource(ledger_of(LOOKED_UP), ALL), 4_000, len)
    fold = Fold(1, Span(1, 2), parse(render(told_first)))
    ledger = Ledger()
    inherit(ledger, fold)
    assert plain_sections(SectionSource(ledger, ALL), 4_000, len)[Section.CRITICAL] == told_first[Section.CRITICAL]


def test_a_yes_is_told_with_the_question_and_the_request() -> None:
    ledger = ledger_of(
        user("Downgrade all my flights to economy and pay me back on the cards."),
        answer("That saves $23,553. Do you confirm all 5 downgrades?"),
        user("Yes, please go ahead and do it. I just want this sorted out as soon as possible."),
    )
    lines = told(active_task(ledger))
    assert lines[0].startswith("Downgrade all my flights")
    assert lines[1].endswith("Do you confirm all 5 downgrades?")
    assert lines[2].startswith("Yes, please go ahead")


def test_a_yes_with_a_request_of_its_own_stands_alone_where_nothing_was_asked() -> None:
    ledger = ledger_of(user("Add the tests please, all of them."), answer("Done."), user("Yes, and now the docs too."))
    assert told(active_task(ledger)) == ["Yes, and now the docs too."]


def test_the_request_before_a_yes_is_told_whole() -> None:
    steps = " ".join(f"Then move the files of step {n} into the folder of that number." for n in range(12))
    lines = told(active_task(ledger_of(user(steps), answer("Shall I proceed?"), user("yes"))))
    assert lines == [steps, "Shall I proceed?", "yes"]


def test_a_yes_is_told_with_what_was_proposed_where_that_is_folded() -> None:
    """ "All 5 downgrades" says nothing once the message that lists them is gone."""
    offer = "Reservation JG7: refund of $6,594.\nReservation 2FB: refund of $3,925.\n\nDo you confirm these downgrades?"
    ledger = ledger_of(user("Downgrade all my flights to economy."), answer(offer), user("Yes, please."))
    assert any("2FB: refund of $3,925" in line for line in told(active_task(ledger, ALL)))
    # Beside the fold the message still stands whole.
    assert told(active_task(ledger, range(1, 2))) == told(active_task(ledger))
    # A message that is nothing but its question has no proposal.
    bare = ledger_of(user("Downgrade all my flights to economy."), answer("Shall I proceed?"), user("yes"))
    assert told(active_task(bare, ALL)) == told(active_task(bare))
