"""What every engine has that says nothing else: counters, threshold, status, and no tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leporello.engines.base import ContextEngine
from leporello.messages import Message


class Plain(ContextEngine):
    """An engine with nothing of its own."""

    name = "plain"

    def update_from_response(self, usage: dict[str, Any]) -> None:
        self.last_prompt_tokens = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return False

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        return messages


def test_a_new_engine_begins_at_zero_and_with_the_usual_numbers() -> None:
    engine = Plain()
    assert engine.get_status() == {
        "last_prompt_tokens": 0,
        "threshold_tokens": 0,
        "context_length": 0,
        "usage_percent": 0.0,
        "compression_count": 0,
    }
    assert (engine.last_completion_tokens, engine.last_total_tokens) == (0, 0)
    assert (engine.threshold_percent, engine.protect_first_n, engine.protect_last_n) == (0.5, 3, 20)


@pytest.mark.parametrize(("tokens", "percent"), [(0, 0.0), (2_500, 25.0), (10_000, 100.0), (12_000, 100.0)])
def test_the_status_of_a_window(tokens: int, percent: float) -> None:
    engine = Plain(10_000)
    engine.update_from_response({"prompt_tokens": tokens})
    status = engine.get_status()
    assert (status["threshold_tokens"], status["context_length"], status["usage_percent"]) == (5_000, 10_000, percent)
    engine.update_model("another", 4_001)
    assert (engine.threshold_tokens, engine.context_length) == (2_000, 4_001)


def test_a_reset_takes_every_counter_back() -> None:
    engine = Plain(10_000)
    engine.last_prompt_tokens = engine.last_completion_tokens = engine.last_total_tokens = engine.compression_count = 9
    engine.on_session_reset()
    assert engine.get_status()["last_prompt_tokens"] == 0
    assert (engine.last_completion_tokens, engine.last_total_tokens, engine.compression_count) == (0, 0, 0)
    assert engine.context_length == 10_000


def test_it_offers_no_tools_and_looks_at_nothing_beforehand() -> None:
    engine = Plain(10_000)
    assert engine.get_tool_schemas() == []
    assert json.loads(engine.handle_tool_call("x", {})) == {"error": "Unknown context engine tool: x"}
    assert engine.should_compress_preflight([]) is False
    assert engine.has_content_to_compress([]) is True
