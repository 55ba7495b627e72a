"""A message is a value: what is written reads back the same, and every content shape can be looked at."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.messages import (
    PartKind,
    ToolCall,
    calls_of,
    decode_json,
    encode_json,
    message_hash,
    parts_of,
    text_of,
    without_thoughts,
)

TEXT = st.text(st.characters(), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, JSON, max_size=5))
def test_what_is_written_reads_back_with_its_key_order(value: dict) -> None:
    """Byte-faithful: unicode, lone surrogates, huge numbers, unknown fields."""
    back = decode_json(encode_json(value))
    assert back == value
    assert list(back) == list(value)


def test_a_pair_of_lone_surrogates_stays_a_pair() -> None:
    value = {"content": "\ud83d\ude00"}
    assert decode_json(encode_json(value)) == value
    assert message_hash(value) != message_hash({"content": "😀"})


def test_nan_is_not_written_as_null() -> None:
    assert math.isnan(decode_json(encode_json({"x": float("nan"), "y": None}))["x"])


@pytest.mark.parametrize(
    ("content", "text", "kinds"),
    [
        (None, "", []),
        ("", "", []),
        ("hello", "hello", [PartKind.TEXT]),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", [PartKind.TEXT, PartKind.TEXT]),
        ([{"type": "image_url", "image_url": {"url": "data:..."}}], "", [PartKind.IMAGE]),
        ([{"type": "input_audio", "input_audio": {}}], "", [PartKind.AUDIO]),
        ([{"type": "file", "file": {}}], "", [PartKind.FILE]),
        ([{"type": "from_the_future", "x": 1}], "", [PartKind.OTHER]),
        ([7], "", [PartKind.OTHER]),
        ({"odd": True}, "", [PartKind.OTHER]),
    ],
)
def test_every_shape_of_content_can_be_read(content: object, text: str, kinds: list[PartKind]) -> None:
    message = {"role": "user", "content": content}
    assert text_of(message) == text
    assert [part.kind for part in parts_of(message)] == kinds


def test_unknown_parts_are_kept_untouched() -> None:
    part = {"type": "from_the_future", "x": [1, {"y": 2}]}
    assert parts_of({"role": "user", "content": [part]})[0].raw is part


def test_calls_of_both_forms_and_odd_arguments() -> None:
    new = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}]}
    old = {"role": "assistant", "function_call": {"name": "f", "arguments": "not json"}}
    assert calls_of(new) == (ToolCall("1", "f", '{"a":1}', 0),)
    assert calls_of(new)[0].parsed() == {"a": 1}
    assert calls_of(old)[0].parsed() == {}


def test_a_message_without_thoughts_is_the_same_object() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "tool_calls": []}
    assert without_thoughts(message) is message


@pytest.mark.parametrize(
    "thought",
    [
        {"content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Done."}, "And"]},
        {"content": [{"type": "text", "text": "Done."}, "And"], "reasoning_content": "Hm."},
    ],
)
def test_thoughts_are_left_out_and_nothing_else(thought: dict[str, object]) -> None:
    message = {"role": "assistant", **thought, "tool_calls": [{"id": "c"}]}
    said = [{"type": "text", "text": "Done."}, "And"]
    assert without_thoughts(message) == {"role": "assistant", "content": said, "tool_calls": [{"id": "c"}]}
