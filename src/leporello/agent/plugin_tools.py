"""The tools that the engine and plugins bring into the agent, dispatched to them without entries in any registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leporello.conversation import Conversation
from leporello.messages import parse_json
from leporello.plugins.context import PluginToolCall
from leporello.recall.tools import SCHEMAS
from leporello.tools.base import Arguments, Tool, ToolContext
from leporello.tools.schema import foreign_tool
from leporello.tools.toolbox import Toolbox

RECALL = frozenset(str(schema["name"]) for schema in SCHEMAS)

Handler = Callable[[ToolContext, Arguments], object]


def with_plugin_tools(talk: Conversation, own: Toolbox) -> Toolbox:
    """The host's tools and those of the engine and of plugins. A name that is taken is refused, and that is said.

    An engine may bring recall tools of the same names as the host's: its summaries name them, so it is asked first, and
    the host answers what the engine does not know.
    """
    tools = {name: tool for name in own.names if (tool := own.get(name))}
    for schema in talk.engine.get_tool_schemas():
        name = str(schema["name"])
        if name in tools and name not in RECALL:
            talk.note(_taken(f"engine {talk.engine.name}", name))
        else:
            tools[name] = foreign_tool(schema, _ask_engine(talk, name, tools.get(name)))
    for call in talk.extras.tools:
        if call.tool.name in tools:
            talk.note(_taken(call.guard.who, call.tool.name))
        else:
            tools[call.tool.name] = foreign_tool(call.tool.schema, _ask_plugin(call))
    return Toolbox(tools.values())


def _taken(who: str, name: str) -> str:
    return f"{who}: its tool {name} is left out: there is one of that name already."


def _ask_engine(talk: Conversation, name: str, own: Tool | None) -> Handler:
    def handle(context: ToolContext, arguments: Arguments) -> object:
        answer = talk.engine.handle_tool_call(name, dict(arguments), messages=talk.messages)
        if own is None or not _is_error(answer):
            return answer
        return own.run(context, own.check(arguments))

    return handle


def _ask_plugin(call: PluginToolCall) -> Handler:
    return lambda _, arguments: call(dict(arguments))


def _is_error(answer: str) -> bool:
    value: Any = parse_json(answer)
    return isinstance(value, dict) and bool(value.get("error"))
