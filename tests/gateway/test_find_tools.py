"""In the proxy, where the operator wants it: a client's unused tools give way to `find_tools`, answered by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leporello.dialects import Dialect, Target

from .recalls import DIALECTS, ask, folded, history, names, says
from .test_recall import one, valid

WANTED = {"gateway.recall": False, "gateway.find_tools": True}
FIND = ("find_tools", '{"query": "tool_5"}')
USE = ("tool_5", '{"path": "b.txt"}')


def many_tools(dialect: Dialect) -> list[Any]:
    """`read`, and eight that nobody calls."""
    made = [("read", "Reads a file."), *((f"tool_{k}", "Turns the lamp of the harbour on. " * 12) for k in range(8))]
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    return [
        dialect.recall.encode_tool(
            {"type": "function", "function": {"name": name, "description": told, "parameters": parameters}}
        )
        for name, told in made
    ]


def worked(dialect: Dialect) -> list[Any]:
    """A long conversation in which `read` was called ten times."""
    said: list[Any] = [{"role": "user", "content": "Read ten files."}]
    for number in range(10):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
        said += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": f"file {number}"},
        ]
    said += [{"role": "assistant", "content": "All read."}, *history(), {"role": "user", "content": "Lamp 5, please."}]
    return dialect.items.encode(said, Target("upstream", "m"))


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hidden_tool_is_found_and_called(tmp_path: Path, dialect: Dialect, way: str) -> None:
    """The client sees its own tool called and nothing of the search; from the next request on the set is the same."""
    tools = many_tools(dialect)
    script = [says(FIND), says(USE), says(text="The lamp is on."), says(text="Good.")]
    with folded(tmp_path, script, WANTED) as house:
        said = worked(dialect)
        reply = ask(house, dialect, way, said, tools=tools)
        assert [name for name, _ in reply.calls] == ["tool_5"]
        assert "find_tools" not in reply.raw.model_dump_json()
        first, second = house.model_calls
        assert names(first) == ["read", "find_tools"]
        assert names(second) == ["read", "tool_5", "find_tools"]
        kept = house.store.state.get(one(house), "tools.set")
        assert kept["breaks"] == 1
        said += reply.turn
        (call,) = (found for item in reply.turn for found in ids(item))
        said += dialect.items.encode([{"role": "tool", "tool_call_id": call, "content": "on"}], Target("upstream", "m"))
        reply = ask(house, dialect, way, said, tools=tools)
        third = house.model_calls[-1]
        assert third.body["tools"] == second.body["tools"]
        ask(house, dialect, way, [*said, *reply.turn, {"role": "user", "content": "Thanks."}], tools=tools)
        assert house.model_calls[-1].body["tools"] == third.body["tools"]
        valid(house)


def ids(item: Any) -> list[str]:
    """Ids of the calls in an item of any dialect."""
    found = [call["id"] for call in item.get("tool_calls") or ()]
    found += [item["call_id"]] if item.get("type") == "function_call" else []
    content = item.get("content")
    blocks = content if isinstance(content, list) else []
    return found + [block["id"] for block in blocks if block.get("type") == "tool_use"]


@pytest.mark.parametrize(
    ("flags", "more"),
    [
        ({"gateway.recall": False}, {}),
        ({**WANTED, "tools.schema_share": 0.9}, {}),
        (WANTED, {"tool_choice": "none"}),
    ],
)
def test_otherwise_the_client_s_tools_stay(tmp_path: Path, flags: dict[str, object], more: dict[str, Any]) -> None:
    """Without the operator's word, within the share, and where nothing can be called."""
    chat = DIALECTS[0]
    tools = many_tools(chat)
    with folded(tmp_path, [says(text="Fine.")], flags) as house:
        ask(house, chat, "whole", worked(chat), tools=tools, **more)
        assert json.dumps(house.model_calls[0].body["tools"]) == json.dumps(tools)


def test_a_tool_that_must_be_called_stays(tmp_path: Path) -> None:
    chat = DIALECTS[0]
    choice = {"type": "function", "function": {"name": "tool_2"}}
    with folded(tmp_path, [says(("tool_2", '{"path": "c"}'))], WANTED) as house:
        ask(house, chat, "whole", worked(chat), tools=many_tools(chat), tool_choice=choice)
        assert names(house.model_calls[0]) == ["read", "tool_2", "find_tools"]
