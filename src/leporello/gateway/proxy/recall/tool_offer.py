"""When the recovery tools stand in a request, how they get there, and the answers to calls of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import orjson

from leporello.conversation.artifacts import StoredArchive
from leporello.dialects import Dialect
from leporello.dialects.tools import anthropic_tools, chat_tools, responses_tools
from leporello.gateway.proxy.recall.hidden_calls import HiddenCall, with_hidden_calls
from leporello.gateway.proxy.recall.merge import RecallCall, is_ours
from leporello.gateway.proxy.request import LIST, Body, WireRequest
from leporello.messages import parse_json
from leporello.recall.base import DEFAULT_TOKENS
from leporello.recall.paging import json_text
from leporello.recall.tools import LEAST_TOKENS, SCHEMAS, RecallTools, openai_tools
from leporello.store import Store
from leporello.tokens import TokenCounter

NO_ROOM = json_text({"error": "the window has no room for a result; answer with what you have"})
_SIZED = ("lcm_grep", "lcm_expand")


class RecallAnswers:
    """Answers calls for one request of a client; what was indexed for the first serves the others."""

    def __init__(self, store: Store, conversation: str, model: str, *, by_meaning: bool = False) -> None:
        archive = StoredArchive(store, conversation, by_meaning=by_meaning)
        self._tools = RecallTools(archive, TokenCounter.for_model(model or None).text)

    def answer(self, calls: Sequence[RecallCall], room: int) -> list[str]:
        """A result for each call; together they take at most half of the room that is left."""
        share = room // (2 * max(1, len(calls)))
        return [self._one(call, share) for call in calls]

    def _one(self, call: RecallCall, share: int) -> str:
        given: Any = parse_json(call.arguments) if call.arguments.strip() else {}
        if not isinstance(given, dict):
            return json_text({"error": "the arguments must be a JSON object"})
        if share < LEAST_TOKENS:
            return NO_ROOM
        if call.name in _SIZED:
            wanted = given.get("max_tokens", DEFAULT_TOKENS)
            if isinstance(wanted, int) and wanted > share:
                given = {**given, "max_tokens": share}
        return self._tools.handle(call.name, given)


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


def with_tools(data: bytes, request: WireRequest, asides: Sequence[HiddenCall] = ()) -> bytes:
    """The body with the tools behind the client's own, and with what was asked of them beside the client's calls."""
    body = Body.read(data, LIST[request.dialect])
    if body is None:
        return data
    given = body.fields.get("tools", b"null").strip()
    ours = _ours(request.dialect)
    listed = given[:-1] + b"," + ours + b"]" if request.fields.get("tools") else b"[" + ours + b"]"
    return body.with_items(with_hidden_calls(request.dialect, body.items, asides), tools=listed)


def closed(body: Body, request: WireRequest) -> Mapping[str, bytes]:
    """Fields of a last round, in which our tools can't be called: they are gone, or nothing can be called at all."""
    if request.fields.get("tools"):
        return {"tools": orjson.dumps(request.fields["tools"])}
    none: Any = {"type": "none"} if request.dialect is Dialect.ANTHROPIC else "none"
    return {"tools": body.fields["tools"], "tool_choice": orjson.dumps(none)}
