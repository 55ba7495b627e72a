"""Promise 10, no loops: three automatic attempts without a successful turn, then it waits; manual ones never count."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.agent.endpoints import Chosen
from leporello.agent.session import open_agent
from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.engines.compressor import ContextCompressor
from leporello.events import Outcome
from leporello.messages import Message
from leporello.policy.decision import Occasion
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, ErrorVerdict
from leporello.providers.scripted import ScriptedProvider
from leporello.store import open_store
from leporello.testing.sessions import SessionSpec, generate

FULL = 10**9
SHORT: list[Message] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


LONG = generate(SessionSpec(seed=111, messages=40, tokens=8_000, images=0)).messages
WINDOW = 4_000


@pytest.mark.fault(
    "attempts are not counted",
    "policy/decision.py",
    old="if state.attempts >= MOST_ATTEMPTS:",
    new="if False:",
)
@pytest.mark.fault(
    "manual attempts count",
    "policy/state.py",
    old="return state if trigger == MANUAL else replace(state, attempts=state.attempts + 1)",
    new="return replace(state, attempts=state.attempts + 1)",
)
@pytest.mark.fault(
    "a successful turn does not end the count",
    "policy/state.py",
    old="return replace(state, attempts=0)",
    new="return state",
)
@given(st.lists(st.sampled_from(("automatic", "automatic", "manual", "turn")), max_size=14), st.booleans())
def test_at_most_three_automatic_attempts_between_two_turns(events: list[str], useful: bool) -> None:
    """Events of a host that compresses whenever it is told to; `turn` is an answer of the model."""
    engine = ContextCompressor(WINDOW)
    attempts = 0
    for event in events:
        if event == "turn":
            engine.update_from_response({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11})
            attempts = 0
        elif event == "manual":
            engine.compress(LONG if useful else SHORT, force=True)
            assert engine.last_report is not None
            assert engine.last_report.trigger == "manual"
        elif engine.should_compress(FULL):
            engine.compress(LONG if useful else SHORT)
            attempts += 1
        assert attempts <= 3
        assert engine.should_compress(FULL) is (attempts < 3)


@given(st.integers(0, 6))
def test_a_manual_compaction_is_never_refused_for_attempts(before: int) -> None:
    engine = ContextCompressor(WINDOW)
    for _ in range(before):
        engine.compress(SHORT)
    engine.compress(LONG, force=True)
    assert engine.last_report is not None
    assert engine.last_report.committed


def test_a_reset_starts_afresh() -> None:
    engine = ContextCompressor(WINDOW)
    for _ in range(3):
        engine.compress(SHORT)
    assert not engine.should_compress(FULL)
    engine.on_session_reset()
    assert engine.should_compress(FULL)


@pytest.mark.fault(
    "attempts are counted by each process for itself",
    "conversation/compactor.py",
    old="store.state.add(log.id, ATTEMPTS_KEY)",
    new="pass",
)
def test_the_count_survives_a_restart(tmp_path: Path) -> None:
    """A process for each request, none of which is answered: three attempts, then none, but by hand always."""
    url = f"sqlite:///{tmp_path}/store.db"
    attempts = []
    for number in range(9):
        with Conversation.open("a", window=12_000, store=url) as conversation:
            # More each time, so that there is something to gain again.
            conversation.append(*(LONG if number == 0 else [{"role": "user", "content": "and this " * 2_000}]))
            conversation.runtime.compactor.when_due(Occasion.PREFLIGHT, "preflight")
            attempts.append(len(conversation.runtime.log.store.views.attempts("a")))
    assert attempts[-1] == 3
    with Conversation.open("a", window=12_000, store=url) as conversation:
        assert conversation.compact().committed


@pytest.mark.fault(
    "switched off counts for some occasions only",
    "policy/decision.py",
    old="if not situation.enabled:",
    new="if not situation.enabled and situation.occasion is Occasion.TURN:",
)
@pytest.mark.parametrize("occasion", [occasion for occasion in Occasion if occasion is not Occasion.MANUAL])
def test_switched_off_means_none_on_any_path(tmp_path: Path, occasion: Occasion) -> None:
    settings = load_settings({"compression.enabled": False}, {}, Home(tmp_path))
    with Conversation.open("a", window=4_000, store=f"sqlite:///{tmp_path}/s.db", settings=settings) as conversation:
        conversation.append(*LONG)
        assert not conversation.runtime.compactor.decide(occasion, FULL).compacts
        conversation.runtime.compactor.when_due(occasion, str(occasion))
        assert conversation.runtime.compactor.shrink("overflow 1").outcome is Outcome.BLOCKED
        assert conversation.runtime.log.store.views.attempts("a") == []
        assert conversation.compact().committed


@pytest.mark.fault(
    "the output cap is not halved",
    "conversation/recovery.py",
    old="(self.reserve if self.cap is None else self.cap) // 2",
    new="(self.reserve if self.cap is None else self.cap) - 1",
)
@pytest.mark.fault(
    "a refused output cap is lowered for ever",
    "conversation/recovery.py",
    old="cap = None if recovery.spent(recovery.lowered) else facts.output.lowered(verdict)",
    new="cap = facts.output.lowered(verdict)",
)
def test_a_refused_output_cap_is_halved_three_times_then_the_refusal_stands(tmp_path: Path) -> None:
    """An agent whose provider refuses every cap and never says which it would take."""
    refused = CallFailed(ErrorVerdict(ErrorKind.OUTPUT_CAP, message="max_tokens is too large"))
    provider = ScriptedProvider(lambda _: refused, window=64_000)
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        agent = open_agent(
            load_settings({}, {}, Home(tmp_path)), Chosen("gpt-4o", provider, "openai", "", 64_000), store=store
        )
        agent.max_output = 4_096
        with pytest.raises(CallFailed):
            agent.turn("Go.")
    assert [request.max_tokens for request in provider.requests] == [4_096, 2_048, 1_024, 512]
