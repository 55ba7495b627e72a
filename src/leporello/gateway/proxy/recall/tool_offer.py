"""When the recovery tools stand in a request, how they get there, and the answers to calls of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import orjson

from leporello.conversation.artifacts import StoredArchive
from leporello.dialects import Dialect
from leporello.dialects.dialect import Body, HiddenCall, RecallCall
from leporello.gateway.proxy.request import WireRequest
from leporello.messages import parse_json
from leporello.recall.base import DEFAULT_TOKENS
from leporello.recall.paging import json_text
from leporello.recall.tools import LEAST_TOKENS, SCHEMAS, TOOL_NAMES, RecallTools, openai_tools
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


def can_offer(request: WireRequest) -> bool:
    """Whether a request may carry the tools."""
    fields = request.fields
    tools = fields.get("tools")
    if tools is not None and not isinstance(tools, list):
        return False
    if len(tools or ()) + len(SCHEMAS) > MOST_TOOLS or any(name in TOOL_NAMES for name in _names(tools or ())):
        return False
    if _forbids(fields.get("tool_choice")):
        return False
    if not tools and _fixed_form(fields):
        return False
    return request.dialect.recall.can_call(fields)


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


@cache
def _ours(dialect: Dialect) -> bytes:
    """Our tools as the inside of a list."""
    return orjson.dumps(dialect.recall.encode_tools(openai_tools()))[1:-1]


STATE_KEY = "gateway.asides"
"""The state key under which a conversation keeps its hidden calls."""
MOST_KEPT = 64
"""Older ones have long been folded away."""


def with_hidden_calls(dialect: Dialect, items: Sequence[bytes], hidden: Sequence[HiddenCall]) -> list[bytes]:
    """The list with all hidden calls whose turn is in it.

    A model may call our tools and the client's in one answer. The client must run its own before the model goes on, so
    it gets the answer with those alone; ours are answered here and kept. When the client comes back with its results,
    call and result stand in the request again as the model wrote them, and in every later one that shows that turn.
    """
    turns: dict[str, list[HiddenCall]] = {}
    for call in hidden:
        if any(str(call["last"]).encode() in item for item in items):
            turns.setdefault(str(call["last"]), []).append(call)
    if not turns:
        return list(items)
    waiting: list[HiddenCall] = []
    return [made for item in items for made in dialect.recall.insert(item, turns, waiting)]


def with_tools(data: bytes, request: WireRequest, hidden: Sequence[HiddenCall] = ()) -> bytes:
    """The body with the tools behind the client's own, and with what was asked of them beside the client's calls."""
    body = Body.read(data, request.dialect.fields.conversation)
    if body is None:
        return data
    given = body.fields.get("tools", b"null").strip()
    ours = _ours(request.dialect)
    listed = given[:-1] + b"," + ours + b"]" if request.fields.get("tools") else b"[" + ours + b"]"
    return body.with_items(with_hidden_calls(request.dialect, body.items, hidden), tools=listed)


def closed(body: Body, request: WireRequest) -> Mapping[str, bytes]:
    """Fields of a last round, in which our tools can't be called: they are gone, or nothing can be called at all."""
    if request.fields.get("tools"):
        return {"tools": orjson.dumps(request.fields["tools"])}
    return {"tools": body.fields["tools"], "tool_choice": orjson.dumps(request.dialect.recall.no_choice)}
