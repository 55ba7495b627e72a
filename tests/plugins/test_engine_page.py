"""docs/explanation/engines.md shows an engine that is complete, short, keeps every promise and works."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from leporello.events import Outcome
from leporello.testing.sessions import generate
from leporello.turns import validate
from tests.conftest import RunCli
from tests.plugins.conftest import House, play

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "engines.md"
CODE = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]


def test_it_is_forty_lines() -> None:
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 40


def test_it_is_examined_chosen_and_used(house: House, run_cli: RunCli) -> None:
    house.write("recent", CODE)
    home = ("--home", house.home.path)
    ran = run_cli(*home, "plugins", "doctor", "recent")
    assert ran.code == 0, ran.out
    assert run_cli(*home, "plugins", "use", "recent").code == 0
    assert yaml.safe_load(house.home.config_file.read_text()) == {"context": {"engine": "recent"}}
    conversation = house.talk(window=8_000)
    assert conversation.runtime.plugins.engine.name == "recent"
    session = generate(seed=5, messages=140, tokens=16_000, huge_outputs=0).messages
    play(conversation, session)
    reports = [attempt.report for attempt in conversation.runtime.log.store.views.attempts("a")]
    committed = [report for report in reports if report.outcome is Outcome.COMMITTED]
    assert len(committed) >= 2
    assert all(report.engine == "recent" and not report.warnings for report in committed)
    assert conversation.runtime.plugins.troubles == []
    assert validate(conversation.messages) == []
    asked = next(message for message in session if message["role"] == "user")
    assert f"- {asked['content'][:40]}" in str(conversation.messages)
