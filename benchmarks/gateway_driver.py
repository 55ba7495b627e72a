"""Long conversations through one rewriter, one at a time: how long it takes from a body to the request that is sent."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

from leporello.config import Home, load_settings
from leporello.dialects import OPENAI_CHAT
from leporello.gateway.auth import Client, Key
from leporello.gateway.config import Upstream
from leporello.gateway.proxy.conversations import ProxiedConversations
from leporello.gateway.proxy.rewrite import RequestRewriter
from leporello.store import StoreOptions, open_store

WORDS = (
    "The build of service {number} passed in part {part}; port {port} is free, the next file is src/part_{part}.py. "
)
PARTS = 124
WIDE, NARROW = 1_000_000, 128_000
"""Windows: in the first nothing is due, in the second each conversation is folded before its first request."""


def history(number: int, parts: int = PARTS) -> list[dict[str, Any]]:
    """About 100,000 tokens, 400 KB, none of it the same in two conversations."""
    said: list[dict[str, Any]] = []
    for part in range(parts):
        words = WORDS.format(number=number, part=part, port=8_000 + part) * 16
        said += [
            {"role": "user", "content": f"Go on with part {part}. {words}"},
            {"role": "assistant", "content": f"Done. {words}"},
        ]
    return said


def measure(conversations: int, turns: int) -> dict[str, dict[str, float]]:
    """Each conversation comes once whole, which is not timed, and then turn by turn, each a little longer."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        with open_store(home.store_url, StoreOptions(synchronous="NORMAL")) as store:
            settings = load_settings({}, environ={}, home=home)
            rewriter = RequestRewriter(ProxiedConversations(store, settings), settings)
            return {
                "passes": _timed(rewriter, WIDE, range(conversations), turns),
                "folded": _timed(rewriter, NARROW, range(conversations, 2 * conversations), turns),
            }


def _timed(rewriter: RequestRewriter, window: int, numbers: range, turns: int) -> dict[str, float]:
    upstream = Upstream("u", "http://127.0.0.1", window=window)
    client = Client(Key("bench", ""), "bench")
    took: list[float] = []
    size = 0
    for number in numbers:
        said = history(number)
        for turn in range(turns + 1):
            body = orjson.dumps({"model": "gpt-4o", "messages": [*said, {"role": "user", "content": "Next."}]})
            began = time.process_time()
            rewriter.rewrite(rewriter.read(OPENAI_CHAT, body, client), client, upstream)
            if turn:
                took.append(time.process_time() - began)
            size = len(body)
            said += [{"role": "user", "content": "Next."}, {"role": "assistant", "content": "Done."}]
    ranked = sorted(took)
    return {
        "median": statistics.median(ranked),
        "p99": ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))],
        "bytes": float(size),
        "count": float(len(ranked)),
    }
