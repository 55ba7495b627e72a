"""What requests of all dialects are made of: content parts, call arguments, tools, and ids that providers take."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct, field

from leporello.dialects.base import StreamIncomplete, Wire
from leporello.lazy_regex import lazy_regex
from leporello.messages import Messages, calls_of, parse_json, result_id
from leporello.turns import iter_groups

RAW_ARGUMENTS = "__raw_arguments__"  # the one key of an arguments object that carries a text which is not a JSON object

_DATA_URL = lazy_regex(r"data:(?P<type>[^;,]*)(?P<extra>(?:;[^;,]*)*),(?P<data>.*)", re.DOTALL)


class DataUrl(Struct, frozen=True):
    """A `data:` URL taken apart; `data` is base64 text."""

    media_type: str
    data: str


def data_url(url: Any) -> DataUrl | None:
    """The parts of a base64 `data:` URL, or None for any other address."""
    found = _DATA_URL.fullmatch(url) if isinstance(url, str) and url.startswith("data:") else None
    if found is None or ";base64" not in found["extra"]:
        return None
    return DataUrl(found["type"] or "application/octet-stream", found["data"])


def decoded_text(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def json_text(value: Any) -> str:
    """A value as JSON text; what orjson refuses (half a surrogate pair, huge integers) is escaped or spelt out."""
    try:
        return orjson.dumps(value).decode("utf-8")
    except TypeError:
        return json.dumps(value, separators=(",", ":"), default=str)


def pieces(text: str, size: int = 16) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def text_part(text: str) -> dict[str, Any]:
    """A text part, the same in the chat and Anthropic dialects."""
    return {"type": "text", "text": text}


def note(what: str, raw: Any = None) -> dict[str, Any]:
    """A text part that says what stood here and could not be carried. Its size helps to tell two apart."""
    size = f", {len(json_text(raw)):,} characters" if raw is not None else ""
    return text_part(f"[{what} not shown: this model can't take it{size}]")


def as_json_text(raw: Any) -> dict[str, Any]:
    """A part of an unknown kind as text: nothing is lost, the model can read it."""
    return text_part(json_text(raw))


def file_note(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The note for a file; names it when it has a name."""
    inner = raw.get("file")
    named = inner if isinstance(inner, Mapping) else raw
    name = named.get("filename") or named.get("title") or named.get("file_id")
    return note(f"file {name}" if name else "file", raw)


def arguments_object(arguments: str) -> dict[str, Any]:
    """A call's arguments as the object Anthropic wants; anything else is carried as text under one key."""
    if arguments.strip() in ("", "null"):
        return {}
    value = _object(arguments)
    return value if value is not None else {RAW_ARGUMENTS: arguments}


def arguments_text(value: Any) -> str:
    """The text of an arguments object; undoes `arguments_object`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and set(value) == {RAW_ARGUMENTS} and isinstance(value[RAW_ARGUMENTS], str):
        return str(value[RAW_ARGUMENTS])
    return json_text({} if value is None else value)


def valid_arguments(arguments: str) -> str:
    """Arguments that every chat server can parse: JSON objects are left alone, the rest is wrapped."""
    if arguments.strip() in ("", "null"):
        return "{}"
    return arguments if _object(arguments) is not None else json_text({RAW_ARGUMENTS: arguments})


def is_cut(arguments: str) -> bool:
    """Whether arguments end in the middle, as at the output limit: half a call is no call."""
    return arguments.strip() != "" and parse_json(arguments) is None


def check_whole(name: Any, arguments: str) -> None:
    """Raises for a call that began as an object and never closed. Other bad JSON is the model's own and is kept."""
    stripped = arguments.strip()
    if stripped.startswith("{") and not stripped.endswith("}") and parse_json(stripped) is None:
        raise StreamIncomplete(f"the arguments of call {name!r} end in the middle")


def _object(arguments: str) -> dict[str, Any] | None:
    """The JSON object in a text, exactly; None for anything else, infinities and NaN among it."""
    try:
        value = orjson.loads(arguments)
    except ValueError:
        return _exact(arguments)
    if not isinstance(value, dict):
        return None
    # orjson reads integers beyond 64 bits as floats and half a surrogate pair as a mark: the slower reader doesn't.
    if _has_float(value) or "\\ud" in arguments or "\\uD" in arguments:
        return _exact(arguments)
    return value


def _exact(arguments: str) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_float(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_float(item) for item in value)
    return isinstance(value, float)


DEFERRED = "defer_loading"  # on a tool: the provider loads it when its own tool search finds it
_NO_PARAMETERS: Wire = {"type": "object", "properties": {}}
_FREE_TEXT: Wire = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


class Function(Struct, frozen=True):
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


def tool_name(tool: Mapping[str, Any]) -> str:
    """The name of a function tool; empty for a vendor's own kind."""
    function = function_of(tool)
    return function.name if function else ""


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


class IdRule(Struct, frozen=True):
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


class IdPlan(Struct, frozen=True):
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
_ALLOWED = lazy_regex(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
_OTHER = lazy_regex(r"[^a-zA-Z0-9_-]")


def wire_name(name: str) -> str:
    """The name as it is sent; one that fits is not touched."""
    return name if _ALLOWED.fullmatch(name) else _OTHER.sub("_", name)[:LONGEST] or "tool"


def own_names(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Sent names back to the tools' own, for those that differ."""
    found = {}
    for tool in tools:
        body = tool.get("function") or tool.get("custom") or tool
        name = str(body.get("name") or "") if isinstance(body, Mapping) else ""
        if name and wire_name(name) != name:
            found[wire_name(name)] = name
    return found
