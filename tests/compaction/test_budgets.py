"""How large a fold may be and what a summary model is asked for, by numbers; and what a compaction is judged by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leporello.compaction.pipeline import CompactionTask, compact, fold_budget
from leporello.compaction.plan import Protection, make_plan
from leporello.compaction.view import number_messages
from leporello.events import Outcome
from leporello.ledger.ledger import Ledger
from leporello.messages import Message
from leporello.models import Limits
from leporello.summaries.base import Summary, SummaryTask
from leporello.tokens import TokenCounter

LIMITS = replace(
    Limits.for_window(100_000),
    hard_tokens=90_000,
    aim_tokens=10_000,
    tail_tokens=500,
    summary_floor=1,
    summary_ceiling=5_000,
)


def talk(count: int, tokens: int, role: str = "") -> list[Message]:
    """Messages that are measured at so many tokens each."""
    roles = (role, role) if role else ("user", "assistant")
    return [{"role": roles[k % 2], "content": f"{k} said", "tokens": tokens} for k in range(count)]


class Asked:
    """A summary model that only notes what it is asked."""

    def __init__(self) -> None:
        self.tasks: list[SummaryTask] = []

    def summarise(self, task: SummaryTask) -> Summary:
        self.tasks.append(task)
        return Summary(None)


def job(messages: list[Message], asked: Asked | None = None, **changes: Any) -> CompactionTask:
    limits = replace(LIMITS, **{name: value for name, value in changes.items() if hasattr(LIMITS, name)})
    return CompactionTask(
        number_messages(messages),
        limits,
        TokenCounter.for_model(None),
        lambda message: int(message.get("tokens", 40)),
        Ledger(),
        protection=Protection(2, 10),  # a talk keeps two fifths of them: four
        summariser=asked,
        **{name: value for name, value in changes.items() if not hasattr(LIMITS, name)},
    )


def budget(task: CompactionTask) -> int:
    return fold_budget(task, make_plan(task.items, task.measure, task.limits, task.protection))


@pytest.mark.parametrize(
    ("count", "limits", "tokens"),
    [
        # Half of what is folded: 40 messages of 100 tokens between 2 of the head and 4 of the tail.
        (46, {}, 2_000),
        # What the aim leaves: 95% of it, less head (200), tail (400) and frame (220).
        (400, {}, 9_500 - 200 - 400 - 220),
        # Never less than 7.5% of the window, or than the ceiling of a summary.
        (400, {"aim_tokens": 2_000}, 7_500),
        (400, {"aim_tokens": 2_000, "summary_ceiling": 8_000}, 8_000),
        # Never more than 32,000.
        (2_000, {"aim_tokens": 60_000}, 32_000),
    ],
)
def test_the_budget_of_a_fold(count: int, limits: dict[str, int], tokens: int) -> None:
    assert budget(job(talk(count, 100), **limits)) == tokens


def test_an_instruction_of_the_head_is_not_counted_against_it() -> None:
    system = talk(1, 3_000, "system")
    assert budget(job([*system, *talk(400, 100)])) == 9_500 - 200 - 400 - 220


@pytest.mark.parametrize(
    ("limits", "tokens"),
    [
        ({}, 820),  # a fifth of the 4,100 tokens that are folded
        ({"summary_ceiling": 500}, 500),
        ({"summary_floor": 900}, 900),
        ({"summary_floor": 3_000}, 1_025),  # half of the fold's 2,050
    ],
)
def test_what_a_summary_model_may_write(limits: dict[str, int], tokens: int) -> None:
    asked = Asked()
    compact(job(talk(46, 100), asked, focus="the cache", **limits))
    (task,) = asked.tasks
    assert (task.budget, task.focus, task.previous) == (tokens, "the cache", None)
    # Of the head only the first stays: no role would be left for the fold otherwise.
    assert [number for number, _ in task.messages] == list(range(2, 43))


def test_a_list_that_still_does_not_fit_is_folded_tighter_without_asking_again() -> None:
    """Four messages of the tail take more than the window leaves; the model was asked once."""
    asked = Asked()
    messages = [*talk(40, 100), *talk(6, 8_000)]
    done = compact(job(messages, asked, hard_tokens=12_000, window=50_000, tail_tokens=40_000))
    assert len(asked.tasks) == 1
    assert done.report.committed
    assert len(done.messages) < 6


@pytest.mark.parametrize(
    ("system", "outcome"), [(0, Outcome.COMMITTED), (99_390, Outcome.BLOCKED), (100_001, Outcome.BLOCKED)]
)
def test_what_would_not_fit_the_window_is_not_committed(system: int, outcome: Outcome) -> None:
    messages = [*talk(400, 100), {"role": "user", "content": "now", "tokens": 600}]
    done = compact(job(messages, system_tokens=system))
    assert done.report.outcome is outcome
    if outcome is Outcome.BLOCKED:
        assert done.messages == messages
        assert sum(done.report.details["parts"].values()) > 100_000


def test_nothing_between_first_and_newest_is_nothing_to_do() -> None:
    done = compact(job(talk(2, 100)))
    assert done.report.outcome is Outcome.NOTHING_TO_DO
    assert "nothing between them" in done.report.reason
    assert (done.report.tokens_before, done.report.tokens_after) == (200, 200)
