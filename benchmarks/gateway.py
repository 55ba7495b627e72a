"""The proxy beside those of LiteLLM and headroom: requests that nothing is done to, and what a fold decision costs.

All run on loopback before the same model server, one worker each, one after the other, in one run.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from benchmarks.peers import environment
from benchmarks.table import seconds, table

LITELLM = "litellm[proxy]==1.106.2"
HEADROOM = "headroom-ai[proxy]==0.42.0"
CLIENTS, REQUESTS = 100, 1_000
HERE = Path(__file__).resolve().parent
KEY = "local-key"
OPEN = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of clients saw."""

    first: list[float]
    """Seconds until the first byte of each answer."""
    took: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.first) / self.took


def run() -> str:
    """Both tables."""
    return _compared(REQUESTS) + "\n\n" + _decisions(1_000)


def run_quick() -> str:
    """The same with little data."""
    return _compared(200) + "\n\n" + _decisions(50)


def _compared(requests: int) -> str:
    loads: dict[str, tuple[Load, Load]] = {}
    with tempfile.TemporaryDirectory() as folder, _process([sys.executable, HERE / "gateway_upstream.py"]) as upstream:
        loads["no proxy"] = _loaded(upstream, requests)
        for name, starter in (("Leporello", _leporello), (_named(LITELLM), _litellm), (_named(HEADROOM), _headroom)):
            place = Path(folder) / name.replace(" ", "-")
            place.mkdir()
            with starter(upstream, place) as port:
                loads[name] = _loaded(port, requests)
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
            ]
        )
    header = ["", "added, 1 client", f"added, {CLIENTS} clients", "x ours", "requests/s", "ours / theirs"]
    about = (
        f"Streaming requests of 20 KB, median time to the first byte beyond the server's own, {requests:,} requests:"
    )
    return f"{about}\n\n{table(header, rows)}"


def _median(load: Load) -> float:
    return statistics.median(load.first)


def _named(requirement: str) -> str:
    return requirement.replace("[proxy]==", " ")


def _decisions(conversations: int) -> str:
    """In a process of its own, so that its memory is what is measured."""
    code = f"from benchmarks.gateway_driver import measure; import json; print(json.dumps(measure({conversations})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=HERE.parent)
    found = json.loads(done.stdout.splitlines()[-1])
    rows = [
        ["conversations of 100K tokens in one process", f"{conversations:,}"],
        ["memory at the end", f"{found['rss'] / 2**20:.0f} MB"],
        [f"fold decision, {found['bytes'] / 1000:.0f} KB, warm: median", seconds(found["median"])],
        ["p99", seconds(found["p99"])],
    ]
    return f"Body received to plan, one at a time:\n\n{table(['', ''], rows)}"


# -- the proxies


@contextmanager
def _process(command: list[object], env: dict[str, str] | None = None, path: str = "") -> Iterator[int]:
    """A server on a free port, the last argument, until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    variables = {"PATH": "/usr/bin:/bin", **(env or {})}
    server = subprocess.Popen(
        [*map(str, command), str(port)], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(port, path, server)
        yield port
    finally:
        server.terminate()
        server.wait(30)


def _wait(port: int, path: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(1_200):
        if server.poll() is not None:
            raise SystemExit(f"a server ended with code {server.returncode} before it served")
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nothing serves port {port} {path}")


def _leporello(upstream: int, folder: Path) -> AbstractContextManager[int]:
    program = Path(sys.executable).with_name("leporello")
    command = [
        program, "--home", folder, "--set", "gateway.rate=10000000", "--set", "gateway.streams=1000",
        "serve", "--upstream", f"http://127.0.0.1:{upstream}", "--port",
    ]  # fmt: skip
    return _process(command, {"HOME": str(folder)})


def _litellm(upstream: int, folder: Path) -> AbstractContextManager[int]:
    python = environment(LITELLM)
    config = folder / "config.yaml"
    params = {"model": "openai/gpt-4o", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": KEY}
    config.write_text(json.dumps({"model_list": [{"model_name": "gpt-4o", "litellm_params": params}]}))
    command = [python.with_name("litellm"), "--config", config, "--num_workers", "1", "--host", "127.0.0.1", "--port"]
    return _process(command, {"HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True", OPEN: "true"})


def _headroom(upstream: int, folder: Path) -> AbstractContextManager[int]:
    python = environment(HEADROOM)
    env = {
        "HOME": str(folder),
        "OPENAI_TARGET_API_URL": f"http://127.0.0.1:{upstream}",
        "HEADROOM_TELEMETRY": "off",
    }
    return _process([python.with_name("headroom"), "proxy", "--no-optimize", "--no-rate-limit", "--port"], env)


# -- the clients


def _loaded(port: int, requests: int) -> tuple[Load, Load]:
    """One client, then many at once; each warmed up before."""
    return asyncio.run(_load(port, 1, requests // 10)), asyncio.run(_load(port, CLIENTS, requests))


async def _load(port: int, clients: int, requests: int) -> Load:
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
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
        began = time.perf_counter()
        await asyncio.gather(*(client(session) for _ in range(clients)))
        return Load(first, time.perf_counter() - began)
