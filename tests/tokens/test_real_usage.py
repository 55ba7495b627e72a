"""The meter and the counter against what real providers reported, on recorded sessions."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leporello.messages import Message
from leporello.tokens import PromptMeter, TokenCounter

Step = tuple[list[Message], int]
"""The messages of one request and the prompt tokens that the provider counted."""


def errors(model: str, steps: list[Step]) -> list[float]:
    """Relative error of each reading after the first real usage."""
    meter = PromptMeter(TokenCounter.for_model(model))
    found = []
    for position, (messages, real) in enumerate(steps):
        if position:
            found.append(abs(meter.read(messages).tokens / real - 1))
        meter.sent(messages)
        meter.observe(real)
    return found


def test_deepseek_readings_are_exact_to_a_token(real_sessions: Path) -> None:
    """With the model's own vocabulary, a reading of a long session is off by less than a tenth of a per cent."""
    files = sorted((real_sessions / "openai-chat").glob("*.traj.json"))
    assert files
    for path in files:
        messages = json.loads(path.read_text())["messages"]
        steps = [(messages[:index], real) for index, real in _trajectory(messages)]
        found = errors("deepseek/deepseek-chat", steps)
        assert statistics.median(found) < 0.001
        assert max(found) < 0.10
        assert max(found[10:]) < 0.01


def _trajectory(messages: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    for index, message in enumerate(messages):
        extra = message.get("extra")
        response = extra.get("response") if isinstance(extra, dict) else None
        if isinstance(response, dict):
            yield index, response["usage"]["prompt_tokens"]


@pytest.mark.parametrize(
    ("file", "model", "median"),
    [("tau2-telecom-gpt41.json", "gpt-4.1", 0.001), ("tau2-airline-sonnet45.json", "claude-sonnet-4-5", 0.02)],
)
def test_hidden_system_prompts_and_thinking_are_coped_with(
    real_sessions: Path, file: str, model: str, median: float
) -> None:
    """6,000 tokens of policy and tools are not in these files; after one usage no reading is off by more than 10%."""
    dialogues = [_dialogue(one) for one in json.loads((real_sessions / "openai-chat" / file).read_text())]
    found = [error for steps in dialogues for error in errors(model, steps)]
    assert len(found) > 50
    assert statistics.median(found) < median
    assert max(found) <= 0.101


def _dialogue(simulation: dict[str, Any]) -> list[Step]:
    shown = [m for m in simulation["messages"] if not _is_users_own_tool(m)]
    converted = [_as_message(m) for m in shown]
    return [
        (converted[:index], m["usage"]["prompt_tokens"])
        for index, m in enumerate(shown)
        if m["role"] == "assistant" and m.get("usage")
    ]


def _is_users_own_tool(message: dict[str, Any]) -> bool:
    """The simulated user has tools too; the agent never sees them."""
    if message["role"] == "tool":
        return message.get("requestor") == "user"
    return message["role"] == "user" and bool(message.get("tool_calls"))


def _as_message(message: dict[str, Any]) -> Message:
    converted: Message = {"role": message["role"], "content": message.get("content")}
    if message.get("tool_calls"):
        converted["tool_calls"] = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
            for call in message["tool_calls"]
        ]
    if message["role"] == "tool":
        converted["tool_call_id"] = message["id"]
    return converted
