"""Counts work instead of timing it: patterns that scan a text, texts whose tokens are counted, bytes that are hashed.

A count is the same on every machine and under any load, so that a test can hold it to a figure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from leporello import fingerprint, messages

_HASHED = {messages.hash_bytes.__code__: "data", messages.key_of.__code__: "data"}
_WRITTEN_TO_HASH = {fingerprint._bytes.__code__}


@dataclass
class Work:
    """What was done within `counting`. Scans that C code starts itself (`map(pattern.findall, ...)`) are not seen."""

    scans: int = 0
    counted: int = 0
    """Calls of the tokeniser."""
    hashed: int = 0
    """Bytes."""


@contextmanager
def counting() -> Iterator[Work]:
    """Counts in this thread until the block ends."""
    work = Work()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            if isinstance(getattr(argument, "__self__", None), re.Pattern) or argument.__name__ == "Match":
                work.scans += 1
            elif argument.__name__ == "encode_ordinary":
                work.counted += 1
        elif event == "call" and frame.f_code in _HASHED:
            work.hashed += len(frame.f_locals[_HASHED[frame.f_code]])
        elif event == "return" and frame.f_code in _WRITTEN_TO_HASH and argument is not None:
            work.hashed += len(argument)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield work
    finally:
        sys.setprofile(before)
