"""A summary by the conversation's own model begins with what that model has in its cache."""

from __future__ import annotations

from leporello.agent.agent import Agent
from leporello.caching import without_marks
from leporello.providers.base import ModelRequest
from leporello.providers.scripted import ScriptedProvider
from tests.agent.conftest import Bench, call

WINDOW = 32_000
LONG = "The harbour office counts barges and cranes every morning before the first tide. " * 40
HANDOFF = """## Active Task
None.

## Goal
Keep the harbour office informed about barges.

## Critical Context
- The harbour office counts barges and cranes every morning before the first tide.
"""


def texts(request: ModelRequest) -> list[str]:
    return [str(message) for message in without_marks(request.messages)]


def fill(agent: Agent) -> None:
    for number in range(22):
        said = {"role": "user", "content": f"{number} {LONG}"}
        agent.conversation.append(said, {"role": "assistant", "content": "noted"})


def test_a_warm_conversation_is_summarised_from_the_cache(bench: Bench) -> None:
    """The request before it is its beginning, word for word, with the same tools: it is read, not sent anew."""
    provider = ScriptedProvider(["one", HANDOFF, "two"], window=WINDOW)
    agent = bench.agent(provider, window=WINDOW, model="claude-sonnet-5", summaries=True)
    agent.turn("Begin.")
    fill(agent)
    assert agent.turn("Go on.").text == "two"
    first, summary, second = provider.requests
    assert texts(summary)[: len(first.messages)] == texts(first)
    assert list(summary.tools) == list(first.tools)
    assert "handoff" in str(summary.messages[-1]["content"])
    assert len(second.messages) < len(summary.messages)
    assert agent.conversation.runtime.log.compactions == 1


def test_another_models_summary_is_asked_for_in_the_usual_way(bench: Bench) -> None:
    """A cold cache, too: then the clipped transcript is shorter than the conversation."""
    provider = ScriptedProvider([HANDOFF, "one"], window=WINDOW)
    agent = bench.agent(provider, window=WINDOW, model="claude-sonnet-5", summaries=True)
    fill(agent)
    assert agent.turn("Go on.").text == "one"
    summary, _ = provider.requests
    assert len(summary.messages) == 1
    assert "<turns>" in str(summary.messages[0]["content"])


def test_a_call_instead_of_a_handoff_is_asked_again_in_the_usual_way(bench: Bench) -> None:
    wanted = call("read_file", path="a.txt")
    provider = ScriptedProvider(["one", wanted, HANDOFF, "two"], window=WINDOW)
    agent = bench.agent(provider, window=WINDOW, model="claude-sonnet-5", summaries=True)
    agent.turn("Begin.")
    fill(agent)
    assert agent.turn("Go on.").text == "two"
    assert "<turns>" in str(provider.requests[2].messages[0]["content"])
