"""Ctrl-C during a turn: the first asks the work to stop, the second insists."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from leporello.cancel import CancelToken


@contextmanager
def soft_interrupts(token: CancelToken, must_insist: Callable[[], bool]) -> Iterator[None]:
    """While inside, SIGINT cancels the token; where nothing listens to it, or the second time, it raises as usual."""

    def interrupted(number: int, frame: FrameType | None) -> None:
        if token.cancelled or must_insist():
            raise KeyboardInterrupt
        # Not here: the interrupted code may hold the very locks that cancelling needs.
        threading.Thread(target=token.cancel, name="leporello-cancel", daemon=True).start()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
