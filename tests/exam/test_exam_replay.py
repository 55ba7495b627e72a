"""How a session is fed to an engine: as a host would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.bench.bank import json_tokens, texts_of
from leporello.bench.baselines import BASELINES, CLEARED, KEPT_RESULTS, SIZED
from leporello.bench.exam import replay
from leporello.bench.run import make_engine
from leporello.engines.base import ContextEngine
from leporello.messages import Message
from leporello.models import Limits
from leporello.turns import validate
from tests.support.checks import cut_points
from tests.support.strategies import conversations

from .sample import group, session


class Watcher(ContextEngine):
    """Keeps the last message only, and remembers all that it was told."""

    name = "watcher"

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self.started: list[str] = []
        self.sizes: list[int] = []
        self.compressed: list[tuple[list[Message], int | None, bool]] = []
        self.observed: list[Message] = []

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        self.started.append(session_id)

    def update_from_response(self, usage: dict[str, Any]) -> None:
        self.sizes.append(usage["prompt_tokens"])

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        assert prompt_tokens == self.sizes[-1]
        return prompt_tokens >= self.threshold_tokens

    def observe(self, message: Message) -> None:
        self.observed.append(message)

    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
    ) -> list[Message]:
        self.compressed.append((messages, current_tokens, force))
        return [{"role": "user", "content": f"summary {len(self.compressed)}"}]


def test_compaction_comes_with_growth_and_once_at_the_end() -> None:
    """At the threshold, after whole groups; then the short list goes on growing; the last one is forced."""
    engine = Watcher(1_000)
    result = replay(session(), engine)
    assert engine.started == ["exam"]
    assert len(engine.compressed) == result.compactions > 2
    assert [force for *_, force in engine.compressed] == [False] * (result.compactions - 1) + [True]
    assert result.messages == [{"role": "user", "content": f"summary {result.compactions}"}]
    for number, (messages, size, _) in enumerate(engine.compressed):
        assert len(messages) in cut_points(messages)
        assert size is not None
        assert abs(size - json_tokens(messages)) <= len(messages) + 2
        if number:
            assert messages[0] == {"role": "user", "content": f"summary {number}"}


def test_every_message_is_handed_over_once_and_in_order() -> None:
    """An engine that takes messages in as they come sees the whole session."""
    engine = Watcher(1_000)
    replay(session(), engine)
    assert engine.observed == session()


@given(conversations())
def test_nothing_is_lost_on_the_way(messages: list[Message]) -> None:
    """What the engine is given is, summaries aside, exactly what the session holds."""
    engine = Watcher(2_000)
    replay(messages, engine)
    fed = [message for given, *_ in engine.compressed for message in given]
    summaries = [{"role": "user", "content": f"summary {n}"} for n in range(1, len(engine.compressed))]
    assert [message for message in fed if message not in summaries] == messages


def test_engines_without_the_newer_arguments_work_too() -> None:
    """A plugin's `compress` need not know `force`, nor have `observe`."""
    final = replay(session(), BASELINES["clear-tools"](1_000)).messages
    assert len(final) == len(session())


@given(st.integers(0, 25))
def test_clear_tools_keeps_the_last_ten_results(count: int) -> None:
    """The baseline blanks older results, keeps the rest, and stays valid."""
    messages: list[Message] = [{"role": "user", "content": "go"}]
    for number in range(count):
        messages += group(str(number), "x", "ls", f"out {number}")
    final = BASELINES["clear-tools"](100).compress(messages)
    outputs = [message["content"] for message in final if message["role"] == "tool"]
    assert outputs[-KEPT_RESULTS:] == [f"out {number}" for number in range(count)][-KEPT_RESULTS:]
    assert set(outputs[:-KEPT_RESULTS]) <= {CLEARED}
    assert validate(final) == []


@pytest.mark.parametrize("name", SIZED)
def test_sized_baselines_aim_at_what_the_compressor_aims_at(name: str) -> None:
    """They keep no more tokens than our engine may, and use most of them."""
    messages: list[Message] = [{"role": "user", "content": "go"}]
    for number in range(40):
        messages += group(
            str(number), f"Step {number}. It is done.", f"make part-{number}", f"part {number} built\n" * 9
        )
    aim = Limits.for_window(4_000).aim_tokens
    kept = json_tokens(replay(messages, make_engine(name, 4_000)).messages)
    assert 0.8 * aim <= kept <= aim


def test_what_the_sized_baselines_keep() -> None:
    """The newest, both ends, the beginning, and sentences with rare words."""
    messages: list[Message] = [
        {"role": "user", "content": "Alpha begins here. The same words again and again. Omega ends it."},
        *({"role": "user", "content": f"The same words again and again. {'Again. ' * 20}"} for _ in range(30)),
        {"role": "user", "content": "Newest of all."},
    ]

    def kept(name: str) -> str:
        return "\n".join(texts_of(SIZED[name](messages, 300)))

    assert "Newest of all." in kept("newest")
    assert "Alpha" not in kept("newest")
    assert kept("first-chars").startswith("Alpha begins")
    assert "Omega" not in kept("first-chars")
    assert "ends it." in kept("cut-alike")
    assert "m1: Alpha begins here. " in kept("idf-sentences")
    assert "Omega ends it." in kept("idf-sentences")
    assert "Newest of all." in kept("idf-sentences")
