"""Several answers of a model merged into one for the client: what the dialects share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from leporello.dialects.base import Wire
from leporello.gateway.proxy.streams import Event
from leporello.recall.tools import TOOL_NAMES


@dataclass(frozen=True, slots=True)
class RecallCall:
    """A call of one of our tools, and where it stood: before which of the client's own calls (empty: behind all)."""

    id: str
    name: str
    arguments: str
    wire: Wire
    """As the model wrote it."""
    before: str = ""


@dataclass(frozen=True, slots=True)
class ReplyTurn:
    """What the model wants after one of its answers."""

    calls: tuple[RecallCall, ...] = ()
    others: tuple[str, ...] = ()
    """Ids of calls that are the client's to run."""


class ReplyMerge(Protocol):
    """One answer for the client in the making. Rounds are fed as events, or taken whole."""

    visible: bool
    """Whether the client was given anything of the answer itself."""

    def feed(self, event: Event) -> bytes:
        """An event of the model's server; what the client gets of it now."""

    def take(self, reply: Wire) -> None:
        """An answer that did not stream."""

    def turn(self) -> ReplyTurn:
        """The round is over: what the model wants. Raises `StreamIncomplete` when the answer is not whole."""

    def carried(self) -> list[Wire]:
        """The last answer as items of the next request: everything in it, unchanged."""

    def result(self, call: RecallCall, text: str) -> Wire:
        """The result of a call, in the dialect's form."""

    def answered(self, results: Sequence[Wire]) -> list[Wire]:
        """Results as items of the next request."""

    def ending(self) -> bytes:
        """The last events of the stream."""

    def whole(self) -> Wire:
        """The answer when it does not stream."""


def is_ours(name: object) -> bool:
    """Whether a tool's name is one of the recovery tools'."""
    return name in TOOL_NAMES


def summed(usages: Iterable[Any]) -> Any:
    """Several usages of one shape as one: numbers are added, also inside; of all else the newest stands."""
    total: Any = None
    for usage in usages:
        total = _added(total, usage)
    return total


def _added(first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return {key: _added(first.get(key), second.get(key)) for key in {**first, **second}}
    if _is_number(first) and _is_number(second):
        return first + second
    return first if second is None else second


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parsed(event: Event) -> Wire:
    """An event's data; empty when it is none."""
    try:
        value = orjson.loads(event.data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def as_it_came(event: Event) -> bytes:
    """An event that nothing was done to."""
    name = f"event: {event.name}\n".encode() if event.name else b""
    return name + b"data: " + event.data.replace(b"\n", b"\ndata: ") + b"\n\n"


def written(body: Wire, name: str = "") -> bytes:
    """An event of ours."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + orjson.dumps(body) + b"\n\n"
