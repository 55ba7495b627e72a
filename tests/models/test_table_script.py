"""The script that makes the table, on a small made-up source."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leporello.models.facts import table

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_models_table.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_models_table", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model(provider: str, window: int = 100_000, price: float = 1e-6, **more: Any) -> dict[str, Any]:
    return {
        "mode": "chat",
        "litellm_provider": provider,
        "max_input_tokens": window,
        "max_output_tokens": 8_000,
        "input_cost_per_token": price,
        "output_cost_per_token": price * 4,
        **more,
    }


def test_a_model_is_listed_once_and_a_provider_only_where_it_differs(script: ModuleType) -> None:
    """Equal rows of hosts, dates and regions fall together."""
    source = {
        "claude-x-1": model("anthropic"),
        "claude-x-1-20260101": model("anthropic"),
        "vertex_ai/claude-x-1@default": model("vertex_ai-anthropic_models"),
        "us.anthropic.claude-x-1": model("bedrock_converse", price=1.1e-6),
        "github_copilot/claude-x-1": model("github_copilot", window=64_000),
    }
    rows, _ = script.build(source, {})
    assert set(rows) == {"claude-x-1", "bedrock.us/claude-x-1", "github_copilot/claude-x-1"}


def test_a_split_window_is_joined_where_the_second_source_confirms_it(script: ModuleType) -> None:
    """And then for every model of that vendor with the same pair of sizes, but not for others."""
    source = {
        "gpt-5": model("openai", window=92_000),
        "azure/gpt-5-next": model("azure", window=92_000),
        "gemini/gemini-x": model("gemini", window=92_000),
    }
    rows, _ = script.build(source, {"openai/gpt-5": {"window": 100_000, "input": 1.0, "output": 4.0, "read": None}})
    assert (rows["gpt-5"]["window"], rows["gpt-5"]["max_input"]) == (100_000, 92_000)
    assert rows["gpt-5-next"]["window"] == 100_000
    assert rows["gemini-x"]["window"] == 92_000


def test_disagreements_are_printed(script: ModuleType) -> None:
    """A wrong price in one source is seen by whoever makes the table."""
    opinion = {"openai/gpt-5": {"window": 100_000, "input": 2.0, "output": 4.0, "read": None}}
    _, remarks = script.build({"gpt-5": model("openai")}, opinion)
    assert len(remarks) == 1
    assert "gpt-5" in remarks[0]
    assert "input" in remarks[0]


def test_steps_and_tiers_become_one_form(script: ModuleType) -> None:
    """Both spellings of the source; a step beyond the window is dropped."""
    stepped = model("openai", window=400_000, input_cost_per_token_above_272k_tokens=2e-6)
    stepped |= {"output_cost_per_token_above_272k_tokens": 6e-6, "cache_read_input_token_cost": 1e-7}
    tiered = {
        "mode": "chat", "litellm_provider": "dashscope", "max_input_tokens": 200_000,
        "tiered_pricing": [
            {"range": [0, 32_000.0], "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
            {"range": [32_000.0, 256_000.0], "input_cost_per_token": 3e-6, "output_cost_per_token": 4e-6},
            {"range": [256_000.0, 1e6], "input_cost_per_token": 5e-6, "output_cost_per_token": 6e-6},
        ],
    }  # fmt: skip
    rows, _ = script.build({"gpt-5": stepped, "dashscope/qwen-x": tiered}, {})
    assert rows["gpt-5"]["prices"] == [1.0, 4.0, 0.1]
    assert rows["gpt-5"]["steps"] == [[272_000, [2.0, 6.0]]]
    assert rows["qwen-x"]["prices"] == [1.0, 2.0]
    assert rows["qwen-x"]["steps"] == [[32_000, [3.0, 4.0]]]


def test_open_weights_have_no_price_of_their_own(script: ModuleType) -> None:
    """Each host has its own; the window is what at least half of them serve."""
    source = {
        "deepinfra/llama-9": model("deepinfra", window=32_000),
        "together_ai/llama-9": model("together_ai", window=64_000),
        "fireworks_ai/llama-9": model("fireworks_ai", window=128_000),
    }
    rows, _ = script.build(source, {})
    assert rows["llama-9"]["window"] == 64_000
    assert "prices" not in rows["llama-9"]
    assert rows["deepinfra/llama-9"]["prices"] == [1.0, 4.0]


def test_the_written_table_reads_back(script: ModuleType) -> None:
    """One row per line, sorted: a change can be reviewed."""
    rows, _ = script.build({"b": model("openai"), "a": model("anthropic")}, {})
    text = script.render(rows, "2026-01-02", "1.2.3")
    assert json.loads(text) == {
        "as_of": "2026-01-02", "source": "litellm 1.2.3, checked with genai-prices", "models": rows
    }  # fmt: skip
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    assert len(lines) == 2
    assert lines == sorted(lines)


def test_the_shipped_table_has_a_date_and_enough_models() -> None:
    """A build that lost its data would be noticed here."""
    shipped = table()
    assert shipped.as_of >= "2026-11-01"
    assert len(shipped.rows) > 1_500
