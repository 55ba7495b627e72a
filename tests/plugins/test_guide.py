"""What the guide shows works as it is typed: its engine keeps every promise, its tool is called."""

from __future__ import annotations

import json
import re
from pathlib import Path

from leporello.agent.commands import plugin_commands, run_command
from leporello.agent.endpoints import Chosen
from leporello.agent.session import open_agent
from leporello.providers.scripted import ScriptedProvider
from leporello.store import open_store
from leporello.testing.sessions import generate
from tests.agent.conftest import call
from tests.conftest import RunCli
from tests.plugins.conftest import House

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "plugins.md").read_text(encoding="utf-8")
ENGINE, DERIVED, TOOL = re.findall(r"^```py(?:thon)?\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_engine_keeps_every_promise_and_compacts(house: House, run_cli: RunCli) -> None:
    house.write("recent", ENGINE)
    told = json.loads(run_cli("--home", house.home.path, "plugins", "doctor", "recent", "--json").out)
    assert told["broken"] == 0
    assert f"keeps all {len(told['promises'])} promises" in GUIDE
    conversation = house.talk(context__engine="recent", window=8_000)
    conversation.append(*generate(seed=3, messages=120, tokens=20_000, huge_outputs=0).messages)
    report = conversation.compact()
    assert (report.engine, report.warnings) == ("recent", ())


def test_the_derived_engine_compacts_from_its_own_threshold_on(house: House) -> None:
    house.write("early", DERIVED)
    conversation = house.talk(context__engine="early", window=8_000)
    conversation.append(*generate(seed=3, messages=40, tokens=6_000, huge_outputs=0).messages)
    assert conversation.runtime.plugins.engine.hosted.read("threshold_tokens") == 2_400
    report = conversation.compact()
    assert (report.engine, report.warnings) == ("early", ())


def test_the_tool_and_the_command_answer(house: House, tmp_path: Path) -> None:
    house.write("words", TOOL, kind="")
    words = tmp_path / "words.txt"
    words.write_text("heron: a grey bird\n")
    house.home.config_file.write_text(json.dumps({"plugins": {"enabled": ["words"], "words": {"file": str(words)}}}))
    script = [call("look_up", word="heron"), "A bird."]
    with open_store(house.store) as store:
        chosen = Chosen("gpt-4o", ScriptedProvider(script, window=16_000), "openai", "", 16_000)
        agent = open_agent(house.settings(), chosen, store=store, id="a", workdir=tmp_path)
        assert agent.turn("What is a heron?").text == "A bird."
        assert any("a grey bird" in str(message) for message in agent.conversation.messages)
        assert (
            run_command(agent.conversation, "/words heron", plugin_commands(agent.conversation)) == "heron: a grey bird"
        )
        agent.conversation.append(*generate(seed=3, messages=40, tokens=12_000, huge_outputs=0).messages)
        assert agent.conversation.compact().committed
        assert agent.conversation.runtime.plugins.troubles == []
    assert re.fullmatch(r"a: \d+ -> \d+ tokens\n", words.with_suffix(".log").read_text())
