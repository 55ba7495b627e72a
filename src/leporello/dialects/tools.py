"""Tools on the wire: schemas in whatever form they come, names and call ids that every provider accepts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leporello.dialects.base import Wire
from leporello.messages import Messages, calls_of, result_id
from leporello.turns import iter_groups

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


def chat_function(function: Function, name: str, parameters: str = "parameters") -> Wire:
    """The inner object of the chat form; other dialects have it too, the schema perhaps under another key."""
    fields = {"name": name, "description": function.description, parameters: function.parameters}
    return {key: value for key, value in {**fields, "strict": function.strict}.items() if value is not None}


ESCAPE = "lx-"


@dataclass(frozen=True, slots=True)
class IdRule:
    """What a provider accepts as an id, and how to write one that it doesn't."""

    fits: re.Pattern[str]
    escape: Callable[[str], str]
    unique_in_request: bool = True


def hex_escape(payload: str) -> str:
    """An id from which the original can be read back."""
    return ESCAPE + payload.encode("utf-8", "surrogatepass").hex()


def digest_escape(payload: str) -> str:
    """A short id for an original of any length."""
    return ESCAPE + hashlib.blake2b(payload.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class IdPlan:
    """The ids of one request: per message with calls one for each call, per result the call it answers."""

    calls: dict[int, tuple[str, ...]] = field(default_factory=dict)
    results: dict[int, str] = field(default_factory=dict)


def plan_ids(messages: Messages, rule: IdRule) -> IdPlan:
    """Give every call an id the provider takes, and every result the id of its call."""
    plan = IdPlan()
    used: Counter[str] = Counter()
    for group in iter_groups(messages):
        if not rule.unique_in_request:
            used.clear()
        calls = calls_of(messages[group.start])
        if calls:
            plan.calls[group.start] = tuple(_assign(call.id or call.name, rule, used) for call in calls)
        for position, answer in enumerate(group.answers):
            if answer is not None:
                plan.results[answer] = plan.calls[group.start][position]
        for orphan in group.orphans:
            plan.results[orphan] = _assign(result_id(messages[orphan]), rule, Counter())
    return plan


def _assign(original: str, rule: IdRule, used: Counter[str]) -> str:
    repeat = used[original]
    used[original] += 1
    if repeat == 0 and rule.fits.fullmatch(original):
        return original
    return rule.escape(f"{repeat}:{original}")


def original_id(wire: str) -> str:
    """The id behind one made by `hex_escape`; any other id is its own."""
    if not wire.startswith(ESCAPE):
        return wire
    try:
        payload = bytes.fromhex(wire[len(ESCAPE) :]).decode("utf-8", "surrogatepass")
    except ValueError:
        return wire
    repeat, colon, original = payload.partition(":")
    return original if colon and repeat.isdigit() else wire


LONGEST = 64
_ALLOWED = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


def wire_name(name: str) -> str:
    """The name as it is sent; one that fits is not touched."""
    if _ALLOWED.fullmatch(name):
        return name
    return _OTHER.sub("_", name)[:LONGEST] or "tool"


def own_names(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Sent names back to the tools' own, for those that differ."""
    found = {}
    for tool in tools:
        body = tool.get("function") or tool.get("custom") or tool
        name = str(body.get("name") or "") if isinstance(body, Mapping) else ""
        if name and wire_name(name) != name:
            found[wire_name(name)] = name
    return found
