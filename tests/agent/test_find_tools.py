"""An agent with many tools: those never used give way to `find_tools`, and come back when they are looked for."""

from __future__ import annotations

import json
from typing import Any

from leporello.agent.agent import Agent
from leporello.agent.endpoints import Chosen, choose_model
from leporello.agent.events import AgentEvent, Notice
from leporello.config import load_settings
from leporello.present.window import window_use
from leporello.providers.clients import ADDRESSES, ProviderChoice, make_provider
from leporello.providers.scripted import ScriptedProvider
from leporello.testing.stub_server import Say
from leporello.tools.base import Tool
from leporello.tools.schema import foreign_tool
from leporello.tools.toolbox import Toolbox
from tests.support.strict_server import strict_server

from .conftest import Bench, call

MODEL = "claude-sonnet-4-5"
WINDOW = 40_000


def extra_tool(number: int) -> Tool:
    """One of many that a plugin could bring; its schema takes some 400 tokens."""
    schema = {
        "name": f"plugin_{number}",
        "description": f"Fetches ledger {number}. " + "It takes an account, a month and a currency. " * 30,
        "parameters": {"type": "object", "properties": {"account": {"type": "string"}}},
    }
    return foreign_tool(schema, lambda _, arguments: f"ledger {number}: {arguments.get('account')}")


def agent(bench: Bench, script: Any, **more: Any) -> Agent:
    made = bench.agent(script, model=MODEL, window=WINDOW, **more)
    tools = [tool for name in made.toolbox.names if (tool := made.toolbox.get(name))]
    made.toolbox = Toolbox([*tools, *map(extra_tool, range(20))])
    return made


def worked(bench: Bench) -> Agent:
    """After ten calls, and compacted."""
    script = [call("plugin_3", f"c{k}", account=f"a{k}") for k in range(10)]
    long = "Everything about the ledgers of the harbour was looked at. " * 300
    made = agent(bench, [*script, long, "Yes."])
    made.turn("Look at the ledger of ten accounts.")
    made.turn("Go on. " + "The harbour has many ledgers, and all of them are needed. " * 200)
    assert made.conversation.compact().committed
    return made


def sent_tools(agent: Agent) -> list[str]:
    provider = agent.chosen.provider
    assert isinstance(provider, ScriptedProvider)
    return [json.dumps(tool) for tool in provider.requests[-1].tools]


def names(tools: list[str]) -> list[str]:
    return [json.loads(tool)["function"]["name"] for tool in tools]


def test_the_set_changes_with_a_compaction_and_outlives_the_process(bench: Bench) -> None:
    first = worked(bench)
    assert "find_tools" not in names(sent_tools(first))
    later = agent(bench, ["Fine.", "Fine again."])
    later.turn("And now?")
    shown = sent_tools(later)
    assert "plugin_3" in names(shown)
    assert names(shown)[-1] == "find_tools"
    assert "plugin_7" not in names(shown)
    assert "plugin_7" in json.loads(shown[-1])["function"]["description"]
    later.turn("And then?")
    assert sent_tools(later) == shown
    again = agent(bench, ["Good."])
    again.turn("Still there?")
    assert sent_tools(again) == shown


def test_what_is_looked_for_comes_back_and_is_billed_as_a_cache_break(bench: Bench) -> None:
    worked(bench)
    script = [call("find_tools", "f1", query="plugin_7"), call("plugin_7", "c1", account="x"), "Done."]
    made = agent(bench, ["Fine.", *script])
    made.turn("And now?")
    before = made.conversation.runtime.memory.state.saved
    made.turn("Look at ledger 7.")
    assert "plugin_7" in names(sent_tools(made))
    assert "plugin_8" not in names(sent_tools(made))
    results = [str(message["content"]) for message in made.conversation.messages if message["role"] == "tool"]
    assert "ledger 7: x" in results[-1]
    assert made.conversation.runtime.tools.kept.breaks == 1
    assert made.conversation.runtime.memory.state.saved < before
    assert "tools came back 1 times, which breaks the prompt cache" in window_use(made.conversation).outlook[-1]


def test_no_request_waits_for_the_compaction_beside_a_tool_that_comes_back(bench: Bench) -> None:
    """It costs nothing beside the broken cache, and is made while the call of find_tools is answered."""
    worked(bench)
    read = [call("plugin_3", f"d{k}", account=f"{k}: the harbour and its ledgers, " * 200) for k in range(3)]
    made = agent(bench, [*read, call("find_tools", "f1", query="plugin_7"), "Done."])
    before = made.conversation.runtime.log.compactions
    made.turn("Look at three more, then at ledger 7.")
    triggers = [attempt.report.trigger for attempt in bench.store.views.attempts(made.conversation.id)]
    assert made.conversation.runtime.log.compactions == before + 1
    assert triggers[0] == "find tools"


def test_a_call_of_a_hidden_tool_is_run_and_brings_it_back(bench: Bench) -> None:
    worked(bench)
    made = agent(bench, [call("plugin_9", "c1", account="y"), "Done."])
    made.turn("Ledger 9, please.")
    assert "plugin_9" in names(sent_tools(made))
    assert made.conversation.runtime.tools.kept.breaks == 1


def test_a_question_without_an_answer_names_what_there_is(bench: Bench) -> None:
    worked(bench)
    made = agent(bench, [call("find_tools", "f1", query="weather"), "None then."])
    made.turn("How is the weather?")
    assert made.conversation.runtime.tools.kept.breaks == 0
    told = json.loads(str(made.conversation.messages[-2]["content"]))
    assert "plugin_7" in told["tools"]


def test_where_the_vendor_searches_itself_loading_is_put_off(bench: Bench) -> None:
    worked(bench)
    made = agent(bench, [call("plugin_7", "c1", account="z"), "Done."])
    provider = made.chosen.provider
    made.chosen = Chosen(MODEL, provider, "anthropic", "", WINDOW, "anthropic")
    made.turn("And now?")
    tools = [json.loads(tool) for tool in sent_tools(made)]
    put_off = [tool["function"]["name"] for tool in tools if tool.get("defer_loading")]
    assert "plugin_7" in put_off
    assert "plugin_3" not in put_off
    assert tools[-1] == {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    # The vendor loads it where it was found: the bytes in front stay.
    assert [json.dumps(tool) for tool in provider.requests[-2].tools] == sent_tools(made)  # type: ignore[attr-defined]
    assert made.conversation.runtime.tools.kept.breaks == 0


def test_a_provider_that_refuses_to_search_tools_gets_find_tools_from_then_on(bench: Bench) -> None:
    """The same turn goes on; the refusal is remembered for this model at this endpoint, and for no other."""
    worked(bench)
    with strict_server([Say("Fine."), Say("Fine again.")], tool_search=False) as server:
        provider = make_provider(ProviderChoice(MODEL, "key", server.url, "anthropic"))
        made = agent(bench, ["Never asked."])
        made.chosen = Chosen(MODEL, provider, "anthropic", ADDRESSES["anthropic"], WINDOW, "anthropic")
        events: list[AgentEvent] = []
        assert made.turn("And now?", events.append).text == "Fine."
        assert made.turn("And then?").text == "Fine again."
        kinds = [[tool.get("type", "custom") for tool in request.body["tools"]] for request in server.requests]
        names = [[tool["name"] for tool in request.body["tools"]] for request in server.requests]
    searches = ["tool_search_tool_bm25_20251119" in sent for sent in kinds]
    assert searches == [True, False, False]
    assert names[1] == names[2]
    assert names[1][-1] == "find_tools"
    assert [event.text for event in events if isinstance(event, Notice)] == [
        "The provider refuses to search tools; find_tools does it here. Remembered."
    ]
    settings = load_settings({"model.provider": "anthropic"}, {"ANTHROPIC_API_KEY": "key"}, bench.home)
    assert choose_model(settings, MODEL).tool_search is None
    assert choose_model(settings, "claude-opus-4-5").tool_search is not None


def test_the_share_is_a_setting(bench: Bench) -> None:
    bench.flags["tools.schema_share"] = 1
    worked(bench)
    made = agent(bench, ["Fine."])
    made.turn("And now?")
    assert "plugin_7" in names(sent_tools(made))
