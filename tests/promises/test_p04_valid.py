"""Promise 4, valid: every produced list is one that providers accept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.messages import Message, calls_of, encode_json, is_instruction, is_result, message_hash, role_of, text_of
from leporello.testing.sessions import SessionSpec, Style, generate
from leporello.turns import ViolationKind, validate
from tests.support import checks
from tests.support.checks import cut_points
from tests.support.rounds import fold_once, rounds
from tests.support.strategies import conversations, nasty_conversations

SMALL_START: list[Message] = [
    {"role": "user", "content": "Read both files."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": name, "type": "function", "function": {"name": "read_file", "arguments": f'{{"path": "{name}"}}'}}
            for name in ("a.py", "b.py")
        ],
    },
    {"role": "tool", "tool_call_id": "b.py", "content": "x = 1"},
    {"role": "tool", "tool_call_id": "a.py", "content": "y = 2"},
    {"role": "assistant", "content": "Done."},
]
"""A group small enough to stay in the head."""

WINDOWS = st.sampled_from((1_500, 3_000, 6_000, 16_000))

NO_RESULT = "[no result was recorded for this call]"


@pytest.mark.fault(
    "the head is cut behind a call",
    "compaction/plan.py",
    old="        counted += len(group)\n        stop = group.stop",
    new="        counted += len(group)\n        stop = group.start + 1",
)
@given(conversations(longest=20), WINDOWS)
def test_valid_lists_stay_valid(messages: list[Message], window: int) -> None:
    first = sum(is_instruction(message) for message in messages)
    messages = [*messages[:first], *SMALL_START, *messages[first:]]
    assert validate(messages) == []
    done = fold_once(messages, window)
    assert validate(done.messages) == []
    assert done.report.outcome != "failed", done.report.reason
    assert not any(text_of(message) == NO_RESULT for message in done.messages), "a result that was there is missing"


@pytest.mark.fault(
    "results without a call stay",
    "compaction/assemble.py",
    old="drop = set(group.orphans)",
    new="drop = set()",
)
@pytest.mark.fault(
    "calls without a result get none",
    "compaction/assemble.py",
    old="kept.append(Item(kept[-1].number, stub, origin=Origin.WRITTEN))",
    new="pass",
)
@pytest.mark.fault(
    "broken arguments stay broken",
    "compaction/assemble.py",
    old="kept.append(items[index].showing(repair_arguments(messages[index])))",
    new="kept.append(items[index])",
)
@given(nasty_conversations(longest=20), WINDOWS)
def test_broken_lists_are_mended_when_they_are_folded(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    assert done.report.outcome != "failed", done.report.reason
    if done.report.committed:
        # Two things can't be mended without inventing or moving what somebody wrote.
        given = {v.fault for v in validate(messages)} & {ViolationKind.LATE_SYSTEM, ViolationKind.NO_USER}
        assert [v for v in validate(done.messages) if v.fault not in given] == []


@pytest.mark.fault(
    "open calls get a stub",
    "compaction/assemble.py",
    old="if group.stop < len(messages) or more_follows:",
    new="if True:",
)
@given(conversations(longest=16, open_calls=True), WINDOWS)
def test_work_in_progress_is_not_touched(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    assert checks.open_tail(done.messages) == checks.open_tail(messages)
    assert not any(text_of(message) == NO_RESULT for message in done.messages)


@pytest.mark.fault(
    "the tail is turned around",
    "compaction/plan.py",
    old="tail=tuple(range(tail.start, len(items))),",
    new="tail=tuple(range(len(items) - 1, tail.start - 1, -1)),",
)
@given(conversations(longest=20), WINDOWS)
def test_messages_keep_their_order_and_occur_once(messages: list[Message], window: int) -> None:
    done = fold_once(messages, window)
    hashes = [message_hash(message) for message in messages]
    place = {key: index for index, key in enumerate(hashes) if hashes.count(key) == 1}
    kept = [place[key] for key in map(message_hash, done.messages) if key in place]
    # The newest user message may be lifted: it stands directly behind the fold.
    newest = checks.newest_user(messages)
    rest = [index for index in kept if index != newest]
    assert rest == sorted(set(rest))


@pytest.mark.fault(
    "instructions inside the span are folded",
    "compaction/plan.py",
    old="        if not is_instruction(message):\n            continue",
    new="        if True:\n            continue",
)
@given(conversations(longest=16), WINDOWS)
def test_instructions_stay_byte_for_byte(messages: list[Message], window: int) -> None:
    middle = cut_points(messages)[len(cut_points(messages)) // 2]
    later: Message = {"role": "developer", "content": "From here on the tests live in checks/."}
    messages = [*messages[:middle], later, *messages[middle:]]
    done = fold_once(messages, window)
    instructions = [encode_json(message) for message in messages if is_instruction(message)]
    assert [encode_json(message) for message in done.messages if is_instruction(message)] == instructions


@given(st.integers(2, 5), WINDOWS)
def test_neighbouring_user_messages_are_shown_as_one(count: int, window: int) -> None:
    messages = generate(SessionSpec(seed=61, messages=30, tokens=8_000, images=0)).messages
    assert role_of(messages[-1]) == "assistant"
    asked = [f"Question {number}?" for number in range(count)]
    done = fold_once([*messages, *({"role": "user", "content": text} for text in asked)], window)
    if done.report.committed:
        assert validate(done.messages) == []
        shown = text_of(done.messages[-1])
        assert "\n\n".join(asked).endswith(shown)
        assert shown.endswith(asked[-1])


@pytest.mark.parametrize("style", list(Style))
@pytest.mark.parametrize("reuse", [False, True], ids=["own ids", "reused ids"])
def test_ten_rounds_of_a_session_stay_valid(style: Style, reuse: bool) -> None:
    session = generate(SessionSpec(seed=62, messages=300, tokens=40_000, style=style, reuse_call_ids=reuse))
    for number, done in enumerate(rounds(session.messages, 8_000, 10), 1):
        assert validate(done.after) == [], f"round {number}"
        calls = sum(len(calls_of(message)) for message in done.after)
        assert calls == sum(is_result(message) for message in done.after)
