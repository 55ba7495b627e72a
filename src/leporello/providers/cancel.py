"""Keeping a call within its time, and cutting it when it is cancelled."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

from leporello.cancel import CancelToken


class Guard:
    """Watches one call: cuts its connection when it is cancelled or out of time, and remembers why."""

    def __init__(self, cancel: CancelToken | None, timeout: float | None) -> None:
        self._cancel = cancel or CancelToken()
        self._timeout = timeout
        self._lock = threading.Lock()
        self._response: Any = None
        self.fired = ""
        """`cancelled`, `timeout`, or nothing yet."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[Guard]:
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
