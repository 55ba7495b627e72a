"""The proxy beside those of LiteLLM and headroom: requests that nothing is done to, and what a fold decision costs.

All run on loopback before the same model server, one worker each, one after the other, in one run.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from benchmarks.gateway_servers import (
    HEADROOM,
    HERE,
    KEY,
    LITELLM,
    Served,
    headroom,
    leporello,
    litellm,
    model_server,
)
from benchmarks.table import seconds, table

CLIENTS, REQUESTS = 100, 1_000


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of clients saw."""

    first: list[float]
    """Seconds until the first byte of each answer."""
    took: float
    processor: float
    """Seconds of the server's process."""

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.first) / self.took


def run() -> str:
    """Both tables."""
    return _compared(REQUESTS) + "\n\n" + _decisions(10, 100)


def run_quick() -> str:
    """The same with little data."""
    return _compared(200) + "\n\n" + _decisions(2, 20)


def _compared(requests: int) -> str:
    loads: dict[str, tuple[Load, Load]] = {}
    with tempfile.TemporaryDirectory() as folder, model_server() as upstream:
        loads["no proxy"] = _loaded(upstream, requests)
        for name, starter in (("Leporello", leporello), (_named(LITELLM), litellm), (_named(HEADROOM), headroom)):
            place = Path(folder) / name.replace(" ", "-")
            place.mkdir()
            with starter(upstream.port, place) as served:
                loads[name] = _loaded(served, requests)
    direct = loads["no proxy"]
    ours = loads["Leporello"]
    rows = []
    for name, (one, many) in loads.items():
        added = [_median(load) - _median(base) for load, base in zip((one, many), direct, strict=True)]
        own = [_median(load) - _median(base) for load, base in zip(ours, direct, strict=True)]
        proxied = name != "no proxy"
        rows.append(
            [
                name,
                seconds(added[0]) if proxied else "-",
                seconds(added[1]) if proxied else "-",
                f"{added[1] / max(own[1], 1e-9):.1f}" if proxied else "-",
                f"{many.rate:.0f}",
                f"{ours[1].rate / many.rate:.1f}" if proxied else "-",
                seconds(many.processor / requests),
                f"{many.processor / ours[1].processor:.1f}" if proxied else "-",
            ]
        )
    header = ["", "added, 1 client", f"added, {CLIENTS} clients", "x ours", "requests/s", "ours / theirs"]
    header += ["processor, each", "x ours"]
    about = (
        f"Streaming requests of 20 KB, median time to the first byte beyond the server's own, {requests:,} requests; "
        f"and the processor time of the proxy for each, with {CLIENTS} clients, which other work on the machine "
        "changes least:"
    )
    return f"{about}\n\n{table(header, rows)}"


def _median(load: Load) -> float:
    return statistics.median(load.first)


def _named(requirement: str) -> str:
    return requirement.replace("[proxy]==", " ")


def _decisions(conversations: int, turns: int) -> str:
    """In a process of its own."""
    measured = f"measure({conversations}, {turns})"
    code = f"from benchmarks.gateway_driver import measure; import json; print(json.dumps({measured}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=HERE.parent)
    found = json.loads(done.stdout.splitlines()[-1])
    rows = [
        [name, f"{part['bytes'] / 1000:.0f} KB", f"{part['count']:.0f}", seconds(part["median"]), seconds(part["p99"])]
        for name, part in (("far from its limit", found["passes"]), ("folded", found["folded"]))
    ]
    header = ["conversation", "body", "requests", "median", "p99"]
    about = "Fold decision: body received to the request that is sent, warm, one at a time, processor time:"
    return f"{about}\n\n{table(header, rows)}"


# -- the clients


def _loaded(served: Served, requests: int) -> tuple[Load, Load]:
    """One client, then many at once; each warmed up before."""
    return asyncio.run(_load(served, 1, requests // 10)), asyncio.run(_load(served, CLIENTS, requests))


def _processor(pid: int) -> float:
    """What a process has used, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _load(served: Served, clients: int, requests: int) -> Load:
    url = f"http://127.0.0.1:{served.port}/v1/chat/completions"
    headers = {"authorization": f"Bearer {KEY}"}
    first: list[float] = []
    left = iter(range(requests))

    async def client(session: aiohttp.ClientSession) -> None:
        for number in left:
            said = {"role": "user", "content": f"Question {number}. " + "Some words of a question. " * 800}
            body = {"model": "gpt-4o", "stream": True, "messages": [said]}
            began = time.perf_counter()
            async with session.post(url, json=body, headers=headers) as reply:
                if reply.status != 200:
                    raise SystemExit(f"{url} answered {reply.status}: {(await reply.text())[:500]}")
                await reply.content.readany()
                first.append(time.perf_counter() - began)
                text = await reply.read()
                assert text is not None

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        warm = iter(range(clients))
        left, kept = warm, left
        await asyncio.gather(*(client(session) for _ in range(clients)))
        first.clear()
        left = kept
        began, used = time.perf_counter(), _processor(served.pid)
        await asyncio.gather(*(client(session) for _ in range(clients)))
        return Load(first, time.perf_counter() - began, _processor(served.pid) - used)
