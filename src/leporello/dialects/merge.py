"""Calls of tools that are hidden from the client: several answers of a model merged into one, and the calls put back.

The proxy offers the model tools of its own and answers their calls itself. The client gets one answer without them.
Where the model called such a tool beside the client's own, the call stands in later requests again (`HiddenCall`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leporello.dialects.base import Assembler, Wire
from leporello.dialects.sse import Event

HiddenCall = Mapping[str, Any]
"""`call` and `result` in the dialect's form, `before`: the client's call it stood before, `last`: the turn's last."""


@dataclass(frozen=True, slots=True)
class RecallCall:
    """A call of a tool, and where it stood: before which of the client's own calls (empty: behind all)."""

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


class ReplyMerge(ABC):
    """One answer for the client in the making. Rounds are fed as events, or taken whole."""

    def __init__(self, hidden: Collection[str]) -> None:
        self.visible = False
        """Whether the client was given anything of the answer itself."""
        self._hidden = hidden
        """Names of the tools whose calls the client does not see."""
        self._replies: list[Wire] = []
        self._assembler: Assembler | None = None

    @abstractmethod
    def feed(self, event: Event) -> bytes:
        """An event of the model's server; what the client gets of it now."""

    def take(self, reply: Wire) -> None:
        """An answer that did not stream."""
        self._replies.append(reply)

    def turn(self) -> ReplyTurn:
        """The round is over: what the model wants. Raises `StreamIncomplete` when the answer is not whole."""
        if self._assembler is not None:
            self._replies.append(self._assembler.reply())
            self._assembler = None
        calls: list[RecallCall] = []
        others: list[str] = []
        for call in reversed(self._calls(self._replies[-1])):
            if call.name in self._hidden:
                calls.insert(0, replace(call, before=others[0] if others else ""))
            else:
                others.insert(0, call.id)
        return ReplyTurn(tuple(calls), tuple(others))

    @abstractmethod
    def _calls(self, reply: Wire) -> list[RecallCall]:
        """The calls in an answer that ended to have them run."""

    @abstractmethod
    def carried(self) -> list[Wire]:
        """The last answer as items of the next request: everything in it, unchanged."""

    @abstractmethod
    def result(self, call: RecallCall, text: str) -> Wire:
        """The result of a call, in the dialect's form."""

    def answered(self, results: Sequence[Wire]) -> list[Wire]:
        """Results as items of the next request."""
        return list(results)

    @abstractmethod
    def ending(self) -> bytes:
        """The last events of the stream."""

    @abstractmethod
    def whole(self) -> Wire:
        """The answer when it does not stream."""

    def _usage(self) -> Any:
        return summed(reply.get("usage") for reply in self._replies)


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


def with_calls(calls: Sequence[Any], hidden: Sequence[HiddenCall]) -> list[Any]:
    """Calls with the hidden ones among them, each before the one it stood before."""
    made: list[Any] = []
    for call in calls:
        id = call.get("id") if isinstance(call, Mapping) else None
        made += [own["call"] for own in hidden if own["before"] and own["before"] == id]
        made.append(call)
        made += [own["call"] for own in hidden if not own["before"] and own["last"] == id]
    return made
