"""What is shown of old work: one informative line, valid arguments, nothing a model could copy into a file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.compaction.prune import (
    OMITTED_KEY,
    clipped,
    pointer,
    repair_arguments,
    result_bodies,
    shorten_arguments,
    without_images,
)
from leporello.ledger.units import CUT_MARK
from leporello.messages import ToolCall
from leporello.redact import PLACEHOLDER


def result(text: str) -> dict:
    return {"role": "tool", "tool_call_id": "c1", "content": text}


@pytest.mark.parametrize(
    ("name", "arguments", "text", "expected"),
    [
        ("terminal", {"command": "npm test"}, "exit_code: 1\n" + "x\n" * 46, ("npm test", "exit 1", "48 lines")),
        ("read_file", {"path": "src/a.py", "offset": 10, "limit": 5}, "x\n" * 300, ("src/a.py:10-14", "301 lines")),
        ("write_file", {"path": "src/a.py", "content": "x" * 900}, "ok " * 100, ("write_file: src/a.py",)),
        ("patch", {"path": "b.py", "patch": "y"}, "done " * 100, ("b.py",)),
        ("search_files", {"pattern": "port", "path": "src"}, "a:1\n" * 100, ("port in src", "101 lines")),
        ("web_search", {"query": "sqlite wal"}, "z " * 200, ("sqlite wal",)),
        ("mystery", {}, "q" * 300, ("mystery", "1 line")),
    ],
)
def test_a_pruned_result_says_what_ran_on_what_and_how_it_ended(
    name: str, arguments: dict, text: str, expected: tuple[str, ...]
) -> None:
    line = pointer(result(text), ToolCall("c1", name, json.dumps(arguments), 0), 45)["content"]
    assert "\n" not in line
    assert "m45" in line
    assert all(piece in line for piece in expected), line


def test_a_result_of_an_unknown_call_is_a_plain_note() -> None:
    assert (
        pointer({"role": "tool", "tool_call_id": "x", "content": ""}, None, 3)["content"] == "[old tool output cleared]"
    )


def test_identical_results_are_kept_once() -> None:
    messages = [result("a" * 300), result("b" * 300), result("a" * 300), result("short"), result("short")]
    assert result_bodies(messages) == {0: 2}


VALUES = st.recursive(st.text() | st.integers() | st.none(), lambda v: st.lists(v) | st.dictionaries(st.text(), v))


@given(st.dictionaries(st.text(max_size=8), VALUES | st.text(min_size=400, max_size=3_000), max_size=5))
def test_shortened_arguments_are_json_and_no_value_is_a_fragment(arguments: dict) -> None:
    """Every value is whole, masked as a secret, or gone; what is gone is named beside the arguments."""
    call = {"id": "1", "type": "function", "function": {"name": "write_file", "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    shown = json.loads(shorten_arguments(message)["tool_calls"][0]["function"]["arguments"])
    for key, value in shown.items():
        if key != OMITTED_KEY:
            assert value in (arguments[key], PLACEHOLDER)
    assert set(arguments) <= set(shown) | set(shown.get(OMITTED_KEY, {}))


@pytest.mark.parametrize("raw", ['{"x": ', "not json", "{'a': 1}", {"a": 1}, ["x"], 7])
def test_arguments_that_are_not_json_text_become_it(raw: object) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": raw}}
    shown = repair_arguments({"role": "assistant", "tool_calls": [call]})["tool_calls"][0]["function"]["arguments"]
    json.loads(shown)


def test_good_messages_are_not_touched() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "x", "tool_calls": [call]}
    assert repair_arguments(message) is message
    assert shorten_arguments(message) is message


def is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(character in rest for character in short)


@given(st.text(min_size=50, max_size=400), st.integers(10, 40))
def test_clipped_text_is_a_subsequence_with_a_visible_mark(text: str, room: int) -> None:
    shown = clipped({"role": "assistant", "content": text}, room)["content"]
    assert CUT_MARK.strip() in shown
    assert is_subsequence(shown.replace(f"\n{CUT_MARK.strip()}\n", ""), text)


def test_thinking_goes_whole_when_a_message_is_clipped() -> None:
    shown = clipped({"role": "assistant", "content": "x" * 99, "reasoning_content": "secret thought"}, 20)
    assert "reasoning_content" not in shown


def test_images_of_old_turns_become_notes_and_other_parts_stay() -> None:
    odd = {"type": "from_the_future"}
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}, odd]}
    parts = without_images(message)["content"]
    assert "data:x" not in str(parts)
    assert parts[1] is odd


@pytest.mark.parametrize("answered", [True, False])
def test_thinking_stays_with_calls_the_model_has_not_gone_on_from(answered: bool) -> None:
    message = {"role": "assistant", "content": "x" * 9_000, "reasoning_content": "because", "tool_calls": []}
    short = clipped(message, 900, answered=answered)
    assert ("reasoning_content" in short) is not answered
    assert len(short["content"]) < 1_000
