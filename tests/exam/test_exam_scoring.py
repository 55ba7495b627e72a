"""When a gold text counts as known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.bench.bank import (
    Bank,
    ExamQuestion,
    Haystack,
    RunningCount,
    clip_to_tokens,
    json_tokens,
    text_tokens,
    texts_of,
)
from leporello.bench.baselines import PlainSearch
from leporello.bench.exam import RECOVERY_TOKENS, ask, without_thinking

from .sample import session


def known(gold: str, *messages: dict[str, object]) -> bool:
    return Haystack(texts_of(messages)).has(gold)


def test_case_and_white_space_do_not_matter() -> None:
    """The same words count however they are broken into lines or capitalised; other words don't."""
    message = {"role": "user", "content": "Never  touch\n\tthe Generated files"}
    assert known("never touch the generated FILES", message)
    assert not known("never touch generated files", message)


def test_escapes_in_tool_arguments_are_decoded() -> None:
    """Arguments are JSON text: quotes and line ends in them are escaped, in the gold they are not."""
    arguments = json.dumps({"patch": 'say "hello"\nto C:\\temp', "n": [{"deep": "über"}]})
    call = {"id": "a", "type": "function", "function": {"name": "edit", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert known('say "hello" to C:\\temp', message)
    assert known("über", message)
    assert known('\\"hello\\"', message)


def test_json_in_tool_output_is_decoded_too() -> None:
    """Some agents wrap a tool's output in JSON."""
    wrapped = {"role": "tool", "tool_call_id": "a", "content": json.dumps({"output": "can't open `:1'\nexit \"1\""})}
    assert known("can't open `:1' exit \"1\"", wrapped)


@pytest.mark.parametrize(
    "content", ["needle", [{"type": "text", "text": "a needle"}], [{"type": "x", "deep": ["needle"]}]]
)
def test_every_form_of_content_is_looked_at(content: object) -> None:
    """Plain text, text parts and parts of unknown kinds."""
    assert known("needle", {"role": "user", "content": content})


@given(st.text(max_size=50), st.text(max_size=20), st.text(max_size=50))
def test_text_that_is_there_is_found(before: str, gold: str, after: str) -> None:
    """Whatever stands around a text, it is found where it is."""
    message = {"role": "user", "content": f"{before} {gold} {after}"}
    assert known(gold, message)


def test_recovery_is_one_call_of_four_thousand_tokens() -> None:
    """The question is the query; what comes after the budget does not count."""
    question = ExamQuestion("q", "rule", "where is it?", "the needle")
    bank = Bank("s", (question,))
    asked = []

    def late(query: str, max_tokens: int) -> str:
        asked.append((query, max_tokens))
        return "word " * (RECOVERY_TOKENS + 10) + "the needle"

    assert not ask(bank, [], late)[0].recovered
    assert asked == [("where is it?", RECOVERY_TOKENS)]
    assert ask(bank, [], lambda query, max_tokens: "so: the\nneedle")[0].recovered
    assert ask(bank, [], lambda query, max_tokens: json.dumps([{"text": "the needle"}]))[0].recovered


def test_no_search_is_made_for_what_is_in_the_context() -> None:
    """Closed-book answers count as recovered without a call."""

    def never(query: str, max_tokens: int) -> str:
        raise AssertionError("searched although the answer was there")

    bank = Bank("s", (ExamQuestion("q", "rule", "where?", "needle"),))
    answer = ask(bank, [{"role": "user", "content": "the needle"}], never)[0]
    assert answer.closed
    assert answer.recovered


@given(st.lists(st.sampled_from(session()), max_size=12))
def test_running_count_follows_the_whole_count(messages: list[dict[str, object]]) -> None:
    """Counting message by message stays within a token per message of counting the list."""
    total = json_tokens(messages)
    assert abs(RunningCount().of(messages) - total) <= len(messages) + 2


@given(st.text(max_size=200), st.integers(0, 40))
def test_clipping_keeps_a_beginning_within_the_limit(text: str, limit: int) -> None:
    """A clipped text is a beginning of the text and never longer than allowed."""
    clean = text.encode("utf-8", "replace").decode()
    clipped = clip_to_tokens(text, limit)
    assert clean.startswith(clipped)
    assert text_tokens(clipped) <= limit or clipped == clean
    if text_tokens(clean) <= limit:
        assert clipped == clean


def test_plain_search_stays_within_its_budget_and_finds() -> None:
    """The baseline brings the chunk with the words asked for, within the budget."""
    search = PlainSearch(session())
    assert "4f2a9c1" in search("which commit flushes the last row", 200)
    assert text_tokens(search("plain words part", 50)) <= 50
    assert search("zebra", 50) == ""


def test_recorded_reasoning_is_no_part_of_the_replay() -> None:
    """Thinking goes, everything else stays; a message of thinking alone goes whole."""
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ok"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
        {"role": "assistant", "content": [{"type": "reasoning", "text": "r"}], "tool_calls": [{"id": "a"}]},
        {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "see"}]},
    ]
    kept = without_thinking(messages)
    assert [message["content"] for message in kept] == ["go", "ok", None, messages[4]["content"]]
