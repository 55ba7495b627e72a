"""What a plugin does to the program around it: undone and said, or kept in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from leporello.conversation import Conversation
from leporello.engines.guard import PluginGuard
from leporello.events import Outcome
from leporello.messages import Message, text_of
from leporello.plugins.host import PluginHost
from leporello.providers.base import ModelReply, ModelRequest
from leporello.summaries.model import SummaryModel
from leporello.testing.engine_doctor import Examined
from leporello.testing.sessions import generate
from leporello.usage import CanonicalUsage
from tests.conftest import RunCli
from tests.plugins.conftest import House
from tests.plugins.test_failures import HONEST

SESSION = generate(seed=3, messages=120, tokens=14_000, huge_outputs=0).messages
WRITES = HONEST.replace(
    "        newest =",
    "        os.chdir('/')\n        os.environ['LEFT_BEHIND'] = '1'\n        os.write(1, b'raw bytes')\n"
    "        sys.stdout = sys.stderr\n        newest =",
)
LEAVES = HONEST.replace("        newest =", "        os._exit(7)\n        newest =")
ASKS = HONEST.replace(
    "        newest =",
    "        from agent.auxiliary_client import call_llm\n"
    "        told = call_llm(task='compression', messages=[{'role': 'user', 'content': 'What?'}], max_tokens=50)\n"
    "        newest =",
).replace('"Much."', "told.choices[0].message.content")
WITH_TOOLS = (
    HONEST
    + """
    def get_tool_schemas(self):
        return [{"name": "where", "description": "", "parameters": {"type": "object", "properties": {}}}]

    def handle_tool_call(self, name, args, **kwargs):
        return str(os.getpid())

def register(ctx):
    ctx.register_context_engine(Odd())
    ctx.register_tool(name="pid", schema={"name": "pid"}, handler=lambda args: str(os.getpid()))
    ctx.register_command("pid", lambda text: text + str(os.getpid()))
    ctx.register_hook("post_tool_call", lambda **facts: "one")
    ctx.register_hook("post_tool_call", lambda **facts: "two")
"""
)


def folded(house: House, code: str, **flags: Any) -> tuple[Conversation, Any]:
    house.write("odd", "import os, sys\n" + code)
    conversation = house.talk(context__engine="odd", **flags)
    conversation.append(*SESSION)
    report = conversation.compact()
    assert report.outcome is Outcome.COMMITTED
    return conversation, report


def test_what_a_plugin_changed_is_put_back_and_said(
    house: House, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A plugin that hangs in another test of this process still holds its own.
    monkeypatch.setattr("leporello.engines.guard._captured", {})
    monkeypatch.setattr(sys, "stdout", getattr(sys.stdout, "real", sys.stdout))
    before = os.getcwd(), dict(os.environ), sys.stdout
    conversation, report = folded(house, WRITES)
    assert (os.getcwd(), dict(os.environ), sys.stdout) == before
    assert report.engine == "odd"
    told = "\n".join(conversation.runtime.plugins.troubles)
    assert "the standard streams and the working directory and the environment" in told
    assert "put back" in told


def test_a_guard_puts_back_what_a_failing_call_changed(tmp_path: Path) -> None:
    before = os.getcwd()
    notes: list[str] = []
    guard = PluginGuard("plugin x", on_trouble=notes.append)

    def fails() -> None:
        os.chdir(tmp_path)
        raise ValueError

    guard.ask("work", fails, None)
    assert os.getcwd() == before
    assert any("the working directory" in note for note in notes)


def test_a_trouble_that_is_told_is_no_warning_on_the_terminal_too(caplog: pytest.LogCaptureFixture) -> None:
    notes: list[str] = []
    with caplog.at_level("INFO"):
        PluginGuard("plugin x", on_trouble=notes.append).note("It fails.")
        PluginGuard("plugin y").note("It hangs.")
    assert notes == ["It fails."]
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO", "It fails."),
        ("WARNING", "It hangs."),
    ]


def test_in_a_process_of_its_own_nothing_reaches_the_program(house: House, capfd: pytest.CaptureFixture[str]) -> None:
    before = os.getcwd(), dict(os.environ)
    conversation, report = folded(house, WRITES, plugins__isolation="process")
    assert (report.engine, report.warnings) == ("odd", ())
    assert (os.getcwd(), dict(os.environ)) == before
    assert "raw bytes" not in capfd.readouterr().out
    assert conversation.runtime.plugins.troubles == []


def test_an_engine_that_ends_its_process_costs_nothing(house: House) -> None:
    conversation, report = folded(house, LEAVES, plugins__isolation="process")
    assert report.engine == "compressor"
    assert "compress() failed: the plugin ended its process; the built-in compressor" in report.warnings[0]
    conversation.append(*SESSION[:40])
    assert conversation.compact().committed


def test_tools_and_commands_run_in_the_process_and_it_ends_with_the_conversation(house: House) -> None:
    conversation, _ = folded(house, WITH_TOOLS, plugins__isolation="process")
    slot = conversation.runtime.plugins
    there = int(slot.engine.handle_tool_call("where", {}))
    assert there != os.getpid()
    assert int(slot.extras.tools[0]({})) == there
    assert slot.extras.commands[0]("at ") == f"at {there}"
    assert slot.fire("post_tool_call", tool_name="pid") == ["one", "two"]
    slot.close()
    with pytest.raises(ProcessLookupError):
        os.kill(there, 0)


def test_a_hanging_engine_is_ended(house: House) -> None:
    hangs = HONEST.replace("        newest =", "        __import__('time').sleep(60)\n        newest =")
    _, report = folded(house, hangs, plugins__isolation="process", compression__deadline=3.0)
    assert report.engine == "compressor"
    assert "did not end within" in report.warnings[0]


class Model:
    name = "here"

    def complete(self, request: ModelRequest, on_text: Any = None) -> ModelReply:
        said: Message = {"role": "assistant", "content": f"Answer to {text_of(request.messages[-1])}"}
        return ModelReply(said, CanonicalUsage(5, 5), model="here")


def test_the_model_is_asked_in_the_program(house: House) -> None:
    house.write("odd", "import os, sys\n" + ASKS)
    settings = house.settings(context__engine="odd", plugins__isolation="process")
    host = PluginHost(settings)
    host.use_summary_models([SummaryModel(Model(), "here", 32_000)])
    with Conversation.open("a", window=16_000, store=house.store, settings=settings, plugins=host) as conversation:
        conversation.append(*SESSION)
        report = conversation.compact()
        assert report.warnings == ()
        assert "Answer to What?" in json.dumps(conversation.messages)


def test_an_engine_that_can_not_be_loaded_there_is_named(house: House) -> None:
    house.write("odd", "1 / 0")
    conversation = house.talk(context__engine="odd", plugins__isolation="process")
    assert "ZeroDivisionError" in conversation.runtime.plugins.troubles[0]


def test_doctor_leaves_nothing_in_the_home(house: House, run_cli: RunCli) -> None:
    """The plugin keeps a database in the home that its host names, and a file in the user's."""
    keeps = HONEST.replace(
        "        newest =",
        "        from hermes_cli.config import get_hermes_home\n"
        "        (get_hermes_home() / 'odd.db').write_text('x')\n"
        "        open(os.path.expanduser('~/odd.txt'), 'w').close()\n        newest =",
    )
    house.write("odd", "import os, sys\n" + keeps)
    before = sorted(path.name for path in house.home.path.rglob("*"))
    ran = run_cli("--home", house.home.path, "plugins", "doctor", "odd", "--json")
    assert len(json.loads(ran.out)["promises"]) > 20
    assert sorted(path.name for path in house.home.path.rglob("*")) == before
    assert not Path("~/odd.txt").expanduser().exists()


def test_doctor_hands_an_engine_what_its_host_would(house: House) -> None:
    """Text, with images and reasoning in it told or set apart; a plugin is not examined with what it never gets."""
    house.write("odd", "import os, sys\n" + HONEST)
    examined = Examined("odd", house.host(context__engine="odd"))
    given = [message for messages in examined.sessions() for message in messages]
    assert all(isinstance(message["content"], str) for message in given)
    assert any("[image]" in message["content"] for message in given)
    built_in = [message for messages in Examined("compressor", house.host()).sessions() for message in messages]
    assert any(isinstance(message["content"], list) for message in built_in)


def test_the_list_shows_one_engine_in_use(house: House, run_cli: RunCli) -> None:
    house.write("lcm", HONEST.replace('"odd"', '"lcm"'))
    house.write(
        "gives", HONEST.replace('"odd"', '"lcm"') + "\ndef register(ctx):\n    ctx.register_context_engine(Odd())", ""
    )

    def used(**settings: Any) -> list[tuple[str, str]]:
        house.home.config_file.write_text(json.dumps({"plugins": {"enabled": ["gives"]}, **settings}))
        listed = json.loads(run_cli("--home", house.home.path, "plugins", "list", "--json").out)
        return [(line["name"], line["kind"]) for line in listed if line["status"] == "in use"]

    assert used() == [("compressor", "built in")]
    assert used(context={"engine": "lcm"}) == [("lcm", "engine")]
    assert used(context={"engine": "absent"}) == [("compressor", "built in")]
    (house.home.plugins_dir / "context_engine" / "lcm" / "__init__.py").write_text("1 / 0")
    assert used(context={"engine": "lcm"}) == [("lcm", "built in")]
