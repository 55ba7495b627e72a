"""Server-sent events read from bytes that may be cut anywhere, and what passes by in them: usage, errors, the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from leporello.dialects import Dialect
from leporello.usage import CanonicalUsage

MOST_PENDING = 16 * 1024 * 1024
"""An event beyond this is no event of a model API; what came is dropped, and reading goes on after it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name (may be empty) and its data."""

    name: str
    data: bytes


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


_OPENING = frozenset(("message_start", "ping", "response.created", "response.in_progress", "response.queued"))
_LAST = (b"message_stop", b"response.completed", b"response.incomplete", b"response.failed")


def usage_of(body: Any) -> CanonicalUsage | None:
    """The usage in a whole answer."""
    usage = body.get("usage") if isinstance(body, Mapping) else None
    return CanonicalUsage.parse(usage) if isinstance(usage, Mapping) else None


def _parsed(data: bytes) -> Mapping[str, Any]:
    try:
        value = orjson.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


class Tally:
    """Follows one stream."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._reader = EventReader()
        self._usage: dict[str, Any] = {}
        self.ended = False
        """Whether the answer's last event was seen."""
        self.opened = False
        """Whether anything of the answer itself was seen, not only its announcement."""
        self.error: Mapping[str, Any] | None = None
        """The body of an error that came instead of an answer."""
        self.failed = False
        """Whether the server itself told, anywhere in the stream, that it can't go on."""
        self.events = 0

    def feed(self, data: bytes) -> None:
        """Take bytes of the stream."""
        for event in self._reader.feed(data):
            self.events += 1
            self._event(event)

    def _event(self, event: Event) -> None:
        data = event.data
        if event.name == "error" or (b'"error"' in data and _parsed(data).get("error")):
            self.failed = True
        if not self.opened:
            self._first(event)
        if b'"usage"' in data:
            self._count(_parsed(data))
        if self._dialect is Dialect.OPENAI_CHAT:
            if data.strip() == b"[DONE]" or (b'"finish_reason"' in data and _finished(_parsed(data))):
                self.ended = True
        elif any(name in data[:200] for name in _LAST) and str(_parsed(data).get("type") or "").encode() in _LAST:
            self.ended = True

    def _first(self, event: Event) -> None:
        body = _parsed(event.data)
        kind = event.name or str(body.get("type") or "")
        if kind in ("error", "response.failed") or (self._dialect is Dialect.OPENAI_CHAT and body.get("error")):
            self.error = body
            self.opened = True
        elif kind not in _OPENING:
            self.opened = True

    def _count(self, body: Mapping[str, Any]) -> None:
        # Anthropic's later counts are cumulative and leave out what did not change.
        for place in (body, body.get("message"), body.get("response")):
            usage = place.get("usage") if isinstance(place, Mapping) else None
            if isinstance(usage, Mapping):
                self._usage.update({key: value for key, value in usage.items() if value is not None})

    @property
    def usage(self) -> CanonicalUsage | None:
        """What the provider counted; None when it did not say."""
        return CanonicalUsage.parse(self._usage) if self._usage else None


def _finished(body: Mapping[str, Any]) -> bool:
    choices = body.get("choices")
    listed = choices if isinstance(choices, list) else ()
    return any(isinstance(choice, Mapping) and choice.get("finish_reason") for choice in listed)
