"""What a model asked us beside calls of the client's own tools, put back where it stood.

A model may call our tools and the client's in one answer. The client must run its own before the model goes on, so it
gets the answer with those alone; ours are answered here and kept. When the client comes back with its results, call and
result stand in the request again as the model wrote them, and in every later one that still shows that turn. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from leporello.dialects import Dialect

STATE_KEY = "gateway.asides"
MOST_KEPT = 64
"""Older ones have long been folded away."""

HiddenCall = Mapping[str, Any]
"""`call` and `result` in the dialect's form, `before`: the client's call it stood before, `last`: the turn's last."""


def with_hidden_calls(dialect: Dialect, items: Sequence[bytes], asides: Sequence[HiddenCall]) -> list[bytes]:
    """The list with all asides whose turn is in it."""
    wanted = [aside for aside in asides if any(str(aside["last"]).encode() in item for item in items)]
    if not wanted:
        return list(items)
    insert = {Dialect.OPENAI_CHAT: _chat, Dialect.OPENAI_RESPONSES: _responses, Dialect.ANTHROPIC: _claude}[dialect]
    found: list[bytes] = []
    turns = _by_turn(wanted)
    waiting: list[HiddenCall] = []
    for item in items:
        found += insert(item, turns, waiting)
    return found


def _by_turn(asides: Sequence[HiddenCall]) -> dict[str, list[HiddenCall]]:
    turns: dict[str, list[HiddenCall]] = {}
    for aside in asides:
        turns.setdefault(str(aside["last"]), []).append(aside)
    return turns


def _inserted(calls: Sequence[Any], id_key: str, asides: Sequence[HiddenCall]) -> list[Any]:
    """Calls with ours among them, each before the one it stood before."""
    made: list[Any] = []
    for call in calls:
        id = call.get(id_key) if isinstance(call, Mapping) else None
        made += [aside["call"] for aside in asides if aside["before"] and aside["before"] == id]
        made.append(call)
        made += [aside["call"] for aside in asides if not aside["before"] and aside["last"] == id]
    return made


def _chat(item: bytes, turns: Mapping[str, list[HiddenCall]], _: list[HiddenCall]) -> list[bytes]:
    if b'"tool_calls"' not in item:
        return [item]
    message = orjson.loads(item)
    calls = message.get("tool_calls") or ()
    asides = [aside for call in calls if isinstance(call, Mapping) for aside in turns.get(str(call.get("id")), ())]
    if not asides or message.get("role") != "assistant":
        return [item]
    message["tool_calls"] = _inserted(calls, "id", asides)
    return [orjson.dumps(message), *(orjson.dumps(aside["result"]) for aside in asides)]


def _responses(item: bytes, turns: Mapping[str, list[HiddenCall]], waiting: list[HiddenCall]) -> list[bytes]:
    if b'"call_id"' not in item:
        return [item]
    call = orjson.loads(item)
    if call.get("type") not in ("function_call", "custom_tool_call"):
        return [item]
    id = str(call.get("call_id"))
    before = [aside for asides in turns.values() for aside in asides if aside["before"] == id]
    behind = [aside for aside in turns.get(id, ()) if not aside["before"]]
    made = [*(orjson.dumps(aside["call"]) for aside in before), item]
    made += [orjson.dumps(aside["call"]) for aside in behind]
    return [*made, *(orjson.dumps(aside["result"]) for aside in turns.get(id, ()))]


def _claude(item: bytes, turns: Mapping[str, list[HiddenCall]], waiting: list[HiddenCall]) -> list[bytes]:
    if waiting:
        turn = orjson.loads(item)
        content = turn.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        results = [aside["result"] for aside in waiting]
        waiting.clear()
        return [orjson.dumps({**turn, "content": [*results, *blocks]})]
    if b'"tool_use"' not in item:
        return [item]
    turn = orjson.loads(item)
    content = turn.get("content")
    blocks = content if isinstance(content, list) else []
    calls = [str(block.get("id")) for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_use"]
    asides = [aside for id in calls for aside in turns.get(id, ())]
    if not asides:
        return [item]
    waiting += asides
    return [orjson.dumps({**turn, "content": _inserted(blocks, "id", asides)})]
