"""Plugins inside the agent: tools and commands are dispatched, hooks hear of every commit, summaries can be theirs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from leporello.agent.agent import Agent
from leporello.agent.commands import plugin_commands, run_command
from leporello.agent.endpoints import Chosen
from leporello.agent.events import Notice, ToolFinished
from leporello.agent.session import open_agent
from leporello.engines.plugin_engine import PluginEngine
from leporello.messages import text_of
from leporello.providers.scripted import ScriptedProvider
from leporello.store import open_store
from leporello.testing.sessions import generate
from tests.agent.conftest import call, calls
from tests.plugins.conftest import House
from tests.plugins.spec_sample import TINY

SESSION = generate(seed=3, messages=120, tokens=14_000, huge_outputs=0).messages


@pytest.fixture
def agent_of(house: House, tmp_path: Path):
    """Makes agents with a scripted model in the house."""
    stores = []

    def make(script: list, **flags: object) -> Agent:
        store = open_store(house.store)
        stores.append(store)
        chosen = Chosen("gpt-4o", ScriptedProvider(script, window=16_000), "openai", "", 16_000)
        settings = house.settings(tools__approval="auto", **flags)
        return open_agent(settings, chosen, store=store, id="a", workdir=tmp_path)

    yield make
    for store in stores:
        store.close()


def test_an_engine_with_a_database_tools_and_a_command_of_its_own(house: House, agent_of) -> None:
    house.sample("archive")
    script = ["They spoke of a cache.", call("archive_find", text="the"), "Found it."]
    agent = agent_of(script, context__engine="archive")
    assert isinstance(agent.conversation.runtime.plugins.engine, PluginEngine)
    agent.conversation.append(*SESSION)
    events: list = []
    agent.watchers.append(events.append)
    report = agent.conversation.compact("the cache")
    assert report.engine == "archive"
    assert report.warnings == ()
    starts = agent.conversation.runtime.plugins.engine.hosted.guard.call(
        "starts", lambda: list(agent.conversation.runtime.plugins.engine.hosted.engine.starts)
    )
    assert [kwargs.get("boundary_reason") for _, kwargs in starts] == [None, "compression"]
    assert starts[1][1]["old_session_id"] == starts[0][0] == "a"
    assert starts[1][0] == agent.conversation.runtime.log.view.session != "a"
    ended = agent.turn("What was said about it?")
    assert ended.text == "Found it."
    finished = next(event for event in events if isinstance(event, ToolFinished))
    found = json.loads(finished.output)
    assert finished.name == "archive_find"
    assert finished.ok
    assert found["found"]
    assert found["messages"] == len(agent.conversation.messages) - 2
    assert run_command(agent.conversation, "/archive today", plugin_commands(agent.conversation)) == "1 times today"
    assert any("register_cli_command() has no effect here" in event.text for event in events if type(event) is Notice)


def test_without_a_model_the_plugin_hears_so_and_the_built_in_folds(house: House) -> None:
    house.sample("archive")
    conversation = house.talk(context__engine="archive")
    conversation.append(*SESSION)
    report = conversation.compact()
    assert report.engine == "compressor"
    assert "call_llm: there is no model" in report.warnings[0]


def notes_of(house: House) -> list:
    """What the hooks of this house's plugin were told; other tests of the process may have loaded theirs."""
    source = str(house.home.plugins_dir / "notes" / "__init__.py")
    (module,) = [module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == source]
    return module.told


def test_a_general_plugin_brings_tool_command_hooks_and_summariser(house: House, agent_of) -> None:
    house.sample("notes")
    agent = agent_of([call("note_down", what="port 8443"), "Noted."], plugins__enabled=["notes"])
    conversation = agent.conversation
    assert conversation.runtime.plugins.engine.name == "compressor", (
        "its engine is not active unless the settings name it"
    )
    events: list = []
    agent.watchers.append(events.append)
    agent.turn("Note the port")
    finished = next(event for event in events if isinstance(event, ToolFinished))
    assert json.loads(finished.output) == {"noted": {"what": "port 8443"}}
    assert run_command(conversation, "/notes all", plugin_commands(conversation)) == "noted all"
    assert [
        text for text in conversation.runtime.plugins.troubles if "there is no hook 'pre_gateway_dispatch' here" in text
    ]
    conversation.append(*SESSION)
    report = conversation.compact()
    assert report.summariser == "model:plugin:notes"
    told = list(notes_of(house))
    conversation.runtime.leave("exit")
    names = [name for name, _ in notes_of(house)]
    assert names == ["session_start", "pre_compaction", "post_compaction", "session_end"]
    before, after = (facts for _, facts in told[-2:])
    assert before["generation"] + 1 == after["generation"]
    assert after["outcome"] == "committed"
    assert after["covered"] == str(report.covered)
    assert (after["tokens_before"], after["tokens_after"]) == (report.tokens_before, report.tokens_after)
    assert before["covered"] == f"m1-m{conversation.runtime.log.view.last}"
    assert "content" not in str(told), "hooks get ids and sizes, not text"


TELLING = """
from leporello.engines.base import ContextEngine

class Telling(ContextEngine):
    name = "telling"

    def __init__(self):
        super().__init__()
        self.told = []

    def update_from_response(self, usage):
        pass

    def should_compress(self, prompt_tokens=None):
        return False

    def on_session_start(self, session_id, **kwargs):
        self.told.append((session_id, kwargs.get("boundary_reason"), kwargs.get("old_session_id")))

    def compress(self, messages, current_tokens=None, focus_topic=None):
        self.told.append(focus_topic)
        newest = max(i for i, m in enumerate(messages) if m["role"] == "user")
        return messages[newest:]
"""


def test_a_session_begins_only_where_a_compaction_was_committed(house: House) -> None:
    house.write("telling", TELLING)
    house.sample("notes")
    conversation = house.talk(context__engine="telling", plugins__enabled=["notes"])
    conversation.append({"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Yes?"})
    assert not conversation.compact("greetings").committed
    conversation.append(*SESSION)
    assert conversation.compact("the cache").committed
    engine = conversation.runtime.plugins.engine.hosted
    told = [entry for entry in engine.guard.call("told", lambda: list(engine.engine.told)) if isinstance(entry, tuple)]
    assert told == [("a", None, None), (conversation.runtime.log.view.session, "compression", "a")]
    hooks = [(name, facts.get("trigger"), facts.get("focus")) for name, facts in notes_of(house)[1:]]
    assert hooks == [
        ("pre_compaction", "manual", "greetings"),
        ("post_compaction", "manual", "greetings"),
        ("pre_compaction", "manual", "the cache"),
        ("post_compaction", "manual", "the cache"),
    ]


BAD_HOOK = """
def register(ctx):
    def fail(**facts):
        raise RuntimeError("hook")
    for name in ("pre_compaction", "post_compaction", "session_start", "session_end"):
        ctx.register_hook(name, fail)
"""


def test_a_failing_hook_never_alters_a_commit(house: House) -> None:
    plain = house.talk("plain")
    plain.append(*SESSION)
    wanted = plain.compact()
    house.write("hooks", BAD_HOOK, kind="")
    conversation = house.talk("hooked", plugins__enabled=["hooks"])
    conversation.append(*SESSION)
    report = conversation.compact()
    conversation.runtime.leave()
    assert conversation.messages == plain.messages
    assert (report.outcome, report.tokens_after) == (wanted.outcome, wanted.tokens_after)
    assert sorted(text.split(" failed")[0] for text in conversation.runtime.plugins.troubles) == [
        f"plugin hooks: hook {name}" for name in ("post_compaction", "pre_compaction", "session_end", "session_start")
    ]


def test_the_user_is_told_of_a_broken_engine_when_the_turn_begins_and_once(house: House, agent_of) -> None:
    agent = agent_of(["Hello.", "Hello again."], context__engine="absent")
    events: list = []
    agent.watchers.append(events.append)
    agent.turn("Hi")
    agent.turn("Hi")
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert len([text for text in notices if "there is no such engine" in text]) == 1
    assert type(events[0]) is Notice, "before anything else happens"


def test_a_tool_of_an_engine_can_not_replace_a_tool_of_the_host(house: House, agent_of) -> None:
    house.write("tiny", TINY.replace('"tiny_grep"', '"terminal"'))
    agent = agent_of([call("terminal", command="echo mine"), "Done."], context__engine="tiny")
    agent.turn("Say it")
    results = [text_of(message) for message in agent.conversation.messages if message["role"] == "tool"]
    assert "mine" in results[0]
    assert any("its tool terminal is left out" in text for text in agent.conversation.runtime.plugins.troubles)


def test_recall_tools_of_an_engine_are_asked_first_and_the_host_second(house: House, agent_of) -> None:
    house.write("tiny", TINY.replace('"tiny_grep"', '"lcm_expand"').replace('{"results": []} if', '{"error": "?"} if'))
    agent = agent_of([calls(("c1", "lcm_expand", {"id": "m1"})), "Done."], context__engine="tiny")
    agent.turn("Open it")
    results = [text_of(message) for message in agent.conversation.messages if message["role"] == "tool"]
    assert "Open it" in results[0]
