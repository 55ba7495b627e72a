"""A shorter answer asked for, when input and answer together are longer than the window."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from leporello.gateway.raw import Body
from leporello.gateway.wire import LIST, OUTPUT_FIELDS, WireRequest

LEAST_OUTPUT = 64


def lowered(data: bytes, request: WireRequest, allowed: int) -> bytes | None:
    """The body with a lower cap; None when no lower one makes sense.

    `allowed` may be an estimate that can't be right, because it would have let the cap pass or leaves nothing: then
    half of the cap is tried.
    """
    body = Body.read(data, LIST[request.dialect])
    if body is None:
        return None
    names = [name for name in OUTPUT_FIELDS[request.dialect] if name in body.fields]
    caps = [orjson.loads(body.fields[name]) for name in names]
    wanted = min((cap for cap in caps if isinstance(cap, int) and not isinstance(cap, bool)), default=0)
    least = max(LEAST_OUTPUT, _thinking(request) + 1)
    cap = allowed if least <= allowed < wanted else wanted // 2
    if cap < least:
        return None
    return body.with_items(body.items, **dict.fromkeys(names, orjson.dumps(cap)))


def _thinking(request: WireRequest) -> int:
    """What the client sets aside for thinking must stay below the cap, or the request is refused for that."""
    thinking = request.fields.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    return budget if isinstance(budget, int) else 0
