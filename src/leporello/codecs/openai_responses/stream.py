"""Events of the Responses API put together into the response they describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.codecs.base import StreamIncomplete, Wire
from leporello.messages import parse_json

_LAST = ("response.completed", "response.incomplete", "response.failed")


class Assembler:
    """Takes events one by one; `reply` is the whole `response`, `error` the error a stream carried."""

    def __init__(self) -> None:
        self._response: Wire | None = None
        self._items: dict[int, Wire] = {}
        self.error: Any = None
        self.events = 0

    def feed(self, event: Mapping[str, Any]) -> str:
        """Take one event; the text it adds to the answer."""
        self.events += 1
        kind = str(event.get("type", ""))
        if kind == "response.output_text.delta":
            return str(event.get("delta") or "")
        if kind == "response.output_item.done" and isinstance(event.get("item"), Mapping):
            index = event.get("output_index")
            self._items[index if isinstance(index, int) else len(self._items)] = dict(event["item"])
        elif kind in _LAST and isinstance(event.get("response"), Mapping):
            self._response = dict(event["response"])
            self.error = self._response.get("error") if kind == "response.failed" else None
        elif kind == "error":
            self.error = event.get("error") or {key: event.get(key) for key in ("code", "message", "param")}
        return ""

    def reply(self) -> Wire:
        """The response; raises when the stream ended before it did, or in the middle of a call."""
        if self._response is None:
            raise StreamIncomplete("the stream ended before the response did")
        if not self._response.get("output"):
            # Some servers leave the items out of the last event.
            self._response["output"] = [self._items[index] for index in sorted(self._items)]
        if self._response.get("status") != "incomplete":
            for item in self._response["output"]:
                _check(item)
        return self._response


def _check(item: Any) -> None:
    if not isinstance(item, Mapping) or item.get("type") != "function_call":
        return
    arguments = str(item.get("arguments") or "").strip()
    if arguments.startswith("{") and not arguments.endswith("}") and parse_json(arguments) is None:
        raise StreamIncomplete(f"the arguments of call {item.get('name')!r} end in the middle")
