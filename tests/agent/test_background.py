"""A summary that takes its time is waited for beside the conversation, not in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from leporello.agent.agent import Agent
from leporello.agent.events import AgentEvent, Compacted
from leporello.summaries.base import Summary, SummaryTask
from tests.agent.conftest import Bench

WINDOW = 16_000
LONG = "The harbour office counts barges and cranes every morning before the first tide. " * 40


@dataclass
class SlowSummariser:
    """Writes nothing, and only when it is let go."""

    begun: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    tasks: list[SummaryTask] = field(default_factory=list)

    def summarise(self, task: SummaryTask) -> Summary:
        self.tasks.append(task)
        self.begun.set()
        assert self.let_go.wait(60)
        return Summary(None)


@pytest.fixture
def slow(bench: Bench) -> Iterator[SlowSummariser]:
    made = SlowSummariser()
    bench.background = True
    bench.summariser = made
    yield made
    made.let_go.set()


def over_the_threshold(agent: Agent) -> None:
    for number in range(14):
        agent.conversation.append(
            {"role": "user", "content": f"{number} {LONG}"}, {"role": "assistant", "content": "ok"}
        )


def test_the_turn_goes_on_while_a_summary_is_written(bench: Bench, slow: SlowSummariser) -> None:
    """The request that made it due goes out as it is; the next one after the commit shows the fold, and it is told."""
    agent = bench.agent(["one", "two", "three"], window=WINDOW)
    events: list[AgentEvent] = []
    over_the_threshold(agent)
    assert agent.turn("go on", events.append).text == "one"
    assert slow.begun.wait(60)
    assert agent.turn("and on", events.append).text == "two"
    assert agent.conversation.runtime.log.compactions == 0
    assert len(slow.tasks) == 1, "one compaction of a generation is enough"
    slow.let_go.set()
    agent.beside.join()
    assert agent.turn("to the end", events.append).text == "three"
    assert agent.conversation.runtime.log.compactions == 1
    assert [event.event.report.committed for event in events if isinstance(event, Compacted)] == [True]
    said = [message["content"] for message in agent.conversation.messages if message["role"] == "user"]
    assert "to the end" in said[-1]


def test_a_compaction_by_hand_waits_for_the_one_that_is_under_way(bench: Bench, slow: SlowSummariser) -> None:
    agent = bench.agent(["one"], window=WINDOW)
    over_the_threshold(agent)
    agent.turn("go on")
    assert slow.begun.wait(60)
    threading.Timer(0.5, slow.let_go.set).start()
    report = agent.conversation.compact()
    assert report.committed
    assert agent.conversation.runtime.log.compactions == 1


def test_the_end_of_the_program_cancels_it(bench: Bench, slow: SlowSummariser) -> None:
    agent = bench.agent(["one"], window=WINDOW)
    over_the_threshold(agent)
    agent.turn("go on")
    assert slow.begun.wait(60)
    agent.conversation.close()
    slow.let_go.set()
    agent.beside.join()
    assert bench.store.conversations.resolve("a").generation == 0
