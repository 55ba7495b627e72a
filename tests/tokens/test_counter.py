"""`TokenCounter`: additive, growing, remembered, and total on whatever a message may hold."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.tokens import TokenCounter

MODELS = ("gpt-5", "claude-opus-4-8", "claude-sonnet-4-5", "gemini-3-pro", "deepseek-chat", "some-model")
BY_MODEL = pytest.mark.parametrize("model", MODELS)

any_text = st.text(max_size=300) | st.text(alphabet="aAzZ09 _{}\n\"'é你한я🙂", max_size=300)
surrogates = st.text(alphabet=st.sampled_from(["a", "\ud800", "\udfff", "x"]), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | surrogates,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
parts = st.one_of(
    any_text,
    st.fixed_dictionaries({"type": st.just("text"), "text": any_text}),
    st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.fixed_dictionaries({"url": any_text})}),
    st.fixed_dictionaries({"type": st.sampled_from(["audio", "file", "thinking", "new_kind"]), "content": json_values}),
    json_values,
)
calls = st.fixed_dictionaries(
    {"id": st.text(max_size=8), "function": st.fixed_dictionaries({"name": any_text, "arguments": json_values})}
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "function"])},
    optional={
        "content": any_text | surrogates | st.lists(parts, max_size=4) | json_values,
        "tool_calls": st.lists(calls, max_size=3),
        "name": any_text,
        "reasoning_content": any_text,
        "extra": json_values,
    },
)


@pytest.fixture(scope="module", params=["gpt-5", "claude-opus-4-8", "some-model"])
def counter(request: pytest.FixtureRequest) -> TokenCounter:
    return TokenCounter.for_model(request.param)


@given(message=messages)
def test_every_message_has_a_positive_count(counter: TokenCounter, message: dict[str, Any]) -> None:
    """Whatever shape it has: a whole number above zero (framing), never an exception."""
    tokens = counter.message(message)
    assert isinstance(tokens, int)
    assert tokens > 0


@given(message=messages)
def test_a_remembered_count_equals_a_fresh_one(counter: TokenCounter, message: dict[str, Any]) -> None:
    """The memo is never wrong: a copy of the message, a second call and a new counter agree."""
    first = counter.message(message)
    assert counter.message(message) == first == counter.message(copy.deepcopy(message))
    assert TokenCounter(counter.family).message(message) == first


@given(message=messages, text=any_text.filter(bool))
def test_a_changed_message_is_counted_anew(counter: TokenCounter, message: dict[str, Any], text: str) -> None:
    """The memo looks at content, not at identity: a message changed in place gets its new count."""
    changed = dict(message)
    counter.message(changed)
    changed["content"] = text
    assert counter.message(changed) == TokenCounter(counter.family).message({**message, "content": text})


@given(
    batch=st.lists(messages, max_size=5), tools=st.lists(st.dictionaries(any_text, any_text, max_size=3), max_size=3)
)
def test_a_request_is_the_sum_of_its_parts(
    counter: TokenCounter, batch: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> None:
    """Messages add up; tools and system come on top, and nothing is counted twice."""
    total = sum(counter.message(message) for message in batch)
    assert counter.messages(batch) == total
    bare = counter.request([])
    assert counter.request(batch) == total + bare
    with_tools = counter.request(batch, tools)
    assert abs(with_tools - total - bare - counter.tools(tools)) <= 1
    assert counter.request(batch, tools, "Be brief.") > with_tools


@given(text=any_text, more=any_text)
def test_counts_grow_with_the_text(counter: TokenCounter, text: str, more: str) -> None:
    """Appending may merge a few tokens at the seam, but never makes a text cheaper beyond that."""
    seam = 4
    assert counter.text(text + more) >= counter.text(text) - seam
    assert counter.text(text + more) <= counter.text(text) + counter.text(more) + seam


@given(text=any_text, times=st.integers(2, 30))
def test_a_repeated_text_counts_about_as_often(counter: TokenCounter, text: str, times: int) -> None:
    """No jump when a text grows: what one line costs, many lines cost that many times."""
    line = text + "\n"
    assert counter.text(line * times) <= counter.text(line) * times + 2 * times


@BY_MODEL
def test_a_ten_megabyte_result_is_counted(model: str) -> None:
    """Large results are an everyday thing; the count is that of its pieces."""
    counter = TokenCounter.for_model(model)
    line = "2026-03-14 02:00:01 INFO importer.run: started batch=8841 files=212\n"
    text = line * (10_000_000 // len(line))
    count = counter.message({"role": "tool", "tool_call_id": "c1", "content": text})
    assert count == pytest.approx(counter.text(line * 1_000) / 1_000 * (10_000_000 // len(line)), rel=0.02)


@BY_MODEL
def test_escapes_in_arguments_are_not_paid_for(model: str) -> None:
    """A model sees the argument's value, not JSON inside a JSON string."""
    counter = TokenCounter.for_model(model)
    code = 'print("a\\tb")\n' * 200
    call = {"id": "c", "function": {"name": "write_file", "arguments": json.dumps({"content": code})}}
    framed = counter.message({"role": "assistant", "content": None, "tool_calls": [call]})
    assert framed - counter.text(code) < 60


def test_arguments_as_an_object_count_like_their_text() -> None:
    """Some hosts keep arguments parsed; that changes nothing."""
    counter = TokenCounter.for_model("gpt-5")
    value = {"path": "a.py", "lines": [1, 2, 3], "deep": {"x": None}}
    as_text = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": json.dumps(value)}}]}
    as_object = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": value}}]}
    assert counter.message(as_text) == counter.message(as_object)


def _nested(depth: int) -> Any:
    value: Any = "leaf"
    for _ in range(depth):
        value = {"content": [value]}
    return value


@BY_MODEL
@pytest.mark.parametrize("depth", [5, 200, 5_000])
def test_nesting_beyond_reason_is_counted(model: str, depth: int) -> None:
    """Deep values in content or arguments never end in a recursion error."""
    counter = TokenCounter.for_model(model)
    assert counter.message({"role": "user", "content": [_nested(depth)]}) > 0
    call = {"id": "c", "function": {"name": "f", "arguments": _nested(depth)}}
    assert counter.message({"role": "assistant", "tool_calls": [call]}) > 0
    assert counter.tools([{"name": "f", "parameters": _nested(depth)}]) > 0


def test_values_that_hold_themselves_or_are_no_json_are_counted() -> None:
    """A cycle or bytes can't be stored, but counting them ends."""
    counter = TokenCounter.for_model("gpt-5")
    cycle: dict[str, Any] = {"type": "odd"}
    cycle["self"] = cycle
    assert counter.message({"role": "user", "content": [cycle]}) > 0
    assert counter.message({"role": "user", "content": [{"type": "odd", "data": b"raw"}]}) > 0


def test_control_tokens_in_a_log_are_text() -> None:
    """`<|endoftext|>` in a tool result is eleven characters, not one token that ends the world."""
    counter = TokenCounter.for_model("gpt-5")
    assert counter.text("<|endoftext|>") > 3


def test_no_model_counts_plainly() -> None:
    """Without a model the figure is the bare o200k count, which is what reports and exams use."""
    counter = TokenCounter.for_model(None)
    assert counter.text("hello world") == 2
    assert counter.exact


def test_bookkeeping_keys_are_not_counted() -> None:
    """What a host keeps beside a message is not sent and costs nothing."""
    counter = TokenCounter.for_model("gpt-5")
    plain = {"role": "user", "content": "hi"}
    assert counter.message({**plain, "extra": {"response": "x " * 1_000}, "timestamp": "2026"}) == counter.message(
        plain
    )
