"""The OpenAPI document of the session API, built from the definitions that validate the requests."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(min_length=1, max_length=1_000_000)]


class NewConversation(msgspec.Struct, forbid_unknown_fields=True):
    """A conversation to create."""

    model: Name = ""
    """Empty takes the configured one."""
    title: Name = ""


class Renamed(msgspec.Struct, forbid_unknown_fields=True):
    """A conversation's new title."""

    title: Name


class NewMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A message to the agent, or a command such as `/compress topic`."""

    text: Text
    id: Annotated[str, Meta(max_length=100)] = ""
    """Chosen by the client: a message sent again with the same id gets the same outcome and is not handled twice."""
    wait: bool = True
    """False returns as soon as the message is stored; send it again with the same id for its outcome."""


class Compress(msgspec.Struct, forbid_unknown_fields=True):
    """A manual compaction."""

    focus: Annotated[str, Meta(max_length=1_000)] = ""


_BODIES = (NewConversation, Renamed, NewMessage, Compress)
_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_NUMBER = {"type": "number"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_USAGE = _object(calls=_WHOLE, prompt_tokens=_WHOLE, output_tokens=_WHOLE, cache_hit_rate=_NUMBER, cost=_NUMBER)
_TIMES = {"created_at": _NUMBER, "updated_at": _NUMBER}
_CONVERSATION = _object(
    id=_TEXT, title=_TEXT, model=_TEXT, messages=_WHOLE, compactions=_WHOLE, open={"type": "boolean"}, **_TIMES
)
_DETAILS = _object(**_CONVERSATION["properties"], usage=_USAGE)
_STORED = _object(id=_TEXT, created_at=_NUMBER, message={"type": "object"})
_ERROR = _object(
    error=_object(message=_TEXT, type=_TEXT, param={"type": ["string", "null"]}, code={"type": ["string", "null"]})
)
_OUTCOME = _object(
    id=_TEXT, status={"type": "string", "enum": ["done", "failed", "interrupted"]}, text=_TEXT, reason=_TEXT
)
_TAKEN = _object(id=_TEXT, status={"type": "string", "enum": ["waiting"]}, text=_TEXT, reason=_TEXT)
_REPORT = _object(
    outcome={"type": "string", "enum": ["committed", "nothing_to_do", "no_gain", "blocked", "failed"]},
    reason=_TEXT,
    tokens_before=_WHOLE,
    tokens_after=_WHOLE,
    fold=_TEXT,
)
_WRONG = {
    400: "The request can't be used as it is.",
    401: "No key was given, or a wrong one.",
    403: "This key, or this origin, may not do that.",
    404: "There is no conversation with this id.",
    408: "The body did not arrive in time.",
    409: "The conversation is not in a state that allows this.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    429: "Too much at once.",
    503: "The store is not available.",
}
_UNREADABLE = (400, 408, 413, 415)  # what may be wrong with a body
_SENT = (*_UNREADABLE, 404, 409)  # what may be wrong with a request that changes a conversation


def _content(schema: Any, kind: str = "application/json") -> dict[str, Any]:
    return {"content": {kind: {"schema": schema}}}


def _answers(schema: Any, *errors: int, status: int = 200, kind: str = "application/json") -> dict[str, Any]:
    found = {str(code): {"description": _WRONG[code], **_content(_ERROR)} for code in (*errors, 401, 403, 429, 503)}
    return {str(status): {"description": "Success."} | ({} if schema is None else _content(schema, kind)), **found}


def _query(name: str, schema: dict[str, Any], required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema}


def _whole(least: int, most: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


def _body(kind: type | None) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"} if kind else {"type": "object"}
    return {"required": kind is not None, **_content(schema)}


def _operation(summary: str, responses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"summary": summary, "responses": responses, **more}


def _message_answers() -> dict[str, Any]:
    found = _answers(_OUTCOME, *_SENT)
    found["200"]["content"]["text/event-stream"] = {"schema": _TEXT}
    waiting = "Stored, and not answered yet; only when `wait` is false."
    return {**found, "202": {"description": waiting, **_content(_TAKEN)}}


_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_ALL = "/api/conversations"
_ONE = "/api/conversations/{id}"
_OPERATIONS = {
    ("get", _ALL): _operation(
        "Conversations of this key, newest activity first.",
        _answers(_object(conversations=_list(_CONVERSATION), cursor={"type": ["string", "null"]}), 400),
        parameters=[_query("limit", _whole(1, 200, 50)), _query("cursor", _TEXT)],
    ),
    ("post", _ALL): _operation(
        "Create a conversation.", _answers(_CONVERSATION, *_UNREADABLE, status=201), requestBody=_body(NewConversation)
    ),
    ("get", _ONE): _operation("A conversation and what it used.", _answers(_DETAILS, 404)),
    ("patch", _ONE): _operation("Rename it.", _answers(_CONVERSATION, *_UNREADABLE, 404), requestBody=_body(Renamed)),
    ("delete", _ONE): _operation("Delete it.", _answers(None, 404, status=204)),
    ("get", f"{_ONE}/messages"): _operation(
        "Messages as they were stored, folded ones included.",
        _answers(_object(messages=_list(_STORED), total=_WHOLE), 400, 404),
        parameters=[_query("first", _whole(1, 10**9, 1)), _query("count", _whole(1, 500, 50))],
    ),
    ("post", f"{_ONE}/messages"): _operation(
        "Send a message to the agent, or a command such as /compress. Accept text/event-stream to get events.",
        _message_answers(),
        requestBody=_body(NewMessage),
    ),
    ("get", f"{_ONE}/search"): _operation(
        "Search it, folded parts included.",
        _answers(_object(results=_list(_TEXT)), 400, 404),
        parameters=[_query("q", {"type": "string", "minLength": 1}, required=True)],
    ),
    ("get", f"{_ONE}/export"): _operation(
        "All messages, one JSON object per line.", _answers(_TEXT, 404, kind="application/x-ndjson")
    ),
    ("post", f"{_ONE}/compress"): _operation("Compact it now.", _answers(_REPORT, *_SENT), requestBody=_body(Compress)),
    ("post", f"{_ONE}/undo"): _operation(
        "Undo the last compaction.", _answers(_object(messages_shown=_WHOLE), *_SENT), requestBody=_body(None)
    ),
    ("post", f"{_ONE}/cancel"): _operation(
        "Cancel what the agent is doing.", _answers(_object(cancelled=_WHOLE), *_SENT), requestBody=_body(None)
    ),
}


@cache
def document() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), operation in _OPERATIONS.items():
        paths.setdefault(path, {"parameters": [_ID]} if "{id}" in path else {})[method] = operation
    _, components = msgspec.json.schema_components(_BODIES, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {"title": "Leporello sessions", "version": "1"},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }
