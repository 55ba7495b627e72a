"""What passes by in a stream of events: usage, errors, the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.dialects import Dialect
from leporello.dialects.base import Event, EventReader
from leporello.usage import CanonicalUsage


def usage_of(body: Any) -> CanonicalUsage | None:
    """The usage in a whole answer."""
    usage = body.get("usage") if isinstance(body, Mapping) else None
    return CanonicalUsage.parse(usage) if isinstance(usage, Mapping) else None


class Tally:
    """Follows one stream."""

    def __init__(self, dialect: Dialect) -> None:
        self._rules = dialect.stream
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

    def feed(self, data: bytes) -> list[Event]:
        """Take bytes of the stream; the events that are whole now."""
        found = list(self._reader.feed(data))
        self.events += len(found)
        for event in found:
            self._event(event)
        return found

    def _event(self, event: Event) -> None:
        if event.name == "error" or (b'"error"' in event.data and event.json().get("error")):
            self.failed = True
        if not self.opened:
            self._first(event)
        if b'"usage"' in event.data:
            self._count(event.json())
        if self._rules.is_end(event):
            self.ended = True

    def _first(self, event: Event) -> None:
        body = event.json()
        kind = event.name or str(body.get("type") or "")
        if kind in self._rules.errors or (self._rules.bare_errors and body.get("error")):
            self.error = body
        self.opened = self.error is not None or kind not in self._rules.opening

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
