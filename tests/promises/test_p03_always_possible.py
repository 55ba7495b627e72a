"""Promise 3, always possible: a hundred windows of history, an 8K summary model, no model at all, and odd input."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import ProviderError
from leporello.events import Outcome
from leporello.messages import Message
from leporello.providers.base import ModelRequest
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, ErrorVerdict
from leporello.providers.scripted import ScriptedProvider, Step, Wait
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from leporello.turns import validate
from tests.support.rounds import fold_once
from tests.support.strategies import any_conversation

COUNTER = TokenCounter.for_model(None)
SMALL_MODEL = 8_192
HANDOFF = "## Goal\n- Keep the service running\n\n## Active State\n- Tests were run\n\n## Remaining Work\n- Go on\n"


def narrator(script: list[Step] | Callable[[ModelRequest], Step], window: int = SMALL_MODEL) -> ModelSummariser:
    provider = ScriptedProvider(script, window=window, sleep=lambda _: None)
    return ModelSummariser([SummaryModel(provider, "small-model", window)], COUNTER)


@pytest.fixture(scope="module")
def long_history() -> list[Message]:
    """A hundred times a window of 6,000 tokens."""
    return generate(SessionSpec(seed=51, messages=1_500, tokens=600_000)).messages


@pytest.mark.fault(
    "the tail has no bound",
    "compaction/plan.py",
    old="fits = wanted and used + slim <= limits.tail_tokens * TAIL_STRETCH",
    new="fits = True",
)
def test_a_hundred_windows_fit_into_one_without_a_model(long_history: list[Message]) -> None:
    done = fold_once(long_history, 6_000)
    assert done.report.outcome is Outcome.COMMITTED, done.report.reason
    assert COUNTER.messages(done.messages) < 6_000
    assert validate(done.messages) == []


@pytest.mark.fault(
    "chunks are larger than the summary model's window",
    "summaries/model.py",
    old="if used + size > budget and out[-1]:",
    new="if False:",
)
def test_a_hundred_windows_are_summarised_by_a_model_of_8k(long_history: list[Message]) -> None:
    small = narrator(lambda _: HANDOFF)
    done = fold_once(long_history, 6_000, summariser=small)
    assert done.report.outcome is Outcome.COMMITTED, done.report.reason
    assert done.report.summariser == "model:small-model", done.report.warnings
    provider = small.ladder[0].provider
    assert isinstance(provider, ScriptedProvider)
    assert len(provider.requests) > 1
    assert done.report.usage.prompt_tokens == sum(reply.usage.prompt_tokens for reply in provider.replies)


def refused(kind: ErrorKind) -> CallFailed:
    return CallFailed(ErrorVerdict(kind, message="no"), "scripted", "small-model")


FAILURES: dict[str, Callable[[ModelRequest], Step]] = {
    "gone": lambda _: ProviderError("connection refused"),
    **{kind.value: (lambda _, k=kind: refused(k)) for kind in ErrorKind},
    "empty": lambda _: "",
    "prose": lambda _: "I would rather talk about the weather.",
    "refusal": lambda _: "I cannot help with that.",
    "late": lambda _: Wait(3_600.0, HANDOFF),
    "binary": lambda _: "\x00\ufffd" * 50,
    "endless": lambda _: "## Goal\n" + "- and so on\n" * 50_000,
}


@pytest.mark.fault(
    "a model's failure is not caught",
    "summaries/model.py",
    old="except (ProviderError, SummaryError, FutureTimeout) as error:",
    new="except ZeroDivisionError as error:",
)
@pytest.mark.parametrize("failure", list(FAILURES))
def test_whatever_the_summary_model_does_the_fold_is_made(failure: str) -> None:
    messages = generate(SessionSpec(seed=52, messages=60, tokens=15_000, images=0)).messages
    try:
        done = fold_once(messages, 6_000, summariser=narrator(FAILURES[failure]))
    except Exception as error:  # noqa: BLE001 - that nothing comes out is the promise
        pytest.fail(f"{type(error).__name__} came out: {error}")
    assert done.report.outcome is Outcome.COMMITTED, done.report.reason
    assert validate(done.messages) == []
    assert done.report.summariser == "model:small-model" or done.report.warnings


def deep(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def turn(call_id: str, arguments: object, result: object) -> list[Message]:
    call = {"id": call_id, "type": "function", "function": {"name": "patch", "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def talk(count: int, text: str = "What about the index? ") -> list[Message]:
    return [{"role": ("user", "assistant")[i % 2], "content": f"{i}: {text * 20}"} for i in range(count)]


def ninety_calls() -> list[Message]:
    calls = [{"id": f"c{i}", "type": "function", "function": {"name": "t", "arguments": "{}"}} for i in range(90)]
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": call["id"], "content": "row\n" * 300} for call in calls),
        {"role": "assistant", "content": "Done."},
    ]


def only_tools() -> list[Message]:
    turns = [turn(f"c{number}", "{}", "row\n" * 300) for number in range(90)]
    return [{"role": "user", "content": "go"}, *(message for group in turns for message in group)]


def between_talk(*groups: list[Message]) -> list[Message]:
    return [*talk(5), *(message for group in groups for message in group), *talk(40)[1:]]


EXTREMES: dict[str, Callable[[], list[Message]]] = {
    "one huge message": lambda: [{"role": "user", "content": "x " * 400_000}],
    "a huge message in the middle": lambda: between_talk([{"role": "assistant", "content": "log " * 300_000}]),
    "a huge first message": lambda: [{"role": "user", "content": "spec " * 100_000}, *talk(30)[1:]],
    "ten megabytes of tool output": lambda: between_talk(turn("c", "{}", "line of a log\n" * 720_000)),
    "no text at all": lambda: [{"role": ("user", "assistant")[i % 2], "content": ""} for i in range(200)],
    "lone surrogates": lambda: [
        *talk(31, "\ud83d broken \udc00 "),
        *between_talk(turn("c", "{}", "\ud800" * 3_000))[1:],
    ],
    "deeply nested arguments": lambda: between_talk(turn("c", deep(900), "ok"), turn("d", deep(100_000), "ok")),
    "arguments that are no text": lambda: between_talk(
        turn("c", {"a": [1]}, "ok"), turn("d", 7, "ok"), turn("e", None, "ok")
    ),
    "only tools": only_tools,
    "one tool turn of ninety calls": ninety_calls,
}


@pytest.mark.parametrize("name", list(EXTREMES))
def test_extremes_end_in_a_valid_list_or_a_clear_outcome(name: str) -> None:
    done = fold_once(EXTREMES[name](), 16_000)
    if done.report.committed:
        assert validate(done.messages) == []
        assert COUNTER.messages(done.messages) < 16_000
    else:
        assert done.report.outcome in (Outcome.NOTHING_TO_DO, Outcome.NO_GAIN, Outcome.BLOCKED)
        assert done.report.reason


@pytest.mark.fault(
    "arguments that are not JSON are not expected",
    "messages.py",
    old="    except (ValueError, RecursionError):\n        return None",
    new="    except ZeroDivisionError:\n        return None",
)
@given(any_conversation(longest=16), st.sampled_from((1_000, 4_000, 16_000)))
def test_no_list_makes_it_raise(messages: list[Message], window: int) -> None:
    try:
        done = fold_once(messages, window)
    except Exception as error:  # noqa: BLE001 - that nothing comes out is the promise
        pytest.fail(f"{type(error).__name__} came out: {error}")
    assert done.report.outcome in list(Outcome)
