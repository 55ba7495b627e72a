"""When the recovery tools stand in a request, and how they get there: behind the client's own, always the same bytes.

They are left out where the client forbids tools, where the API would refuse them or answer in another form, and where
the client has a tool of the same name. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import orjson

from leporello.dialects import Dialect
from leporello.dialects.tools import anthropic_tools, chat_tools, responses_tools
from leporello.gateway.raw import Body
from leporello.gateway.recalling.asides import Aside, with_asides
from leporello.gateway.recalling.weave import is_ours
from leporello.gateway.wire import LIST, WireRequest
from leporello.recall.tools import SCHEMAS, openai_tools

MOST_TOOLS = 128
"""More than so many the APIs don't take."""
_OTHER_FORMS = ("functions", "function_call", "prediction", "audio", "web_search_options", "logprobs")
"""Fields of Chat Completions beside which calls are refused, or could not be hidden."""


def can_offer(request: WireRequest) -> bool:
    """Whether a request may carry the tools."""
    fields = request.fields
    tools = fields.get("tools")
    if tools is not None and not isinstance(tools, list):
        return False
    if len(tools or ()) + len(SCHEMAS) > MOST_TOOLS or any(is_ours(name) for name in _names(tools or ())):
        return False
    if _forbids(fields.get("tool_choice")):
        return False
    if not tools and _fixed_form(fields):
        return False
    return _FITS[request.dialect](request)


def _names(tools: list[Any] | tuple[()]) -> Iterator[Any]:
    for tool in tools:
        if isinstance(tool, Mapping):
            inner = tool.get("function") or tool.get("custom")
            yield inner.get("name") if isinstance(inner, Mapping) else tool.get("name")


def _forbids(choice: Any) -> bool:
    return (choice.get("type") if isinstance(choice, Mapping) else choice) == "none"


def _fixed_form(fields: Mapping[str, Any]) -> bool:
    """Whether JSON is wanted: without tools that is one request for data, not a conversation that works."""
    inner = [fields.get("response_format"), fields.get("output_format")]
    for outer in ("text", "output_config"):
        value = fields.get(outer)
        inner.append(value.get("format") if isinstance(value, Mapping) else None)
    return any(isinstance(form, Mapping) and form.get("type", "text") != "text" for form in inner)


def _fits_chat(request: WireRequest) -> bool:
    fields = request.fields
    modalities = fields.get("modalities") or ()
    return fields.get("n") in (None, 1) and "audio" not in modalities and not any(map(fields.get, _OTHER_FORMS))


def _fits_responses(request: WireRequest) -> bool:
    return not request.fields.get("background")


def _fits_claude(request: WireRequest) -> bool:
    """The beginning of an answer that the model only completes leaves no room for a call."""
    return request.messages[-1].get("role") != "assistant"


_FITS = {
    Dialect.OPENAI_CHAT: _fits_chat,
    Dialect.OPENAI_RESPONSES: _fits_responses,
    Dialect.ANTHROPIC: _fits_claude,
}


@cache
def _ours(dialect: Dialect) -> bytes:
    """Our tools as the inside of a list."""
    written = {
        Dialect.OPENAI_CHAT: chat_tools,
        Dialect.OPENAI_RESPONSES: responses_tools,
        Dialect.ANTHROPIC: anthropic_tools,
    }
    return orjson.dumps(written[dialect](openai_tools()))[1:-1]


def with_tools(data: bytes, request: WireRequest, asides: Sequence[Aside] = ()) -> bytes:
    """The body with the tools behind the client's own, and with what was asked of them beside the client's calls."""
    body = Body.read(data, LIST[request.dialect])
    if body is None:
        return data
    given = body.fields.get("tools", b"null").strip()
    ours = _ours(request.dialect)
    listed = given[:-1] + b"," + ours + b"]" if request.fields.get("tools") else b"[" + ours + b"]"
    return body.with_items(with_asides(request.dialect, body.items, asides), tools=listed)


def closed(body: Body, request: WireRequest) -> Mapping[str, bytes]:
    """Fields of a last round, in which our tools can't be called: they are gone, or nothing can be called at all."""
    if request.fields.get("tools"):
        return {"tools": orjson.dumps(request.fields["tools"])}
    none: Any = {"type": "none"} if request.dialect is Dialect.ANTHROPIC else "none"
    return {"tools": body.fields["tools"], "tool_choice": orjson.dumps(none)}
