"""Recall without being asked: the agent sees once what a message needs of the compacted part; nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leporello.agent.agent import Agent
from leporello.messages import text_of
from leporello.providers.scripted import ScriptedProvider

from .conftest import Bench, call

FACT = "The staging server listens on port 48443 since Tuesday."
QUESTION = "Which port does the staging server listen on?"


def compacted(bench: Bench, *script: Any) -> tuple[Agent, ScriptedProvider]:
    """A conversation whose fact stands only in the compacted part, and is not in the fold either."""
    provider = ScriptedProvider([*script], window=64_000)
    agent = bench.agent(provider)
    filler = "It is about ferns, mosses and the weather over the hills of that region. " * 12
    for n in range(60):
        said = FACT if n == 20 else f"Chapter {n}. {filler}"
        agent.conversation.append({"role": "user", "content": said}, {"role": "assistant", "content": f"Read {n}."})
    agent.conversation.compact()
    view = agent.conversation.runtime.log.view
    assert view.compactions == 1
    return agent, provider


def sent(provider: ScriptedProvider, number: int) -> list[Any]:
    return [json.loads(json.dumps(message)) for message in provider.requests[number].messages]


def test_what_a_message_needs_stands_behind_it_once(bench: Bench) -> None:
    """The first request of the turn has it behind the user's words, the next has not; nothing of it is stored."""
    (bench.workdir / "a.txt").write_text("x\n")
    agent, provider = compacted(bench, call("read_file", path="a.txt"), "It is 48443.")
    agent.turn(QUESTION)
    first, second = sent(provider, 0), sent(provider, 1)
    own, recalled = first[-1]["content"]
    assert own["text"] == QUESTION
    assert "48443" in recalled["text"]
    assert recalled["text"].startswith("<recalled>")
    assert second[: len(first) - 1] == first[:-1]
    assert text_of(second[len(first) - 1]) == QUESTION
    assert "<recalled>" not in json.dumps(second)
    stored = agent.conversation.runtime.log.store.log.iterate(agent.conversation.id)
    assert not any("<recalled>" in json.dumps(entry.message) for entry in stored)


def test_it_stays_within_its_share_of_the_window(bench: Bench) -> None:
    agent, provider = compacted(bench, "ok")
    agent.turn("What was said about ferns, mosses, weather and hills in chapter 7 and chapter 12?")
    recalled = sent(provider, 0)[-1]["content"]
    counter = agent.conversation.runtime.sizes.counter
    assert isinstance(recalled, str) or counter.text(recalled[-1]["text"]) <= 0.02 * 64_000


@pytest.mark.parametrize("text", ["ok", "Thanks, go on", "Sing me a song about zebras"])
def test_nothing_is_added_that_does_not_stand_out(bench: Bench, text: str) -> None:
    agent, provider = compacted(bench, "done")
    agent.turn(text)
    assert sent(provider, 0)[-1]["content"] == text


def test_it_can_be_switched_off_and_is_not_there_before_a_compaction(bench: Bench) -> None:
    plain = ScriptedProvider(["ok"], window=64_000)
    agent = bench.agent(plain, id="b")
    agent.conversation.append({"role": "user", "content": FACT}, {"role": "assistant", "content": "Noted."})
    agent.turn(QUESTION)
    assert sent(plain, 0)[-1]["content"] == QUESTION
    bench.flags["recall.unasked"] = False
    agent, provider = compacted(bench, "ok")
    agent.turn(QUESTION)
    assert sent(provider, 0)[-1]["content"] == QUESTION


def test_the_count_of_the_next_request_does_not_hold_it(bench: Bench) -> None:
    """What the provider counted of passing text is no part of what the conversation takes."""
    agent, _ = compacted(bench, "It is 48443.")
    agent.turn(QUESTION)
    sizes = agent.conversation.runtime.sizes
    assert sizes.ephemeral > 0
    assert agent.conversation.runtime.compactor.reading.tokens < sizes.last_prompt_tokens
