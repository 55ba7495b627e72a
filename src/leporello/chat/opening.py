"""Work behind the prompt: something slow is made in a thread while the user already types."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Opening(Generic[T]):
    """Makes one thing in the background. An error is told at once, and again to whoever asks for the thing."""

    def __init__(
        self, make: Callable[[], T], made: Callable[[T], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._make = make
        self._made = made
        self._failed = failed
        self._value: T | None = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._begun = False
        self._thread = threading.Thread(target=self._run, name="leporello-opening", daemon=True)

    def start(self) -> None:
        """Begin, unless it has begun."""
        with self._lock:
            if not self._begun:
                self._begun = True
                self._thread.start()

    @property
    def value(self) -> T | None:
        """The thing, once it is there."""
        return self._value

    def result(self) -> T:
        """The thing; begins if need be, and waits for it."""
        self.start()
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._value is not None
        return self._value

    def _run(self) -> None:
        try:
            self._value = self._make()
        except BaseException as error:  # noqa: BLE001  carried to the thread that waits at the prompt
            self._error = error
            self._failed(error)
        else:
            self._made(self._value)
