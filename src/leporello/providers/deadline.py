"""Keeps a call within its time, cuts it when it is cancelled, and says how often it is tried again."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leporello.cancel import CancelToken
from leporello.providers.errors import ErrorVerdict


class CallGuard:
    """Watches one call: cuts its connection when it is cancelled or out of time, and remembers why."""

    def __init__(self, cancel: CancelToken | None, timeout: float | None) -> None:
        self._cancel = cancel or CancelToken()
        self._timeout = timeout
        self._lock = threading.Lock()
        self._response: Any = None
        self.fired = ""
        """`cancelled`, `timeout`, or nothing yet."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[CallGuard]:
        """Watch while inside."""
        timer = threading.Timer(self._timeout, self._fire, ("timeout",)) if self._timeout else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            with self._cancel.closing(lambda: self._fire("cancelled")):
                yield self
        finally:
            if timer is not None:
                timer.cancel()

    @property
    def began(self) -> bool:
        """Whether an answer has begun to arrive."""
        return self._response is not None

    def attach(self, response: Any) -> None:
        """The response whose connection is to be cut."""
        with self._lock:
            self._response = response
            late = bool(self.fired)
        if late:
            _cut(response)

    def _fire(self, reason: str) -> None:
        with self._lock:
            self.fired = self.fired or reason
            response = self._response
        if response is not None:
            _cut(response)


def _cut(response: Any) -> None:
    """Shut the socket under a response down: that wakes a thread that waits for its next byte, closing does not."""
    stream = getattr(response, "extensions", {}).get("network_stream")
    raw = stream.get_extra_info("socket") if stream is not None else None
    if isinstance(raw, socket.socket):
        with contextlib.suppress(OSError):
            raw.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounded tries with growing waits, for failures that pass by themselves. Nothing else is ever repeated."""

    tries: int = 4
    first: float = 0.5
    growth: float = 2.0
    longest: float = 60.0
    """A provider that asks for a longer wait than this gets none: the caller hears of it at once."""

    def wait(self, verdict: ErrorVerdict, done: int, jitter: float) -> float | None:
        """Seconds before the next try, or None when there is none. `jitter` in 0..1 spreads waits that nobody asked
        for, so that many clients don't come back together."""
        if not verdict.retryable or verdict.cause == "memory" or done + 1 >= self.tries:
            return None
        if verdict.retry_after is not None:
            return verdict.retry_after if verdict.retry_after <= self.longest else None
        return min(self.longest, self.first * self.growth**done) * (0.5 + jitter / 2)
