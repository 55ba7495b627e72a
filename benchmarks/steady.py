"""What one ordinary turn costs when a conversation is short and when it is long: append, count, decide.

Processor time, because other work on the machine does not change it.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.table import seconds, table
from leporello.engines.compressor import ContextCompressor
from leporello.messages import Message
from leporello.testing.sessions import generate
from leporello.tokens import PromptMeter

SIZES = (300, 3_000, 30_000)
TURNS = 400


def run() -> str:
    """The cost of a turn at three lengths, as a ratio to the first."""
    rows = []
    base = 0.0
    for size in SIZES:
        times = _turns(size)
        median = statistics.median(times)
        base = base or median
        rows.append([f"{size:,}", seconds(median), seconds(statistics.fmean(times)), f"{median / base:.2f}"])
    return table(["messages", f"median of {TURNS} turns", "mean", "x first"], rows)


def _turns(size: int) -> list[float]:
    """Times of turns at the end of a conversation of that many messages; the same messages are added each time."""
    old = generate(seed=7, messages=size, tokens=size * 60, images=0, huge_outputs=0).messages[:size]
    new = generate(seed=8, messages=TURNS * 2, tokens=TURNS * 2 * 200, images=0, huge_outputs=0).messages
    engine = ContextCompressor(10**9)
    meter = PromptMeter(engine.counter)
    messages: list[Message] = []
    for message in old:
        messages.append(message)
        engine.ledger.add(len(messages), message)
    meter.sent(messages)
    meter.observe(engine.counter.messages(messages))
    times = []
    for turn in range(TURNS):
        added = new[turn * 2 : turn * 2 + 2]
        begun = time.process_time()
        for message in added:
            messages.append(message)
            engine.ledger.add(len(messages), message)
        reading = meter.read(messages)
        engine.should_compress(reading.tokens)
        meter.sent(messages)
        meter.observe(reading.tokens)
        times.append(time.process_time() - begun)
    return times
