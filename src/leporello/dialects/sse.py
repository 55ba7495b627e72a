"""Server-sent events, read from bytes that may be cut anywhere, and written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from leporello.dialects.base import Wire

MOST_PENDING = 16 * 1024 * 1024
"""An event beyond this is no event of a model API; what came is dropped, and reading goes on after it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name (may be empty) and its data."""

    name: str
    data: bytes

    def json(self) -> Wire:
        """The data as an object; empty when it is none."""
        try:
            value = orjson.loads(self.data)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def encode(self) -> bytes:
        """The event as it stands in a stream."""
        name = f"event: {self.name}\n".encode() if self.name else b""
        return name + b"data: " + self.data.replace(b"\n", b"\ndata: ") + b"\n\n"


def encode_event(body: Wire, name: str = "") -> bytes:
    """An object as an event."""
    return Event(name, orjson.dumps(body)).encode()


class EventReader:
    """Takes bytes and gives whole events. Line ends may be LF, CRLF or CR."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._lines: list[bytes] = []
        self._after_return = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that are complete now."""
        if self._after_return and data:
            data = data[1:] if data.startswith(b"\n") else data
            self._after_return = False
        if b"\r" in data:
            self._after_return = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            self._keep(data)
            return
        first, *others = data.split(b"\n")
        yield from self._line(bytes(self._pending) + first)
        self._pending.clear()
        for line in others[:-1]:
            yield from self._line(line)
        self._keep(others[-1])

    def _keep(self, data: bytes) -> None:
        if len(self._pending) + len(data) > MOST_PENDING:
            self._pending.clear()
            self._lines.clear()
            return
        self._pending += data

    def _line(self, line: bytes) -> Iterator[Event]:
        if line:
            self._lines.append(line)
            return
        name, data = "", []
        for kept in self._lines:
            field, _, value = kept.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value.decode("utf-8", "replace")
        self._lines.clear()
        if data:
            yield Event(name, b"\n".join(data))
