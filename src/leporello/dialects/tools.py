"""Tool schemas in whatever form they come.

Inside Leporello a tool is in the chat form `{"type": "function", "function": {...}}`. Engines and registries also hand
over the bare form `{"name", "description", "parameters"}`. Tools of a vendor's own kinds (web search and the like) pass
through untouched to the dialect they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leporello.dialects.base import Wire

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


def as_chat_tool(tool: Mapping[str, Any]) -> Wire:
    """A client's tool of any dialect in the chat form; a vendor's own kind stays as it is."""
    function = function_of(tool)
    if function is None:
        return dict(tool)
    return {"type": "function", "function": chat_function(function, function.name), **function.extra}


def chat_function(function: Function, name: str) -> Wire:
    """The inner object of the chat form."""
    body: Wire = {"name": name}
    if function.description is not None:
        body["description"] = function.description
    body["parameters"] = function.parameters
    if function.strict is not None:
        body["strict"] = function.strict
    return body
