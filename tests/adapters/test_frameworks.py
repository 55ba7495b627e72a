"""Each adapter inside the real framework, through its own example: forty long turns in a window of 16,000 tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leporello.tokens import TokenCounter
from tests.plugins.environments import ROOT, environment, run

FRAMEWORKS = ("langchain>=1.0", "openai-agents>=0.4", "pydantic-ai-slim>=1.0")
WINDOW = 16_000


def example(name: str, home: Path) -> dict[str, Any]:
    """What an example prints; without its framework the test is skipped."""
    python = environment("frameworks", *FRAMEWORKS)
    home.mkdir(exist_ok=True)
    return json.loads(run(python, ROOT / "examples" / name, home=home).splitlines()[-1])


def size(value: Any) -> int:
    return TokenCounter.for_model("gpt-4o").text(json.dumps(value))


def test_langchain_sees_a_folded_view_and_its_state_keeps_everything(tmp_path: Path) -> None:
    seen = example("langchain_agent.py", tmp_path / "home")
    assert seen["kept"] == 42 * 4
    assert seen["most_sent"] < seen["kept"] / 2
    assert size(seen["last_sent"]) < WINDOW
    assert any("<leporello-fold id=" in str(message["content"]) for message in seen["last_sent"])
    assert "heliotrope" in seen["answer"], "the recall tool reads the state"
    assert seen["stable"] >= seen["calls"] * 0.9, "between two folds each request begins with the one before it"


def test_an_agents_session_folds_resumes_and_gives_items_back(tmp_path: Path) -> None:
    seen = example("openai_agents_session.py", tmp_path / "home")
    assert seen["kept"] >= 41 * 4
    assert seen["most_sent"] < seen["kept"] / 2
    assert size(seen["last_sent"]) < WINDOW
    assert "heliotrope" in seen["answer"]
    assert seen["popped"] is True
    assert seen["limited"] is True
    assert seen["cleared"] == []


def test_a_pydantic_ai_history_is_folded_and_what_stays_is_untouched(tmp_path: Path) -> None:
    seen = example("pydantic_ai_history.py", tmp_path / "home")
    assert seen["most_sent"] < 80
    assert size([message["parts"] for message in seen["last_sent"]]) < WINDOW * 1.2
    assert "Never open the main valve" in json.dumps(seen["last_sent"])
    assert "leporello-fold" in json.dumps(seen["last_sent"])
    assert seen["same_objects"] >= 4
    assert seen["answer"].startswith("Done: Page 2")
    calls = [part["tool_call_id"] for m in seen["last_sent"] for part in m["parts"] if part["part_kind"] == "tool-call"]
    returns = [p["tool_call_id"] for m in seen["last_sent"] for p in m["parts"] if p["part_kind"] == "tool-return"]
    assert calls == returns
