"""Tools from plain functions: the schema comes from type hints and the docstring.

    def read_file(context: ToolContext, path: str, offset: Annotated[int, Meta(ge=1)] = 1) -> ToolResult:
        '''Read a text file.

        Args:
            path: File to read.
            offset: First line.
        '''

The text before `Args:` describes the tool. Every parameter but the context needs a line under `Args:`; a missing or
surplus one is a mistake of the programmer and fails when the module loads. Arguments are checked by msgspec against
the same hints, with kindness for what models often do (numbers as text, an object encoded twice).
"""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import msgspec

from leporello.errors import ToolError
from leporello.lazy_regex import lazy_regex
from leporello.messages import parse_json
from leporello.tools.base import DEFAULT_RESULT_CHARS, DEFAULT_TIMEOUT, ApprovalRequest, Arguments, Tool, ToolContext

_PARAGRAPHS = lazy_regex(r"\n\s*\n")
_ARGS_HEADING = lazy_regex(r"^Args:\s*$", re.MULTILINE)
_ARG_LINE = lazy_regex(r"^(\w+):\s*(.*)$")
_REF = "#/$defs/"
_annotated: Any = Annotated  # built at run time here, which type checkers do not follow


def tool_from(
    function: Callable[..., object],
    *,
    name: str = "",
    ask: Callable[[ToolContext, Arguments], ApprovalRequest | None] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    threshold: int | None = DEFAULT_RESULT_CHARS,
) -> Tool:
    """A tool whose schema is read off `function`, whose first parameter is the context."""
    name = name or function.__name__
    description, texts = parse_docstring(inspect.getdoc(function) or "")
    struct = _arguments_type(name, function, texts)
    parameters = json_schema(struct)
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        check=lambda raw: check_arguments(name, struct, _unpack(raw, parameters)),
        run=lambda context, arguments: function(context, **arguments),
        ask=ask,
        timeout=timeout,
        threshold=threshold,
    )


def foreign_tool(schema: Mapping[str, Any], handler: Callable[[ToolContext, Arguments], object]) -> Tool:
    """A tool that somebody else describes and handles, such as those of a context engine.

    `schema` is OpenAI's tool format or only its inner part. Arguments are handed over as they came.
    """
    inner = schema.get("function", schema)
    name = str(inner.get("name") or "")
    if not name:
        raise ToolError("a tool schema without a name can't be offered to the model")
    return Tool(
        name=name,
        description=str(inner.get("description") or ""),
        parameters=dict(inner.get("parameters") or {"type": "object", "properties": {}}),
        check=dict,
        run=handler,
    )


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    heading = _ARGS_HEADING.search(text)
    if heading is None:
        return _unwrap(text), {}
    found: dict[str, str] = {}
    current = ""
    for line in textwrap.dedent(text[heading.end() :]).strip("\n").splitlines():
        start = _ARG_LINE.match(line)
        if start:
            current = start[1]
            found[current] = start[2].strip()
        elif line.strip() and current:
            found[current] += " " + line.strip()
    return _unwrap(text[: heading.start()]), found


def _unwrap(text: str) -> str:
    """Paragraphs on one line each: line breaks of the source are no business of the model."""
    return "\n".join(" ".join(block.split()) for block in _PARAGRAPHS.split(text.strip()) if block.strip())


def _arguments_type(name: str, function: Callable[..., object], texts: Mapping[str, str]) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    unknown = set(texts) - {parameter.name for parameter in parameters}
    missing = [p.name for p in parameters if p.name not in texts or p.name not in hints]
    if unknown or missing:
        raise TypeError(f"tool {name}: undescribed or untyped {missing}, described but absent {sorted(unknown)}")
    fields: list[tuple[str, Any, Any]] = []
    for parameter in parameters:
        hint = _annotated[hints[parameter.name], msgspec.Meta(description=texts[parameter.name])]
        required = parameter.default is inspect.Parameter.empty
        fields.append((parameter.name, hint, msgspec.NODEFAULT if required else parameter.default))
    return msgspec.defstruct(f"{name}_arguments", fields, forbid_unknown_fields=True, kw_only=True)


def json_schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """One self-contained JSON schema, without what costs tokens and says nothing (titles, empty defaults)."""
    (top,), parts = msgspec.json.schema_components([struct], ref_template=_REF + "{name}")
    schema: dict[str, Any] = _inline(top, parts)
    return schema


def _inline(node: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return {**_inline(parts[node["$ref"].removeprefix(_REF)], parts), **rest}
    kept = {key: _inline(value, parts) for key, value in node.items() if key != "title" or not isinstance(value, str)}
    if kept.get("default", ...) in (None, ""):
        del kept["default"]
    if kept.get("required") == []:
        del kept["required"]
    if isinstance(kept.get("enum"), list) and all(isinstance(choice, str) for choice in kept["enum"]):
        kept.setdefault("type", "string")  # some servers insist on it
    choices = kept.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices and len(choices) == 2:
        # Small models read "may be left out" better than a union with null.
        del kept["anyOf"]
        kept.update(next(choice for choice in choices if choice != {"type": "null"}))
    return kept


def _unpack(raw: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Lists and objects that a model sent as JSON text inside the JSON, as what they mean."""
    unpacked = dict(raw)
    for key, part in schema.get("properties", {}).items():
        value = unpacked.get(key)
        if isinstance(value, str) and part.get("type") in ("array", "object"):
            meant = parse_json(value)
            if isinstance(meant, list | dict):
                unpacked[key] = meant
    return unpacked


def check_arguments(name: str, struct: type[msgspec.Struct], raw: Mapping[str, Any]) -> Arguments:
    """The arguments as the function takes them, or a `ToolError` that says everything that is wrong with them."""
    known = struct.__struct_fields__
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    problems = [_unknown_text(key, known) for key in raw if key not in fields]
    problems += [f"{key!r} is missing" for key, field in fields.items() if field.required and key not in raw]
    if problems:
        raise ToolError(f"bad arguments for {name}: {'; '.join(problems)}. It takes: {', '.join(known) or 'nothing'}.")
    try:
        value = msgspec.convert(dict(raw), struct, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"bad arguments for {name}: {_plain(str(error))}.") from None
    return {key: getattr(value, key) for key in known}


def _unknown_text(key: object, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(str(key), known, n=1)
    shown = repr(str(key)[:80])
    return f"unknown {shown}" + (f" (did you mean {near[0]!r}?)" if near else "")


def _plain(text: str) -> str:
    """`Expected `int`, got `str` - at `$.offset`` as `offset: expected int, got str`."""
    message, _, where = text.replace("`", "").partition(" - at $")
    message = message[:1].lower() + message[1:]
    return f"{where.lstrip('.')}: {message}" if where else message
