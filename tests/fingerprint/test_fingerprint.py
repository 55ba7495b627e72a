"""A message is what it says: bookkeeping changes nothing, any change of role, words, calls or ids does."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.adapters.lists import FoldedLists
from leporello.engines.compressor import ContextCompressor
from leporello.fingerprint import (
    common_length,
    fingerprints,
    is_stored_as,
    known_lengths,
    message_fingerprint,
    start,
    stored_fingerprint,
)
from leporello.ledger.ledger import Ledger, save
from leporello.messages import Message, message_hash
from leporello.testing.sessions import generate

words = st.text("abé \n", min_size=1, max_size=6)
mark = {"type": "ephemeral"}


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(["user", "assistant", "tool"]))
    content: Any = draw(words | st.lists(st.builds(lambda text: {"type": "text", "text": text}, words), min_size=1))
    message: Message = {"role": role, "content": content}
    if role == "tool":
        message["tool_call_id"] = draw(words)
    if role == "assistant" and draw(st.booleans()):
        arguments = draw(st.sampled_from(['{"a": 1}', '{"a":2}', "broken"]))
        message["tool_calls"] = [
            {"id": draw(words), "type": "function", "function": {"name": "f", "arguments": arguments}}
        ]
    return message


lists = st.lists(messages(), min_size=1, max_size=8)
START = start("owner")


def marked(message: Message) -> Message:
    """As a client sends it that sets a cache mark: a text becomes a list of one block."""
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else copy.deepcopy(content)
    parts[-1]["cache_control"] = mark
    return {**message, "content": parts}


@given(lists, st.data())
def test_marks_and_thinking_change_nothing(said: list[Message], data: st.DataObject) -> None:
    """Cache marks, the form of a text and opaque state are not part of what was said."""
    place = data.draw(st.integers(0, len(said) - 1))
    other = [*said]
    other[place] = {**marked(said[place]), "provider_state": {"x": 1}}
    assert fingerprints(START, other) == fingerprints(START, said)


@given(lists, lists)
def test_common_beginning(first: list[Message], second: list[Message]) -> None:
    """Two chains agree exactly as far as the messages do."""
    ours, theirs = fingerprints(START, first), fingerprints(START, first[: len(first) // 2] + second)
    plain = 0
    while plain < min(len(ours), len(theirs)) and ours[plain] == theirs[plain]:
        plain += 1
    assert common_length(ours, theirs) == plain >= len(first) // 2
    assert all(a != b for a, b in zip(ours[plain:], theirs[plain:], strict=False))


@given(lists, st.data())
def test_every_word_counts(said: list[Message], data: st.DataObject) -> None:
    """A changed word, role, call or owner gives another chain from there on, and none before."""
    place = data.draw(st.integers(0, len(said) - 1))
    changed = [*said]
    changed[place] = {**said[place], "content": "something else"}
    found = common_length(fingerprints(START, said), fingerprints(START, changed))
    assert found == place
    assert common_length(fingerprints(START, said), fingerprints(start("another"), said)) == 0
    assert common_length(fingerprints(START, said), fingerprints(start("owner", "named"), said)) == 0


@given(lists, st.sets(st.integers(0, 8)))
def test_known_lengths_are_found_longest_first(said: list[Message], known: set[int]) -> None:
    values = fingerprints(START, said)
    index = {values[length - 1] for length in known if 0 < length <= len(values)}
    assert list(known_lengths(values, index)) == sorted((k for k in known if 0 < k <= len(said)), reverse=True)


# -- bookkeeping

BOOKKEEPING: dict[str, Any] = {
    "_db_persisted": True,
    "timestamp": 1_731_700_000.5,
    "finish_reason": "stop",
    "cache_control": mark,
    "provider_state": {"x": 1},
}


def reordered(value: Any) -> Any:
    """The same with the keys of all dicts the other way round."""
    if isinstance(value, dict):
        return {key: reordered(item) for key, item in reversed(value.items())}
    return [*map(reordered, value)] if isinstance(value, list) else value


def booked(message: Message) -> Message:
    """As a host hands it back that keeps books in the message."""
    made = reordered({**message, **BOOKKEEPING})
    for part in made["content"] if isinstance(made.get("content"), list) else ():
        part["_db_id"] = 7
    for call in made.get("tool_calls") or ():
        call["_started"] = 1.5
        call["index"] = 0
    return made


@given(messages(), st.sets(st.sampled_from(sorted(BOOKKEEPING))))
def test_bookkeeping_is_not_part_of_the_identity(message: Message, keys: set[str]) -> None:
    assert message_fingerprint(booked(message)) == message_fingerprint(message)
    assert message_fingerprint({**message, **{key: BOOKKEEPING[key] for key in keys}}) == message_fingerprint(message)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": {"c": 2, "d": 3}}', '{"b":{"d":3,"c":2},"a":1}'),
        ('{"a": "\\ud83d", "b": {"c": 2, "d": 3}}', '{"b":{"d":3,"c":2},"a":"\\ud83d"}'),
        ('{"a": 99999999999999999999999, "b": 1}', '{"b": 1, "a": 99999999999999999999999}'),
    ],
)
def test_the_order_of_keys_in_arguments_says_nothing(one: str, other: str) -> None:
    """Also where the arguments are no plain JSON for the quick way."""
    assert message_fingerprint(called(one)) == message_fingerprint(called(other))


def called(arguments: str, id: str = "1", name: str = "f") -> Message:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


@pytest.mark.parametrize(("depth", "same"), [(1, True), (150, True), (197, True), (240, False)])
def test_the_order_of_keys_says_nothing_down_to_two_hundred_levels(depth: int, same: bool) -> None:
    """Deeper down they are compared as they stand, so that no message is too deep."""

    def nested(inner: str) -> bytes:
        return message_fingerprint(called("[" * depth + inner + "]" * depth))

    one, other = nested('{"a": "\\ud83d", "b": 1}'), nested('{"b": 1, "a": "\\ud83d"}')
    assert (one == other) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x", [{"type": "text", "text": "x"}], True),
        ("x", ["", {"type": "text", "text": "x"}, ""], True),
        ("x", [{"type": "text", "text": "x", "_id": 1, "cache_control": mark, "citations": None}], True),
        ("x", [{"type": "input_text", "text": "x"}], False),
        ("x", [{"type": "text", "text": "x", "lang": "en"}], False),
        ("x", [{"type": "text"}], False),
        ("x", ["x", "x"], False),
        (None, "", True),
        (None, [], True),
        ("", " ", False),
        (7, "7", False),
        ([{"type": "a", "_x": 1}], [{"type": "a", "_x": 2}], True),
    ],
)
def test_the_form_of_a_content(one: Any, other: Any, same: bool) -> None:
    said = [message_fingerprint({"role": "user", "content": content}) for content in (one, other)]
    assert (said[0] == said[1]) is same


def test_the_fingerprints_of_this_release_are_those_of_the_next() -> None:
    """Conversations are stored under them: whoever changes one of these values loses them."""
    assert start("owner").hex() == "b00c770956cf5b3e583c882b096d9210"
    known = {
        "76c734ca2c0b3ca8f992a0cb6c8bfc7d": {"role": "user", "content": "Hi"},
        "58d7ffd79f6e4d6cd80d5946559f9c87": {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        "3afb8fd8eaf987d35441ea77f606aaad": {"role": "assistant", "content": None, **called('{"a": 1}')},
        "e5eeb6c9f0d0b11006c917a53df22d80": {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "u"}}, "and this"],
        },
        "6a12e53d77f0c6ddfab6d7d9c461cd88": called('{"a": "\\ud83d", "b": [{"d": 1, "c": 99999999999999999999999}]}'),
    }
    assert {value: message_fingerprint(message).hex() for value, message in known.items()} == {
        value: value for value in known
    }
    assert fingerprints(start("owner"), list(known.values())[:2])[-1].hex() == "2e14d56320f6d9fe8b9272837f06ab06"
    assert stored_fingerprint(known["76c734ca2c0b3ca8f992a0cb6c8bfc7d"]) == "id:76c734ca2c0b3ca8f992a0cb6c8bfc7d"


def test_deep_arguments_are_read() -> None:
    deep = "[" * 900 + "]" * 900
    assert message_fingerprint(called(deep)) == message_fingerprint(called(deep))
    assert message_fingerprint(called(deep)) != message_fingerprint(called(f"[{deep}]"))


def changes(message: Message) -> list[Message]:
    """The message with one thing changed that it says."""
    made = [{**message, "role": "developer"}, {**message, "content": [message["content"], "and more"]}]
    if message["role"] == "tool":
        made.append({**message, "tool_call_id": message["tool_call_id"] + "!"})
    for place, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        for changed in (
            {**call, "id": call["id"] + "!"},
            {**call, "function": {**function, "name": "g"}},
            {**call, "function": {**function, "arguments": '{"_private": 1}'}},
        ):
            made.append({**message, "tool_calls": [*message["tool_calls"]]})
            made[-1]["tool_calls"][place] = changed
        made.append({**message, "tool_calls": [*message["tool_calls"], call]})
    return made


@given(messages())
def test_whatever_is_said_counts(message: Message) -> None:
    known = {message_fingerprint(changed) for changed in changes(message)}
    assert len(known) == len(changes(message))
    assert message_fingerprint(message) not in known


def test_a_picture_counts_and_keys_below_a_part_do() -> None:
    def shown(url: str, **more: Any) -> bytes:
        part = {"type": "image_url", "image_url": {"url": url, **more}}
        return message_fingerprint({"role": "user", "content": [part]})

    assert len({shown("a"), shown("b"), shown("a", _detail="low")}) == 3


@given(messages())
def test_stored_identities_of_both_kinds_are_read(message: Message) -> None:
    """Ledgers of 0.1.0 hold hashes of the exact bytes."""
    assert is_stored_as(stored_fingerprint(message), booked(message))
    assert is_stored_as(message_hash(message), message)
    assert not is_stored_as(message_hash(message), booked(message))
    assert not any(is_stored_as(stored_fingerprint(message), changed) for changed in changes(message))


def test_a_ledger_of_0_1_0_knows_its_messages() -> None:
    """They are not taken in a second time."""
    ledger = Ledger()
    for number, message in enumerate(SESSION, 1):
        ledger.add(number, message)
    ledger.hashes = {number: message_hash(message) for number, message in enumerate(SESSION, 1)}
    before = save(ledger)
    for number, message in enumerate(SESSION, 1):
        ledger.add(number, message)
    assert save(ledger) == before


def test_known_values_stay() -> None:
    """Stored conversations of a gateway are found by these."""
    said = [
        {"role": "user", "content": "Hello"},
        called('{"a": 1}'),
        {"role": "tool", "tool_call_id": "1", "content": "x"},
    ]
    assert fingerprints(start("owner", "n"), said)[-1].hex() == "56cfae0ccf5179db3514b1ee0ef4b4ae"


# -- whoever recognises a list

SESSION = generate(seed=6, messages=60, tokens=8_000, huge_outputs=0).messages


def test_an_engine_knows_its_list_though_the_host_kept_books() -> None:
    """Numbers go on, the ledger is kept, and what the host added stays on its messages."""
    engine = ContextCompressor(4_000)
    shown = engine.compress(SESSION[:40], force=True)
    assert len(shown) < 40
    ledger = engine.ledger
    for message in shown:
        # In place, as Hermes does it.
        message["_db_persisted"] = True
    again = engine.compress([*map(booked, shown), *SESSION[40:]], force=True)
    assert engine.ledger is ledger
    assert ledger.last == len(SESSION)
    assert any("_db_persisted" in message for message in again)


def test_an_engine_knows_an_edit_in_place() -> None:
    engine = ContextCompressor(4_000)
    shown = engine.compress(copy.deepcopy(SESSION[:40]), force=True)
    ledger = engine.ledger
    shown[-1]["content"] = "Something else"
    engine.compress([*shown, *SESSION[40:]], force=True)
    assert engine.ledger is not ledger


def test_a_shown_list_stays_though_the_host_kept_books() -> None:
    """It grew, and begins as it was shown before; each message is the host's newest form of it."""
    shown = FoldedLists(window=4_000)
    first = shown.show(SESSION[:50])
    assert any(line.place is None for line in first)
    again = shown.show([*map(booked, SESSION[:50]), {"role": "user", "content": "More."}])
    assert [line.place for line in again] == [*(line.place for line in first), 50]
    assert [line.message for line in again if line.place is None] == [
        line.message for line in first if line.place is None
    ]
    assert all(line.message["_db_persisted"] for line in again[:-1] if line.place is not None)
