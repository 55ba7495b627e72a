"""What one worker of the gateway weighs with many long conversations, sent to it over HTTP."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import orjson
import psutil

from benchmarks.gateway_driver import history
from benchmarks.gateway_servers import KEY, leporello, model_server
from benchmarks.table import seconds, table

AT_ONCE = 4
FOLDED_ONE_IN = 5
SAMPLE_SECONDS = 0.2
WIDE, NARROW = "gpt-4.1", "gpt-4o"
"""Windows of a million and of 128,000 tokens: the first takes a conversation as it is, for the second it is folded."""


def run_quick() -> str:
    """The same with few conversations."""
    return run(20)


def run(conversations: int = 1_000) -> str:
    """Every conversation comes whole, and later once more with another turn; the memory of the server is watched."""
    with (
        tempfile.TemporaryDirectory() as folder,
        model_server() as upstream,
        leporello(upstream.port, Path(folder)) as served,
    ):
        process = psutil.Process(served.pid)
        before = process.memory_info().rss
        began = time.perf_counter()
        peak = asyncio.run(_watched(process, f"http://127.0.0.1:{served.port}", conversations))
        took = time.perf_counter() - began
        after = process.memory_info().rss
    rows = [
        ["conversations of 100K tokens (400 KB)", f"{conversations:,}"],
        ["of these folded", f"{conversations // FOLDED_ONE_IN:,}"],
        ["requests, whole histories over HTTP", f"{2 * conversations:,} in {seconds(took)}"],
        ["memory before (RSS)", _megabytes(before)],
        ["memory at the peak", _megabytes(peak)],
        ["memory at the end", _megabytes(after)],
    ]
    return f"Memory of one worker:\n\n{table(['', ''], rows)}"


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MB"


async def _watched(process: psutil.Process, url: str, conversations: int) -> int:
    peak = 0
    ended = asyncio.Event()

    async def watch() -> None:
        nonlocal peak
        while not ended.is_set():
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(SAMPLE_SECONDS)

    watcher = asyncio.create_task(watch())
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {KEY}"}) as session:
        for later in (False, True):
            numbers = iter(range(conversations))
            await asyncio.gather(*(_client(session, url, numbers, later) for _ in range(AT_ONCE)))
    ended.set()
    await watcher
    return peak


async def _client(session: aiohttp.ClientSession, url: str, numbers: Iterator[int], later: bool) -> None:
    for number in numbers:
        said = [*history(number), {"role": "user", "content": "Next."}]
        if later:
            said += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
        model = WIDE if number % FOLDED_ONE_IN else NARROW
        body = orjson.dumps({"model": model, "messages": said, "stream": True})
        headers = {"content-type": "application/json"}
        async with session.post(f"{url}/v1/chat/completions", data=body, headers=headers) as reply:
            done = reply.headers.get("x-leporello")
            if reply.status != 200 or done != ("passed" if model == WIDE else "folded"):
                raise SystemExit(f"conversation {number}: status {reply.status}, {done}")
            await reply.read()
