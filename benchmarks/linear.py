"""Cold compactions of ever longer generated sessions, up to ten million tokens: the cost of a million stays the same.

Processor time, one run each: the text is what grows, and with it the work.
"""

from __future__ import annotations

import resource
import time

from benchmarks.table import seconds, table
from leporello import compress
from leporello.testing.sessions import generate
from leporello.tokens import TokenCounter

SIZES = (1_000_000, 3_000_000, 10_000_000)
WINDOW = 200_000
PER_MESSAGE = 320
"""Tokens, about as many as the messages of recorded sessions have."""


def run(sizes: tuple[int, ...] = SIZES) -> str:
    """One row for each size, the shortest first: the peak of memory only grows."""
    rows = []
    for size in sizes:
        messages = list(generate(seed=5, messages=size // PER_MESSAGE, tokens=size, images=0).messages)
        tokens = TokenCounter.for_model(None).messages(messages)
        begun = time.process_time()
        compress(messages, window=WINDOW)
        took = time.process_time() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000
        row = [f"{tokens / 1e6:.1f}M", f"{len(messages):,}", seconds(took), seconds(took / tokens * 1e6)]
        rows.append([*row, f"{peak:,.0f} MB"])
    return table(["tokens", "messages", "cold compaction", "for a million", "peak memory"], rows)


def run_quick() -> str:
    """The shortest, and less."""
    return run((200_000,))
