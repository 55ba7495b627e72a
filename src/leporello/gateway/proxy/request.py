"""A client's request seen twice: as the messages it says, and as the text it was written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from leporello.caching import without_marks
from leporello.conversation.recovery import LEAST_OUTPUT, OutputCap
from leporello.dialects import Dialect, Target
from leporello.dialects.dialect import Body
from leporello.gateway.api_errors import refuse
from leporello.messages import Message, is_instruction, text_of


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as it came, and what it means. `messages` leave out the leading instructions and all marks."""

    dialect: Dialect
    data: bytes
    fields: Mapping[str, Any]
    messages: tuple[Message, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    """For each message the items it stands in: first and one behind the last."""
    system: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    stateful: bool = False
    """The provider keeps (part of) the conversation: only what is new is here."""

    @property
    def model(self) -> str:
        """The model's name; empty when the client gave none."""
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""

    def body(self) -> Body | None:
        """The request's text, taken apart."""
        return Body.read(self.data, self.dialect.fields.conversation)

    def target(self) -> Target:
        """The receiver: what the client sent back belongs to whom it sends it to."""
        return Target("upstream", self.model, cache_marks=True)


def read_request(dialect: Dialect, data: bytes) -> WireRequest:
    """Reads a request. Refuses what is not a JSON object; what is odd inside is for the provider to judge."""
    try:
        fields = orjson.loads(data)
    except ValueError:
        raise refuse(400, "invalid_json", "We could not parse the JSON body of your request.") from None
    if not isinstance(fields, dict):
        raise refuse(400, "invalid_json", "The body of the request must be a JSON object.")
    items = fields.get(dialect.fields.conversation)
    rules = dialect.items
    if not isinstance(items, list) or not all(isinstance(item, dict) and rules.is_item(item) for item in items):
        return WireRequest(dialect, data, fields, stateful=rules.is_stateful(fields))
    return _understood(dialect, data, fields, len(items))


def _understood(dialect: Dialect, data: bytes, fields: dict[str, Any], count: int) -> WireRequest:
    decoded = dialect.decode_request(fields, "upstream")
    origins = decoded.origins
    said = without_marks(decoded.messages)
    start = next((k for k, message in enumerate(said) if not is_instruction(message)), len(said))
    spans: list[tuple[int, int]] = []
    following = later = count
    for k in range(len(said) - 1, start - 1, -1):
        # Several messages may come from one item; the next item begins where a greater origin does.
        if origins[k] != following:
            later, following = following, origins[k]
        spans.append((origins[k], later))
    spans.reverse()
    return WireRequest(
        dialect,
        data,
        fields,
        tuple(said[start:]),
        tuple(spans),
        "\n\n".join(text_of(message) for message in said[:start]),
        tuple(decoded.tools),
        dialect.items.is_stateful(fields),
    )


def output_cap(data: bytes, request: WireRequest, room: int | None) -> OutputCap:
    """The cap of a body that was refused. What the client sets aside for thinking must stay below it."""
    body = Body.read(data, request.dialect.fields.conversation)
    fields = body.fields if body is not None else {}
    caps = [orjson.loads(fields[name]) for name in request.dialect.fields.output_caps if name in fields]
    cap = min((cap for cap in caps if isinstance(cap, int) and not isinstance(cap, bool)), default=0)
    thinking = request.fields.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    least = max(LEAST_OUTPUT, (budget if isinstance(budget, int) else 0) + 1)
    return OutputCap(cap, room=room, least=least, fixed=True)


def with_output_cap(data: bytes, request: WireRequest, cap: int) -> bytes:
    """The body with another cap wherever it has one."""
    body = Body.read(data, request.dialect.fields.conversation)
    assert body is not None, "a body that can't be read has no cap to lower"
    names = [name for name in request.dialect.fields.output_caps if name in body.fields]
    return body.with_items(body.items, **dict.fromkeys(names, orjson.dumps(cap)))
