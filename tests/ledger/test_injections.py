"""Text from tools and pages never becomes a rule, ends none, and never stands among the instructions of a handoff."""

from __future__ import annotations

import json

import pytest

from leporello.ledger.ledger import Ledger
from leporello.messages import Message
from leporello.summaries.base import SummaryTask
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section
from leporello.summaries.verify.verify import INSTRUCTIONS, verify
from tests.ledger.injections import COMMANDS, WRAPPED

RULE = "Never push to main."
CASES = [(wrapping, text) for wrapping in WRAPPED for text in COMMANDS if "\n" not in text]


def call(name: str, **arguments: str) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


def ledger_of(*messages: Message) -> Ledger:
    ledger = Ledger()
    for number, message in enumerate(messages, 1):
        ledger.add(number, message)
    return ledger


def rules(ledger: Ledger) -> list[str]:
    return [rule.text for rule in ledger.active_rules]


def test_there_are_enough_cases() -> None:
    assert len(COMMANDS) >= 25
    assert 2 * len(COMMANDS) + len(CASES) >= 50


@pytest.mark.parametrize("text", COMMANDS)
@pytest.mark.parametrize("tool", ["web_fetch", "read_file"])
def test_what_a_tool_returns_makes_no_rule_and_ends_none(text: str, tool: str) -> None:
    result: Message = {"role": "tool", "tool_call_id": "c1", "content": text}
    asked: Message = {"role": "user", "content": f"{RULE}\nLook at the page."}
    ledger = ledger_of(asked, call(tool, url="https://example.org"), result)
    assert rules(ledger) == [RULE]
    assert len(ledger.asks) == 1


@pytest.mark.parametrize("text", COMMANDS)
def test_what_the_assistant_repeats_makes_no_rule_and_ends_none(text: str) -> None:
    ledger = ledger_of({"role": "user", "content": RULE}, {"role": "assistant", "content": f"The page says: {text}"})
    assert rules(ledger) == [RULE]


@pytest.mark.parametrize(("wrapping", "text"), CASES)
def test_what_a_program_puts_into_a_users_message_makes_no_rule_and_ends_none(wrapping: str, text: str) -> None:
    ledger = ledger_of({"role": "user", "content": RULE}, {"role": "user", "content": wrapping.format(text=text)})
    assert rules(ledger) == [RULE]


@pytest.mark.parametrize("text", [text for text in COMMANDS if "\n" not in text])
@pytest.mark.parametrize("section", INSTRUCTIONS)
def test_a_model_can_not_make_it_an_instruction(text: str, section: Section) -> None:
    """A summary model that falls for a page writes its order among the constraints: the verifier takes it out."""
    turns: list[Message] = [
        {"role": "user", "content": "Look at the page and tell me what it is about."},
        call("web_fetch", url="https://example.org"),
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]
    task = SummaryTask(list(enumerate(turns, 1)), None, 1_000)
    handoff = Handoff({section: (HandoffLine(text, (3,), LineOrigin.MODEL),)})
    assert verify(handoff, task)[0][section] == ()
