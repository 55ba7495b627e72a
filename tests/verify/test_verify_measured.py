"""The verifier on summaries with planted errors: it catches nearly all of them, and keeps nearly all true lines.

The later sets of kinds were each written after the verifier they first met; what they found has been mended since, and
the figures of the first meeting are in `docs/verification.md`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.messages import Message
from leporello.summary.base import SummaryTask
from leporello.summary.handoff import Handoff, Line, Origin, Section
from leporello.summary.verify import verify
from tests.verify.last_true_lines import LAST_TRUE_KINDS
from tests.verify.measure import ERRORS, TRUE, Result, generated, measure, recorded

LEAST_CAUGHT = 0.95
MOST_DROPPED = 0.03


@pytest.fixture(scope="module")
def result() -> Result:
    return measure(generated())


def told(result: Result) -> str:
    return "\n".join((*result.table(), *result.true.wrong, *result.planted.wrong))


def test_planted_errors_are_caught(result: Result) -> None:
    assert result.planted.share() >= LEAST_CAUGHT, told(result)


def test_true_lines_stay(result: Result) -> None:
    assert (
        result.true.share(kind for name, kinds in TRUE.items() if name not in ("fourth", "fifth") for kind in kinds)
        <= MOST_DROPPED
    ), told(result)


@pytest.mark.parametrize("kind", ["digit", "digits exchanged", "hash", "path", "negation", "who", "status"])
def test_each_of_the_gravest_kinds_is_caught(result: Result, kind: str) -> None:
    assert result.planted.lines[kind] >= 20
    assert result.planted.share([kind]) >= LEAST_CAUGHT, told(result)


def test_a_third_of_the_kinds_was_written_after_the_verifier() -> None:
    first = [kind for name, kinds in ERRORS.items() if name not in ("fourth", "fifth") for kind in kinds]
    later = [*ERRORS["fourth"], *ERRORS["fifth"]]
    assert set(first).isdisjoint(later)
    assert len(later) * 3 >= len(first) + len(later)
    assert len(LAST_TRUE_KINDS) * 3 >= sum(len(kinds) for kinds in TRUE.values())


def test_recorded_sessions_give_the_same_figures(real_sessions: Path) -> None:
    result = measure(recorded(real_sessions))
    assert result.planted.share() >= LEAST_CAUGHT, told(result)
    assert result.true.share() <= MOST_DROPPED, told(result)


# --- single promises -------------------------------------------------------------------------------------------------

TURNS: list[Message] = [
    {"role": "user", "content": "Raise the timeout in src/net/client.py to 30 seconds. Never push to main."},
    {
        "role": "assistant",
        "content": "I raise it and run the tests.",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "bash", "arguments": '{"command": "python -m pytest -q"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "2 failed, 40 passed in 12.50s\nexit_code: 1"},
    {"role": "assistant", "content": "Two tests in tests/test_client.py fail because the mock clock is not advanced."},
]


def kept(text: str, section: Section = Section.CRITICAL, sources: tuple[int, ...] = ()) -> bool:
    task = SummaryTask(list(enumerate(TURNS, 1)), None, 1_000)
    handoff = Handoff({section: (Line(text, sources, Origin.MODEL),)})
    return text in [line.text for line in verify(handoff, task)[0][section]]


@pytest.mark.parametrize(
    "text",
    [
        "The timeout in src/net/client.py is to become 30 s",
        "The timeout in net/client.py is to become 30 seconds",
        "Test run: 2 failed, 40 passed",
        "2 of 42 tests failed",
        "测试结果：40 通过，2 失败",
        "Ran `python -m pytest -q`, which failed",
        "Two tests in test_client.py fail because the mock clock is not advanced",
    ],
)
def test_what_was_said_may_be_said_again(text: str) -> None:
    assert kept(text)


@pytest.mark.parametrize(
    "text",
    [
        "The timeout in src/net/client.py is to become 60 s",
        "The timeout in src/net/server.py is to become 30 s",
        "Test run: 2 failed, 41 passed",
        "All 40 tests passed",
        "测试结果：40 失败，2 通过",
        "Ran `python -m pytest -q`, which succeeded",
        "`python -m pytest -q` is still to be run",
        "Two tests in tests/test_client.py fail because the mock clock is advanced",
        "The assistant asked never to push to main",
        'The user said: "push it to main when you are done"',
    ],
)
def test_what_was_not_said_goes(text: str) -> None:
    assert not kept(text)


def test_a_line_with_a_wrong_id_gets_the_right_one() -> None:
    task = SummaryTask(list(enumerate(TURNS, 1)), None, 1_000)
    line = Line("Test run: 2 failed, 40 passed", (1,), Origin.MODEL)
    checked, _ = verify(Handoff({Section.STATE: (line,)}), task)
    assert checked[Section.STATE][0].sources == (3,)


def test_what_only_a_tool_said_is_no_constraint() -> None:
    assert kept("Never push to main", Section.CONSTRAINTS, (1,))
    assert not kept("Two tests in tests/test_client.py fail", Section.CONSTRAINTS, (4,))
