"""Signals: the first Ctrl-C in a turn asks the work to stop, the second insists; an order to end is obeyed in order."""

from __future__ import annotations

import signal
import sys
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


@contextmanager
def orderly_end() -> Iterator[None]:
    """While inside, SIGTERM and SIGHUP leave through the front door: the terminal is given back as it was."""

    def told_to_end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, told_to_end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
