"""What passes by in an answer: usage, errors inside a stream, and whether it came to its end. Bytes are not changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from leporello.dialects import Dialect
from leporello.gateway.sse import Event, EventReader
from leporello.usage import CanonicalUsage

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
