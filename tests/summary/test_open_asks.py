"""What is open at a compaction: the active task behind a short reply, and requests that nobody dealt with."""

from __future__ import annotations

import pytest

from leporello.ledger.ledger import Ledger
from leporello.summaries.requests import active_task, pending_asks


def ledger_of(*turns: tuple[str, str]) -> Ledger:
    """A ledger of messages; a role `call` is an assistant message that makes a call with these arguments."""
    ledger = Ledger()
    for number, (role, text) in enumerate(turns, 1):
        if role == "call":
            call = {"id": f"c{number}", "type": "function", "function": {"name": "terminal", "arguments": text}}
            ledger.add(number, {"role": "assistant", "content": "", "tool_calls": [call]})
        elif role == "result":
            ledger.add(number, {"role": "tool", "tool_call_id": f"c{number - 1}", "content": text})
        else:
            ledger.add(number, {"role": role, "content": text})
    return ledger


REQUEST = "Add a session_count field to metadata.json and move the old files into a numbered folder."


@pytest.mark.parametrize("reply", ["yes", "Yes to all", "ja, gerne so", "好的", "its loaded"])
def test_a_short_reply_is_shown_with_what_it_goes_on_with(reply: str) -> None:
    ledger = ledger_of(
        ("user", REQUEST),
        ("assistant", "The plan is ready and has four steps in two files. Shall I proceed with the implementation?"),
        ("user", reply),
        ("call", '{"command": "ls"}'),
    )
    shown = [line.text for line in active_task(ledger)]
    assert shown == [REQUEST, "Shall I proceed with the implementation?", reply]


def test_a_question_between_request_and_reply_hides_neither() -> None:
    aside = "Would a second commit fail on the level of git already, what do you think?"
    ledger = ledger_of(
        ("user", REQUEST),
        ("assistant", "Here is a plan."),
        ("user", aside),
        ("assistant", "It would. Go on?"),
        ("user", "yes"),
    )
    assert [line.sources for line in active_task(ledger)] == [(1,), (3,), (4,), (5,)]


@pytest.mark.parametrize("thanks", ["thanks", "Great, thank you!", "Danke!", "谢谢"])
def test_a_thank_you_leaves_no_active_task(thanks: str) -> None:
    ledger = ledger_of(("user", REQUEST), ("assistant", "Done."), ("user", thanks))
    assert active_task(ledger) == []


def old_ask(*later: tuple[str, str], done: str = "{}") -> list[tuple[int, ...]]:
    """The pending asks after a request interrupted at a call, some turns about other things, and then `later`."""
    others = [
        pair
        for k in range(5)
        for pair in (("user", f"Now look at the gadget number {k} of the hall."), ("assistant", f"Gadget {k} is fine."))
    ]
    turns = [("user", "Collect all notes in docs/system_notes.md please."), ("call", done), ("result", "ok")]
    ledger = ledger_of(*turns, *others, *later, ("user", "Go to the next gadget in the row please."))
    return [line.sources for line in pending_asks(ledger, range(1, 40))]


def test_an_interrupted_request_that_nobody_took_up_is_pending() -> None:
    assert old_ask() == [(1,)]


def test_a_request_that_was_dealt_with_later_is_not_pending() -> None:
    assert old_ask(("call", '{"path": "docs/system_notes.md", "text": "all notes collected"}'), ("result", "ok")) == []


@pytest.mark.parametrize(("done", "pending"), [("echo begun > a.txt", []), ("ls", [(1,)])])
def test_a_request_for_which_files_were_changed_is_not_pending_for_ever(done: str, pending: list[tuple[int]]) -> None:
    """The user interrupted, corrected something and went on to other things: what was missing would have been said."""
    assert old_ask(done=f'{{"command": "{done}"}}') == pending


def test_what_an_editor_has_open_is_not_part_of_the_task() -> None:
    around = "# Context from my IDE setup:\n\n## Open tabs:\n- notes.md: docs/notes.md\n\n## My request for Codex:\n"
    assert [line.text for line in active_task(ledger_of(("user", around + REQUEST)))] == [REQUEST]


def test_a_repeated_request_is_pending_once() -> None:
    ledger = ledger_of(
        ("user", "can you remove the checkpoint_tests again"),
        ("call", "{}"),
        ("user", "can you remove the not so useful checkpoint_tests again"),
        ("call", "{}"),
        ("user", "and then run the whole suite on the other machine"),
    )
    assert [line.sources for line in pending_asks(ledger, range(1, 9))] == [(3,)]


def test_a_pending_request_says_why_it_is_open() -> None:
    ledger = ledger_of(("user", REQUEST), ("call", "{}"), ("user", "Stop at the second folder and tell me its size."))
    (line,) = pending_asks(ledger, range(1, 9))
    assert line.text == f"{REQUEST} (no answer before the user went on)"
