"""Tool schemas and tool choice in the three dialects.

Inside Leporello a tool is in the chat form `{"type": "function", "function": {...}}`. Engines and registries also hand
over the bare form `{"name", "description", "parameters"}`. Tools of a vendor's own kinds (web search and the like) pass
through untouched to the dialect they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leporello.dialects.base import Wire
from leporello.dialects.names import wire_name

_NO_PARAMETERS: Wire = {"type": "object", "properties": {}}
_FREE_TEXT: Wire = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


@dataclass(frozen=True, slots=True)
class Function:
    """A function tool, whatever form it came in. `extra` holds fields the chat form doesn't know."""

    name: str
    description: str | None
    parameters: Wire
    strict: bool | None
    extra: Wire


def function_of(tool: Mapping[str, Any]) -> Function | None:
    """The function a tool describes, or None for a vendor's own kind of tool."""
    body = tool.get("function")
    if isinstance(body, Mapping):
        return _function(body, "parameters", {key: tool[key] for key in tool if key not in ("type", "function")})
    custom = tool.get("custom")
    if isinstance(custom, Mapping):
        name, description = str(custom.get("name", "")), custom.get("description")
        return Function(name, description, _FREE_TEXT, None, {})
    if "input_schema" in tool:
        return _function(tool, "input_schema", {})
    if tool.get("type", "function") == "function" and "name" in tool:
        return _function(tool, "parameters", {})
    return None


def _function(body: Mapping[str, Any], schema_key: str, extra: Wire) -> Function:
    known = ("name", "description", "strict", "type", schema_key)
    parameters = body.get(schema_key)
    return Function(
        str(body.get("name", "")),
        body.get("description"),
        dict(parameters) if isinstance(parameters, Mapping) and parameters else _NO_PARAMETERS,
        body.get("strict"),
        {**extra, **{key: value for key, value in body.items() if key not in known}},
    )


def chat_tools(tools: Iterable[Mapping[str, Any]]) -> list[Wire]:
    """Tools for Chat Completions; ones already in that form are the same objects."""
    return [_chat_tool(tool) for tool in tools]


def _chat_tool(tool: Mapping[str, Any]) -> Wire:
    is_function = isinstance(tool.get("function"), Mapping) and "cache_control" not in tool
    function = function_of(tool)
    fits = function is not None and wire_name(function.name) == function.name
    if (is_function and fits) or isinstance(tool.get("custom"), Mapping):
        return tool if isinstance(tool, dict) else dict(tool)
    if function is None:
        return dict(tool)
    body: Wire = {"name": wire_name(function.name)}
    if function.description is not None:
        body["description"] = function.description
    body["parameters"] = function.parameters
    if function.strict is not None:
        body["strict"] = function.strict
    return {"type": "function", "function": body}


def anthropic_tools(tools: Iterable[Mapping[str, Any]]) -> list[Wire]:
    """Tools for Anthropic Messages."""
    return [_anthropic_tool(tool) for tool in tools]


def _anthropic_tool(tool: Mapping[str, Any]) -> Wire:
    function = function_of(tool)
    if function is None:
        return dict(tool)
    if "input_schema" in tool:
        return {**tool, "name": wire_name(function.name)}
    wire: Wire = {"name": wire_name(function.name)}
    if function.description is not None:
        wire["description"] = function.description
    wire["input_schema"] = {**({} if "type" in function.parameters else {"type": "object"}), **function.parameters}
    if function.strict is not None:
        wire["strict"] = function.strict
    return {**wire, **function.extra}


def responses_tools(tools: Iterable[Mapping[str, Any]]) -> list[Wire]:
    """Tools for Responses, where `strict` must be said because its default is the other way round."""
    return [_responses_tool(tool) for tool in tools]


def _responses_tool(tool: Mapping[str, Any]) -> Wire:
    custom = tool.get("custom")
    if isinstance(custom, Mapping):
        return {"type": "custom", **custom}
    function = function_of(tool)
    if function is None or (tool.get("type") == "function" and "strict" in tool and "name" in tool):
        return dict(tool)
    wire: Wire = {"type": "function", "name": wire_name(function.name)}
    if function.description is not None:
        wire["description"] = function.description
    return {**wire, "parameters": function.parameters, "strict": bool(function.strict)}


def as_chat_tool(tool: Mapping[str, Any]) -> Wire:
    """A client's tool of any dialect in the chat form; a vendor's own kind stays as it is."""
    function = function_of(tool)
    if function is None:
        return dict(tool)
    body: Wire = {"name": function.name}
    if function.description is not None:
        body["description"] = function.description
    body["parameters"] = function.parameters
    if function.strict is not None:
        body["strict"] = function.strict
    return {"type": "function", "function": body, **function.extra}


def anthropic_choice(choice: Any, parallel: Any) -> Wire | None:
    """`tool_choice` and `parallel_tool_calls` of the chat form as Anthropic's one field."""
    named = {"auto": "auto", "none": "none", "required": "any"}.get(choice) if isinstance(choice, str) else None
    wire: Wire | None = {"type": named} if named else None
    if isinstance(choice, Mapping):
        function = choice.get("function")
        wire = {"type": "tool", "name": function["name"]} if isinstance(function, Mapping) else dict(choice)
    if parallel is False:
        wire = wire or {"type": "auto"}
        if wire["type"] != "none":
            wire["disable_parallel_tool_use"] = True
    return wire


def responses_choice(choice: Any) -> Any:
    """`tool_choice` of the chat form for Responses, which has one level less."""
    if isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping):
        return {"type": "function", "name": choice["function"].get("name")}
    if isinstance(choice, Mapping) and isinstance(choice.get("custom"), Mapping):
        return {"type": "custom", "name": choice["custom"].get("name")}
    return choice
