"""Chat Completions chunks put together into the answer they describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.codecs.base import StreamIncomplete, Wire
from leporello.messages import parse_json


class Assembler:
    """Takes chunks one by one; `reply` is the whole `chat.completion`, or an error when the stream was cut."""

    def __init__(self) -> None:
        self._head: Wire = {}
        self._message: Wire = {"role": "assistant", "content": None}
        self._calls: list[Wire] = []
        self._places: dict[int, int] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self.events = 0

    def feed(self, chunk: Mapping[str, Any]) -> str:
        """Take one chunk; the text it adds to the answer."""
        self.events += 1
        for key in ("id", "model", "created", "system_fingerprint"):
            if chunk.get(key):
                self._head[key] = chunk[key]
        # Moonshot reports usage inside the choice, Groq inside a field of its own.
        own = chunk.get("x_groq")
        self._usage = chunk.get("usage") or (own.get("usage") if isinstance(own, Mapping) else None) or self._usage
        for choice in chunk.get("choices") or ():
            if isinstance(choice, Mapping) and not choice.get("index"):
                return self._choice(choice)
        return ""

    def _choice(self, choice: Mapping[str, Any]) -> str:
        self._usage = choice.get("usage") or self._usage
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") or {}
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value or ():
                    self._call(call)
            elif key == "function_call" and isinstance(value, Mapping):
                _join(self._message.setdefault("function_call", {}), value)
            elif key == "audio" and isinstance(value, Mapping):
                _join(self._message.setdefault("audio", {}), value)
            elif key != "role":
                _join(self._message, {key: value})
        return str(delta.get("content") or "")

    def _call(self, delta: Mapping[str, Any]) -> None:
        index = delta.get("index")
        place = self._places.get(index) if isinstance(index, int) else (len(self._calls) - 1 if self._calls else None)
        known = self._calls[place] if place is not None else None
        fresh = delta.get("id")
        # Some servers number every call 0, others don't number at all: a new id is a new call.
        if known is None or (fresh and known.get("id") and fresh != known["id"]):
            known = {}
            self._calls.append(known)
            if isinstance(index, int):
                self._places[index] = len(self._calls) - 1
        for key, value in delta.items():
            if key in ("function", "custom") and isinstance(value, Mapping):
                _join(known.setdefault(key, {}), value, once=("name",))
            elif key != "index" and value not in (None, ""):
                known[key] = value

    def reply(self) -> Wire:
        """The answer; raises when the stream ended before it did, or in the middle of a call."""
        if self._finish is None:
            raise StreamIncomplete("the stream ended before the answer did")
        if self._finish != "length":
            for call in self._calls:
                _check(call)
        message = {**self._message, **({"tool_calls": self._calls} if self._calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {"object": "chat.completion", **self._head, "choices": [choice], "usage": self._usage}


def _check(call: Wire) -> None:
    function = call.get("function") or {}
    arguments = function.get("arguments") or ""
    if not function.get("name") and "custom" not in call:
        raise StreamIncomplete("a tool call came without a name")
    if arguments.strip() and parse_json(arguments) is None and _looks_cut(arguments):
        raise StreamIncomplete(f"the arguments of call {function.get('name')!r} end in the middle")


def _looks_cut(arguments: str) -> bool:
    """Whether a text began as an object and never closed. Other bad JSON is the model's own and is kept."""
    stripped = arguments.strip()
    return stripped.startswith("{") and not stripped.endswith("}")


def _join(into: Wire, delta: Mapping[str, Any], once: tuple[str, ...] = ()) -> None:
    """Texts grow, lists get longer, anything else is replaced."""
    for key, value in delta.items():
        if value is None:
            continue
        old = into.get(key)
        if isinstance(old, str) and isinstance(value, str) and key not in once and key not in ("id", "type"):
            into[key] = old + value
        elif isinstance(old, list) and isinstance(value, list):
            into[key] = [*old, *value]
        elif not (key in once and old and not value):
            into[key] = value
