"""Promise 10, no loops: three automatic attempts without a successful turn, then it waits; manual ones never count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.engines.compressor import ContextCompressor
from leporello.messages import Message
from leporello.policy import MOST_ATTEMPTS
from leporello.testing.sessions import SessionSpec, generate

FULL = 10**9
SHORT: list[Message] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


LONG = generate(SessionSpec(seed=111, messages=40, tokens=8_000, images=0)).messages
WINDOW = 4_000


@pytest.mark.fault(
    "attempts are not counted",
    "policy.py",
    old="if state.attempts >= MOST_ATTEMPTS:",
    new="if False:",
)
@pytest.mark.fault(
    "manual attempts count",
    "policy.py",
    old="return state if trigger == MANUAL else replace(state, attempts=state.attempts + 1)",
    new="return replace(state, attempts=state.attempts + 1)",
)
@pytest.mark.fault(
    "a successful turn does not end the count",
    "policy.py",
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
        assert attempts <= MOST_ATTEMPTS
        assert engine.should_compress(FULL) is (attempts < MOST_ATTEMPTS)


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
    for _ in range(MOST_ATTEMPTS):
        engine.compress(SHORT)
    assert not engine.should_compress(FULL)
    engine.on_session_reset()
    assert engine.should_compress(FULL)
