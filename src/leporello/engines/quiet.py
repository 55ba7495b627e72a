"""Keeps what one thread prints out of the program's standard output; all other threads print as ever."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_captured: dict[int, io.TextIOWrapper] = {}


class _Captured(io.TextIOWrapper):
    """Text that a thread printed, whether as text or as bytes."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="replace", write_through=True)

    def getvalue(self) -> str:
        """Everything so far."""
        self.flush()
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode("utf-8", "replace")


class _Divided:
    """Stands in for `sys.stdout`: each thread gets its own."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(_captured.get(threading.get_ident(), self.real), name)


@contextmanager
def captured_output() -> Iterator[_Captured]:
    """What the current thread prints inside the block. Others may enter and leave at the same time."""
    mine = _Captured()
    me = threading.get_ident()
    with _lock:
        if not isinstance(sys.stdout, _Divided):
            sys.stdout = _Divided(sys.stdout)
        before = _captured.get(me)
        _captured[me] = mine
    try:
        yield mine
    finally:
        with _lock:
            if before is None:
                del _captured[me]
            else:
                _captured[me] = before
            # Somebody else may have put another stream in place meanwhile; that one stays.
            if not _captured and isinstance(sys.stdout, _Divided):
                sys.stdout = sys.stdout.real
