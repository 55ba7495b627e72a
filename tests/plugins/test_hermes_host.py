"""More of the host that public plugins are written for: its compressor as a base class, hooks around a turn."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from leporello.agent.agent import Agent
from leporello.agent.endpoints import Chosen
from leporello.agent.session import open_agent
from leporello.conversation import Conversation
from leporello.messages import text_of
from leporello.plugins.host import PluginHost
from leporello.providers.scripted import ScriptedProvider
from leporello.store import open_store
from leporello.summaries.model import SummaryModel
from leporello.testing.sessions import generate
from leporello.turns import validate
from tests.agent.conftest import call
from tests.plugins.conftest import House
from tests.plugins.test_isolation import Model

SESSION = generate(seed=3, messages=120, tokens=14_000, huge_outputs=0).messages
DERIVED = """
from agent.context_compressor import ContextCompressor

class Derived(ContextCompressor):
    def __init__(self):
        super().__init__(
            model="m", threshold_percent=0.4, protect_first_n=2, protect_last_n=10, summary_target_ratio=0.25,
            quiet_mode=True, summary_model_override=None, base_url="", api_key="", provider="", api_mode="",
            config_context_length=16000, threshold_tokens_cap=1, abort_on_summary_failure=False,
        )
        self.asked = 0

    @property
    def name(self):
        return "derived"

    def should_compress_info(self, prompt_tokens=None):
        self.asked += 1
        return super().should_compress_info(prompt_tokens)

    def _generate_summary(self, turns_to_summarize, focus_topic=None, memory_context=""):
        native = super()._generate_summary(turns_to_summarize, focus_topic=focus_topic, memory_context=memory_context)
        self.native = native
        return self._with_summary_prefix(native)

def register(ctx):
    ctx.register_context_engine(Derived())
"""
STEPS = """
from agent.context_compressor import ContextCompressor, estimate_messages_tokens_rough

class Steps(ContextCompressor):
    name = "steps"

    def compress(self, messages, current_tokens=None, focus_topic=None):
        messages, pruned = self._prune_old_tool_results(messages, 20, protect_tail_tokens=self.tail_token_budget)
        start = self._align_boundary_forward(messages, self.protect_first_n)
        end = self._find_tail_cut_by_tokens(messages, start)
        summary = self._generate_summary(messages[start:end], focus_topic=focus_topic) or "nothing"
        shown = self._sanitize_tool_pairs([*messages[:start], {"role": "user", "content": summary}, *messages[end:]])
        assert estimate_messages_tokens_rough(shown) > 0
        self.compression_count += 1
        return shown
"""
WRAPS = """
class Wrapper:
    name = "wraps"

    def __init__(self):
        from agent.context_compressor import ContextCompressor
        self._inner = ContextCompressor(model="m")

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def update_from_response(self, usage):
        self._inner.update_from_response(usage)

    def should_compress(self, prompt_tokens=None):
        return self._inner.should_compress(prompt_tokens)

    def compress(self, messages, current_tokens=None, focus_topic=None, **kwargs):
        return self._inner.compress(messages, current_tokens=current_tokens, focus_topic=focus_topic, **kwargs)
"""


DERIVED_EARLY = """
from agent.context_compressor import ContextCompressor

class Early(ContextCompressor):
    name = "early"
    threshold_percent = 0.3
"""


def compacted(house: House, name: str, model: bool = True) -> tuple[Conversation, Any]:
    settings = house.settings(context__engine=name)
    host = PluginHost(settings)
    if model:
        host.use_summary_models([SummaryModel(Model(), "here", 32_000)])
    conversation = Conversation.open("a", window=16_000, store=house.store, settings=settings, plugins=host)
    conversation.append(*SESSION)
    report = conversation.compact()
    assert (report.engine, report.warnings) == (name, ())
    assert report.tokens_after < report.tokens_before
    assert validate(conversation.messages) == []
    return conversation, conversation.runtime.plugins.engine.hosted.engine


def test_a_derived_class_sets_its_threshold(house: House) -> None:
    house.write("early", DERIVED_EARLY)
    offer = house.host(context__engine="early").make_engine("early")
    assert offer is not None
    offer.hosted.call("update_model", "m", 10_000)
    assert offer.hosted.read("threshold_tokens") == 3_000


def test_a_class_derived_from_the_hosts_compressor_loads_and_compacts(house: House) -> None:
    house.write("derived", DERIVED)
    conversation, engine = compacted(house, "derived")
    with conversation:
        assert (engine.protect_first_n, engine.protect_last_n, engine.quiet_mode) == (2, 10, True)
        assert engine.native.startswith("Answer to"), "its summary is asked of the host's model"
        assert engine._last_compression_made_progress
        conversation.request()
        assert engine.asked


def test_steps_of_the_hosts_compression_can_be_put_together_otherwise(house: House) -> None:
    house.write("steps", STEPS)
    conversation, _ = compacted(house, "steps")
    with conversation:
        assert any("Answer to Summarise" in text_of(message) for message in conversation.messages)


def test_without_a_model_there_is_still_a_fold(house: House) -> None:
    house.write("derived", DERIVED.replace("return self._with_summary_prefix(native)", "return native"))
    compacted(house, "derived", model=False)[0].close()


def test_an_engine_that_only_behaves_like_one(house: House) -> None:
    house.write("wraps", WRAPS + "\ndef register(ctx):\n    ctx.register_context_engine(Wrapper())\n")
    compacted(house, "wraps")[0].close()


def test_an_installed_package_behind_a_plugin_folder_sees_the_host(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "hermes_wrapping"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "engine.py").write_text(WRAPS)
    monkeypatch.syspath_prepend(str(package.parent))
    shim = (
        "from hermes_wrapping.engine import Wrapper\ndef register(ctx):\n    ctx.register_context_engine(Wrapper())\n"
    )
    house.write("wraps", shim)
    try:
        compacted(house, "wraps")[0].close()
    finally:
        for name in ("hermes_wrapping", "hermes_wrapping.engine"):
            sys.modules.pop(name, None)


# -- hooks around a turn

HOOKS = """
import json, os

def note(hook, facts):
    with open(os.path.join(os.path.dirname(__file__), "told.jsonl"), "a") as file:
        file.write(json.dumps([hook, {k: v for k, v in facts.items() if k != "conversation_history"}]) + "\\n")

def before(**facts):
    note("pre_llm_call", facts)
    facts["conversation_history"].clear()
    return {"context": "The tide is high at noon."}

def before_tool(tool_name, args, **facts):
    note("pre_tool_call", {"tool_name": tool_name, "args": args, **facts})
    if args.get("path") == "secret.txt":
        return {"action": "block", "message": "Not this file."}

def register(ctx):
    ctx.register_hook("pre_llm_call", before)
    ctx.register_hook("pre_tool_call", before_tool)
    ctx.register_hook("post_tool_call", lambda **facts: note("post_tool_call", facts))
    ctx.register_hook("post_llm_call", lambda **facts: note("post_llm_call", facts))
"""


def test_hooks_hear_of_turns_and_tool_calls_and_may_add_and_block(house: House, tmp_path: Path) -> None:
    folder = house.write("watch", HOOKS, kind="")
    (tmp_path / "plain.txt").write_text("harbour")
    (tmp_path / "secret.txt").write_text("treasure")
    provider = ScriptedProvider(
        [call("read_file", path="plain.txt"), call("read_file", path="secret.txt"), "Done."], window=16_000
    )
    settings = house.settings(tools__approval="auto", plugins__enabled="watch")
    with open_store(house.store) as store:
        chosen = Chosen("gpt-4o", provider, "openai", "", 16_000)
        agent: Agent = open_agent(settings, chosen, store=store, id="a", workdir=tmp_path)
        assert agent.turn("Read both.").text == "Done."
        stored = json.dumps([message.message for message in store.log.iterate("a")])
        assert agent.conversation.runtime.plugins.troubles == []
    told = [json.loads(line) for line in (folder / "told.jsonl").read_text().splitlines()]
    assert [hook for hook, _ in told] == [
        "pre_llm_call",
        *["pre_tool_call", "post_tool_call"] * 2,
        "post_llm_call",
    ]
    first, before, after, _, blocked, last = (facts for _, facts in told)
    assert (first["user_message"], first["is_first_turn"]) == ("Read both.", True)
    assert (before["tool_name"], before["args"]) == ("read_file", {"path": "plain.txt"})
    assert "harbour" in after["result"]
    assert (blocked["status"], blocked["result"]) == ("error", "Error: Not this file.")
    assert last["assistant_response"] == "Done."
    assert "treasure" not in stored
    sent = [json.dumps([*request.messages]) for request in provider.requests]
    assert all("The tide is high at noon." in request for request in sent), "in every request of the turn"
    assert "tide" not in stored, "and never stored"


SEARCHES = """
import json
from agent.context_engine import ContextEngine

class Searches(ContextEngine):
    name = "searches"

    def update_from_response(self, usage): ...

    def should_compress(self, prompt_tokens=None):
        return False

    def compress(self, messages, current_tokens=None, focus_topic=None):
        return messages

    def get_tool_schemas(self):
        return [{"name": "lcm_grep", "description": "Search", "parameters": {"type": "object", "properties": {}}}]

    def handle_tool_call(self, name, args, **kwargs):
        return json.dumps({"results": ["only the newest"]})
"""


def test_to_an_engines_search_the_whole_conversation_is_added(house: House, tmp_path: Path) -> None:
    house.write("searches", SEARCHES)
    provider = ScriptedProvider([call("lcm_grep", query="harbour gate", session_scope="all"), "Done."], window=16_000)
    with open_store(house.store) as store:
        chosen = Chosen("gpt-4o", provider, "openai", "", 16_000)
        agent = open_agent(house.settings(context__engine="searches"), chosen, store=store, id="a", workdir=tmp_path)
        agent.conversation.append({"role": "user", "content": "The harbour gate is blue heron nine."})
        agent.conversation.append({"role": "assistant", "content": "Noted."})
        agent.turn("What was it?")
        result = next(m for m in reversed(agent.conversation.messages) if m["role"] == "tool")
    told = json.loads(text_of(result))
    assert told["results"] == ["only the newest"]
    assert "blue heron nine" in json.dumps(told["whole_conversation"])
