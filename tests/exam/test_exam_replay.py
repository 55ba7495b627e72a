"""How a session is fed to an engine: as a host would."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leporello.bench.bank import json_tokens
from leporello.bench.baselines import CLEARED, KEPT_RESULTS, ClearToolsEngine
from leporello.bench.exam import replay
from leporello.engines.base import ContextEngine
from leporello.messages import Message
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
    final = replay(session(), ClearToolsEngine(1_000)).messages
    assert len(final) == len(session())


@given(st.integers(0, 25))
def test_clear_tools_keeps_the_last_ten_results(count: int) -> None:
    """The baseline blanks older results, keeps the rest, and stays valid."""
    messages: list[Message] = [{"role": "user", "content": "go"}]
    for number in range(count):
        messages += group(str(number), "x", "ls", f"out {number}")
    final = ClearToolsEngine(100).compress(messages)
    outputs = [message["content"] for message in final if message["role"] == "tool"]
    assert outputs[-KEPT_RESULTS:] == [f"out {number}" for number in range(count)][-KEPT_RESULTS:]
    assert set(outputs[:-KEPT_RESULTS]) <= {CLEARED}
    assert validate(final) == []
