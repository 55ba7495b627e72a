"""When something was said: the day that messages begin with stands beside words that count from it."""

from __future__ import annotations

import pytest

from leporello.engines.compressor import ContextCompressor
from leporello.ledger.days import carried, day_before, split_stamp, told_with_day
from leporello.messages import Message, text_of

STAMPED = [
    ("[1:56 pm on 8 May, 2023] Ines: hi", "8 May, 2023"),
    ("[2026-11-19 08:15] hi", "2026-11-19"),
    ("[2026-11-19T08:15:00Z] hi", "2026-11-19"),
    ("[2026-11-19 08:15:07.123 +01:00] hi", "2026-11-19"),
    ("[Wednesday, 19 November 2026, 8:15 pm UTC] hi", "19 November 2026"),
    ("[Mittwoch, 19. November 2026 um 8:15 Uhr] hallo", "19. November 2026"),
    ("(19.11.2026, 08:15) hallo", "19.11.2026"),
    ("[March-15-2024] hi", "March-15-2024"),
    ("[Thu, Nov 19, 2026] hi", "Nov 19, 2026"),
    ("[19 de noviembre de 2026] hola", "19 de noviembre de 2026"),
    ("[2026年11月19日 8:15] 你好", "2026年11月19日"),
]


@pytest.mark.parametrize(("text", "day"), STAMPED)
def test_a_message_tells_its_day_before_its_words(text: str, day: str) -> None:
    found, said = split_stamp(text)
    assert found == day
    assert said == text[text.index("] " if "]" in text else ") ") + 2 :]


@pytest.mark.parametrize(
    "text",
    [
        "[2024-05-03 11:02:17] WARN worker-3: must not exceed 500 connections",
        "[2024-05-03 11:02:17] nginx[812]: no room",
        "[2024-05-03] Ana: hi\n[2024-05-03] Ben: hello",
        "[2024-05-03]",
        "[x] buy milk before 3 May, 2024",
        "[v1.2.3] is out",
        "(see page 12/13) of the book",
        "On 8 May, 2023 it rained.",
        "[Screenshot 2024-03-05 at 10.11.12.png] Why does the checkout fail?",
        "[Report from 3 March 2024] Please update it.",
        "(updated 2019-01-01) The rates are in the appendix.",
        "[file 2026-05-08.log] rm it today",
        "[draft of 2026-05-08](http://x.example) is ready",
        "[2026-05-08](http://x.example) is ready",
    ],
)
def test_logs_chats_and_remarks_are_no_days(text: str) -> None:
    assert split_stamp(text) == ("", text)


def test_the_day_stands_before_words_that_count_from_it() -> None:
    assert told_with_day("I went there yesterday.", "8 May, 2023") == "[8 May, 2023] I went there yesterday."
    assert told_with_day("My sister is called Ines.", "8 May, 2023") == "My sister is called Ines."
    assert told_with_day("I went there yesterday.", "") == "I went there yesterday."
    assert told_with_day("[7 May, 2023] It ended yesterday.", "8 May, 2023") == "[7 May, 2023] It ended yesterday."


def test_a_day_holds_until_the_next_one() -> None:
    days = [(3, "Monday"), (9, "Tuesday")]
    assert [day_before(number, days) for number in (1, 3, 8, 9, 50)] == ["", "Monday", "Monday", "Tuesday", "Tuesday"]


def test_one_day_alone_is_that_of_its_message() -> None:
    assert carried({3: "Monday"}) == []
    assert carried({9: "Tuesday", 3: "Monday"}) == [(3, "Monday"), (9, "Tuesday")]


TRIP = "Yesterday we took the night train to Trieste with the twins."


def talk() -> list[Message]:
    small = ["Nice to hear from you.", "Oh really?", "That sounds lovely.", "And how was the weather there?"]
    opened = [f"[9:00 am on {day} May, 2023] Good morning!" for day in (8, 9, 10)]
    said = [opened[0], *small * 10, TRIP, *small * 30, opened[1], *small * 40, opened[2], *small * 60]
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(said)]


def test_a_fold_says_when_it_was_said_and_the_next_one_still_does() -> None:
    shown = talk()
    for _ in range(3):
        # Another program each time: it knows of the beginning what the list tells.
        shown = ContextCompressor(6_000).compress(shown, force=True)
        assert f"[8 May, 2023] {TRIP}" in "\n".join(map(text_of, shown))
        shown = [*shown, *talk()[len(talk()) // 2 :]]
