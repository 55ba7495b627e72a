"""A fold says which value holds now, and marks the one it replaced."""

from __future__ import annotations

from leporello.events import Span
from leporello.ledger.ledger import Ledger
from leporello.summaries.deterministic import build, merge
from leporello.summaries.fold import Fold
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section, parse, render
from leporello.summaries.import_fold import inherit

OLD = "The launch of the billing portal is on 12 May."
NEW = "The billing portal launch is on 19 May."
TOLD = "billing portal launch: now 19 May [m9], was 12 May until then"


def folded() -> Handoff:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": OLD})
    ledger.add(2, {"role": "assistant", "content": "Noted. The parser has 240 lines."})
    ledger.add(9, {"role": "user", "content": NEW})
    return build(ledger, {1, 2, 9}, 2_000, len)


def test_a_replaced_value_is_marked_and_the_change_told() -> None:
    handoff = folded()
    said = [line.text for line in handoff[Section.USER_SAID]]
    assert f"{OLD} (was; since m9: 19 May)" in said
    assert NEW in said
    assert HandoffLine(TOLD, (1,), LineOrigin.PROGRAM) in handoff[Section.CRITICAL]
    assert f"- {TOLD} [m1 program]" in render(handoff)


def test_a_fold_with_marks_is_read_back_as_it_was_written() -> None:
    handoff = folded()
    assert parse(render(handoff)) == handoff


def test_a_change_is_carried_into_the_next_fold() -> None:
    ledger = Ledger()
    inherit(ledger, Fold(1, Span(1, 9), folded()))
    ledger.add(10, {"role": "user", "content": "The parser tests pass."})
    again = build(ledger, {1, 2, 9, 10}, 2_000, len)
    assert [line.text for line in again[Section.CRITICAL]] == [TOLD]
    assert render(again).count("(was; since m9: 19 May) (was") == 0


def test_a_summary_of_a_model_stands_beside_the_changes() -> None:
    told = HandoffLine("The portal needs the new tax table.", (2,), LineOrigin.MODEL)
    merged = merge(folded(), Handoff({Section.CRITICAL: (told,)}))
    assert [line.text for line in merged[Section.CRITICAL]] == [TOLD, told.text]


def worked_on(*said: str) -> Ledger:
    """A conversation with many rules and much output, in which the user says something by the way."""
    ledger = Ledger()
    number = 0
    for turn, text in enumerate(said):
        rule = f"Never rename the column total_{turn} of the table orders_{turn} without asking the owner first."
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        output = "\n".join(f"step {turn}.{line} wrote batch {line * 37 + turn} to shard {line}" for line in range(40))
        for message in (
            {"role": "user", "content": rule},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": output},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": text},
            {"role": "assistant", "content": "Noted."},
        ):
            number += 1
            ledger.add(number, message)
    return ledger


def test_a_value_said_by_the_way_is_kept_beside_rules_and_output() -> None:
    chat = ["thanks, go on"] * 12
    ledger = worked_on(*chat[:6], "By the way, the auditor is called Marga Ohlsen.", *chat)
    text = render(build(ledger, set(ledger.facts), 700, lambda part: len(part) // 4))
    assert "the auditor is called Marga Ohlsen." in text


def test_what_a_later_sentence_may_have_replaced_gives_way_to_it() -> None:
    chat = ["thanks, go on"] * 6
    old, new = (
        "Orders of the bakery leave from ramp Kestrel.",
        "Tell the driver: the bakery loads at ramp Osprey today.",
    )
    ledger = worked_on(*chat, old, *chat, new, *chat)
    text = render(build(ledger, set(ledger.facts), 900, lambda part: len(part) // 4))
    assert new in text
    assert old not in text or f"{old} (" in text


def test_what_is_shown_beside_a_statement_stands_there_only() -> None:
    chat = ["thanks, go on"] * 6
    old, later = "The oboe lesson is at 16:30 in the annex.", "The kids have their oboe lesson at 18:00 with Felix."
    ledger = worked_on(*chat, old, *chat, later, *chat)
    text = render(build(ledger, set(ledger.facts), 1_500, lambda part: len(part) // 4))
    assert f"{old} (later m" in text
    assert text.count(later.rstrip(".")) == 1
