"""Many long conversations through one planner: how long a decision takes, and what the process weighs in the end."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson
import psutil

from leporello.codecs import Dialect
from leporello.config import Home, load_settings
from leporello.gateway.auth import Client, Key
from leporello.gateway.config import Upstream
from leporello.gateway.planning import Planner
from leporello.gateway.talks import Talks
from leporello.gateway.wire import read_request
from leporello.store import StoreOptions, open_store

WORDS = (
    "The build of service {number} passed in part {part}; port {port} is free, the next file is src/part_{part}.py. "
)
TURNS = 120
WINDOW = 250_000


def history(number: int, turns: int) -> list[dict[str, Any]]:
    """About 100,000 tokens, 400 KB, none of it the same in two conversations."""
    said: list[dict[str, Any]] = []
    for part in range(turns):
        words = WORDS.format(number=number, part=part, port=8_000 + part) * 16
        said += [
            {"role": "user", "content": f"Go on with part {part}. {words}"},
            {"role": "assistant", "content": f"Done. {words}"},
        ]
    return said


def measure(conversations: int) -> dict[str, float]:
    """Each conversation comes twice: whole, then one turn longer; the second time is what is timed."""
    took: list[float] = []
    size = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        with open_store(home.store_url, StoreOptions(synchronous="NORMAL")) as store:
            settings = load_settings({}, environ={}, home=home)
            planner = Planner(Talks(store, settings), settings)
            upstream = Upstream("u", "http://127.0.0.1", window=WINDOW)
            client = Client(Key("bench", ""), "bench")
            for number in range(conversations):
                said = history(number, TURNS)
                for turn in range(2):
                    body = orjson.dumps({"model": "gpt-4o", "messages": [*said, {"role": "user", "content": "Next."}]})
                    began = time.perf_counter()
                    planner.plan(read_request(Dialect.OPENAI_CHAT, body), client, upstream)
                    if turn:
                        took.append(time.perf_counter() - began)
                    size = len(body)
                    said += [{"role": "user", "content": "Next."}, {"role": "assistant", "content": "Done."}]
            rss = psutil.Process().memory_info().rss
    ranked = sorted(took)
    return {
        "median": statistics.median(ranked),
        "p99": ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))],
        "rss": float(rss),
        "bytes": float(size),
    }
