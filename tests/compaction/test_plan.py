"""Where a list is cut: SPEC's numbers, whole groups, the newest user message, open calls."""

from __future__ import annotations

from leporello.compaction.plan import Protection, make_plan
from leporello.compaction.view import number_messages
from leporello.models import Limits
from leporello.tokens import TokenCounter

COUNTER = TokenCounter.for_model(None)


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict:
    return {"role": "assistant", "content": text}


def step(k: int, size: int = 200) -> list[dict]:
    call = {"id": f"c{k}", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{k}", "content": "word " * size},
    ]


def plan(messages: list[dict], window: int, last: int = 20):
    return make_plan(number_messages(messages), COUNTER.message, Limits.for_window(window), Protection(3, last))


def test_worked_numbers_for_a_200k_window() -> None:
    limits = Limits.for_window(200_000)
    assert (limits.threshold_tokens, limits.tail_tokens, limits.summary_ceiling) == (100_000, 20_000, 10_000)


def test_head_is_the_system_message_and_three_others_as_whole_groups() -> None:
    messages = [{"role": "system", "content": "be good"}, user("go"), *step(1), *step(2)]
    messages += [m for k in range(3, 200) for m in step(k)] + [user("now this")]
    assert plan(messages, 64_000).head == (0, 1, 2, 3)


def test_a_huge_first_message_goes_into_the_fold() -> None:
    messages = [user("word " * 5_000), assistant("ok")] + [m for k in range(200) for m in step(k)] + [user("now")]
    found = plan(messages, 64_000)
    assert found.head == ()
    assert 0 in found.middle


def test_the_tail_never_splits_a_call_from_its_results() -> None:
    messages = [user("go")] + [m for k in range(300) for m in step(k)] + [user("now")]
    for window in (8_000, 16_000, 33_333, 64_000, 128_000):
        start = plan(messages, window).tail[0]
        assert messages[start]["role"] != "tool"


def test_a_newest_user_message_far_back_is_lifted_and_the_tail_not_stretched() -> None:
    messages = [user("first"), assistant("yes"), user("the task")] + [m for k in range(300) for m in step(k)]
    found = plan(messages, 64_000)
    assert found.lifted is None or found.lifted == 2
    assert found.lifted == 2
    assert found.tail[0] > 500


def test_open_calls_are_always_in_the_tail_and_never_pointers() -> None:
    messages = [user("go")] + [m for k in range(100) for m in step(k)]
    calls = [{"id": f"p{k}", "type": "function", "function": {"name": "t", "arguments": "{}"}} for k in range(3)]
    messages += [{"role": "assistant", "content": "", "tool_calls": calls}]
    messages += [{"role": "tool", "tool_call_id": "p0", "content": "word " * 20_000}]
    found = plan(messages, 32_000)
    assert set(found.open_calls) <= set(found.tail)
    assert not set(found.open_calls) & found.pointers


def test_large_results_in_the_protected_tail_become_pointers() -> None:
    messages = [user("go")] + [m for k in range(100) for m in step(k, 2_000)] + [user("now")]
    found = plan(messages, 64_000)
    assert len(found.tail) >= 20
    assert found.pointers


def test_instructions_inside_the_span_stay_and_are_never_summarised() -> None:
    messages = [user("go")] + [m for k in range(100) for m in step(k)]
    messages[51:51] = [{"role": "developer", "content": "new rule of the house"}]
    messages += [m for k in range(100, 300) for m in step(k)] + [user("now")]
    found = plan(messages, 32_000)
    assert 51 in found.head
