"""Stopping work from another thread: one token serves a model call, the tools it asks for, and a whole turn."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class CancelToken:
    """Tells running work to stop. A child is cancelled with its parent, never the other way round."""

    def __init__(self, parent: CancelToken | None = None) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._parent = parent
        if parent is not None:
            parent.on_cancel(self.cancel)

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked to stop."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Ask to stop; asking twice changes nothing."""
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Run `callback` when cancelled; at once when that has already happened."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()

    @contextlib.contextmanager
    def closing(self, close: Callable[[], None]) -> Iterator[None]:
        """While inside, `cancel` also calls `close`."""
        self.on_cancel(close)
        try:
            yield
        finally:
            self._forget(close)

    def release(self) -> None:
        """Forget the parent: a finished call must not stay registered for the life of the session."""
        parent, self._parent = self._parent, None
        if parent is not None:
            parent._forget(self.cancel)

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._callbacks = [known for known in self._callbacks if known != callback]

    def wait(self, seconds: float) -> bool:
        """Wait until cancelled, at most so long; returns whether it was."""
        return self._event.wait(seconds)
