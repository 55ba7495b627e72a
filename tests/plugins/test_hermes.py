"""Our engines inside a real Hermes installation, through its own loader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leporello.messages import encode_json
from leporello.testing.sessions import generate
from leporello.turns import validate
from tests.conftest import RunCli
from tests.plugins.environments import environment, run

HERMES = "hermes-agent==0.19.0"
DRIVER = Path(__file__).with_name("hermes_driver.py")


@pytest.mark.parametrize("name", ["leporello", "leporello-lcm"])
def test_hermes_finds_selects_and_uses_our_engine(name: str, tmp_path: Path, run_cli: RunCli) -> None:
    python = environment("hermes", HERMES)
    home = tmp_path / "hermes"
    ran = run_cli("plugins", "install", "--host", "hermes", "--home", home)
    assert ran.code == 0, ran.err
    (home / "config.yaml").write_text(f"plugins:\n  enabled: [leporello]\ncontext:\n  engine: {name}\n")
    secret = {"role": "user", "content": "Remember the blue heron password policy: rotate on Tuesdays."}
    messages = [secret, {"role": "assistant", "content": "Noted."}]
    messages += generate(seed=8, messages=160, tokens=24_000, huge_outputs=0).messages
    session = tmp_path / "session.json"
    session.write_bytes(encode_json(messages))
    seen = json.loads(run(python, DRIVER, session, home=home).splitlines()[-1])
    assert seen["found"] == seen["selected"] == name
    assert seen["separate"], "two agents share an engine"
    tools = ["lcm_describe", "lcm_expand", "lcm_grep", "lcm_status"]
    assert seen["tools"] == seen["offered"] == tools
    assert seen["window"] > 24_000
    assert seen["threshold"] == 12_000
    assert seen["due"] is True
    assert seen["after"] < seen["before"]
    assert seen["count"] == 1
    assert validate(seen["messages"]) == []
    newest = next(message for message in reversed(messages) if message["role"] == "user")
    assert newest in seen["messages"]
    assert "rotate on Tuesdays" in json.dumps(seen["grep"])
    assert "error" not in seen["expand"]
    assert seen["expand"]["messages"]
    assert seen["unknown"]["error"]
    assert seen["reset"] == [0, 0, 0]
