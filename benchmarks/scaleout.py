"""Four workers on one PostgreSQL under 200 conversations at once, half of them agent sessions, half proxied.

Every request goes over a connection of its own, so that any worker may get it. After the load the store is looked at:
whether each message is there once, and whether the check-up is clean. Figures and a plot go into docs/guides/deploy.md.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.scaleout_plot import plot
from benchmarks.table import table
from leporello.store import Store, open_store
from tests.store.server import Server

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
WORKERS = 4
CONVERSATIONS = 200
SECONDS = 180.0
MODEL_SECONDS = 0.5
THINKING_SECONDS = 15.0
WINDOW = 12_000
LINE = "Line {} of the register: the value is {}, taken over from page {} and compared twice. "


@dataclass(slots=True)
class Seen:
    """What the clients saw."""

    turns: list[tuple[float, float]] = field(default_factory=list)
    """When each turn ended, in seconds from the start, and how long it took beyond the model's own time."""
    errors: list[str] = field(default_factory=list)
    said: dict[str, int] = field(default_factory=dict)
    """Messages of the user by agent session."""
    asked: int = 0
    """Messages of the user in proxied conversations."""


def run() -> str:
    """The whole load; the plot is written."""
    return _run(SECONDS, CONVERSATIONS, write=True)


def run_quick() -> str:
    """A short one, without a plot."""
    return _run(15.0, 20, write=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _run(seconds: float, conversations: int, write: bool) -> str:
    with ExitStack() as stack:
        server = stack.enter_context(Server(fsync="on", shared_buffers="128MB"))
        url = server.new_database()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model, port = _free_port(), _free_port()
        stack.enter_context(
            _process([sys.executable, str(HERE / "scaleout_upstream.py"), str(model), str(MODEL_SECONDS)], folder)
        )
        stack.enter_context(_process(_gateway(folder, url, model, port), folder))
        seen = asyncio.run(_load(f"http://127.0.0.1:{port}", seconds, conversations))
        with open_store(url) as store:
            folds = _folds(store)
            rows = _rows(seen, store, len(folds), seconds, conversations)
        if write:
            (DOCS / "images" / "scaleout.svg").write_text(plot(seen.turns, folds, seconds), encoding="utf-8")
    return table(["", ""], rows)


class _process:  # noqa: N801 - used as a function
    """A child that ends with its block, and what it started with it."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._command = command
        self._output = folder / f"{Path(command[1]).name}.log"

    def __enter__(self) -> None:
        with self._output.open("ab") as output:
            self._child = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "OPENAI_API_KEY": "key-of-the-benchmark"},
            )

    def __exit__(self, *_: object) -> None:
        os.killpg(self._child.pid, signal.SIGTERM)
        try:
            self._child.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._child.pid, signal.SIGKILL)


def _gateway(folder: Path, url: str, model: int, port: int) -> list[str]:
    address = f"http://127.0.0.1:{model}"
    settings = {
        "model.default": "gpt-4o",
        "model.base_url": f"{address}/v1",
        "model.context_length": WINDOW,
        "agent.tools": "todo",
        "gateway.rate": 1_000_000,
        "gateway.streams": 10_000,
        "gateway.upstreams": json.dumps({"model": {"base_url": address, "models": "*", "window": WINDOW}}),
    }
    sets = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    start = "import sys; from leporello.cli import main; sys.exit(main())"
    serve = ["serve", "--store", url, "--port", str(port), "--workers", str(WORKERS)]
    return [sys.executable, "-c", start, "--home", str(folder / "home"), *sets, *serve]


# -- clients


async def _load(url: str, seconds: float, conversations: int) -> Seen:
    seen = Seen()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(url, connector=connector, timeout=aiohttp.ClientTimeout(120)) as web:
        await _ready(web)
        began = time.monotonic()
        clients = [
            (_agent if number % 2 else _proxied)(web, number, began, began + seconds, seen)
            for number in range(conversations)
        ]
        await asyncio.gather(*clients)
    return seen


async def _ready(web: aiohttp.ClientSession) -> None:
    for _ in range(600):
        try:
            async with web.get("/readyz") as reply:
                if reply.status == 200:
                    return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)
    raise SystemExit("the gateway did not start")


def _text(number: int, turn: int) -> str:
    lines = (LINE.format(k, (number * 7919 + turn * 104729 + k * 31) % 9973, turn) for k in range(48))
    return f"Turn {turn} of conversation {number}. " + "".join(lines)


async def _turns(number: int, end: float) -> Any:
    """Turn numbers, with pauses in which a person would read."""
    rng = random.Random(number)
    await asyncio.sleep(rng.uniform(0, THINKING_SECONDS))
    for turn in itertools.count():
        if time.monotonic() >= end:
            return
        yield turn
        await asyncio.sleep(rng.uniform(0.5, 1.5) * THINKING_SECONDS)


async def _post(web: aiohttp.ClientSession, path: str, body: Any, began: float, seen: Seen) -> Any:
    start = time.monotonic()
    try:
        async with web.post(path, json=body) as reply:
            answer = await reply.json()
            if reply.status >= 300 or answer.get("status", "done") != "done":
                seen.errors.append(f"{reply.status} {str(answer)[:200]}")
    except (aiohttp.ClientError, TimeoutError) as error:
        seen.errors.append(type(error).__name__)
        return {}
    now = time.monotonic()
    seen.turns.append((now - began, now - start - MODEL_SECONDS))
    return answer


async def _agent(web: aiohttp.ClientSession, number: int, began: float, end: float, seen: Seen) -> None:
    async with web.post("/api/conversations", json={}) as reply:
        id = (await reply.json())["id"]
    async for turn in _turns(number, end):
        body = {"text": _text(number, turn), "id": f"turn-{turn}"}
        await _post(web, f"/api/conversations/{id}/messages", body, began, seen)
        seen.said[id] = turn + 1


async def _proxied(web: aiohttp.ClientSession, number: int, began: float, end: float, seen: Seen) -> None:
    history: list[dict[str, Any]] = []
    async for turn in _turns(number, end):
        history.append({"role": "user", "content": _text(number, turn)})
        answer = await _post(web, "/v1/chat/completions", {"model": "gpt-4o", "messages": history}, began, seen)
        if "choices" in answer:
            history.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
        seen.asked += 1


# -- what is left


def _conversations(store: Store) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        page = store.conversations.page(None, 200, cursor)
        found += page.conversations
        cursor = page.cursor
        if cursor is None:
            return found


def _folds(store: Store) -> list[float]:
    """When each fold was committed."""
    attempts = [one for record in _conversations(store) for one in store.views.attempts(record.id, 1_000)]
    return sorted(one.at for one in attempts if one.report.committed)


def _rows(seen: Seen, store: Store, folds: int, seconds: float, conversations: int) -> list[list[str]]:
    took = sorted(extra for _, extra in seen.turns)
    cuts = statistics.quantiles(took, n=100)
    lost = sum(
        sum(stored.message["role"] == "user" for stored in store.log.iterate(id)) != count
        for id, count in seen.said.items()
    )
    proxied = [record for record in _conversations(store) if record.metadata.platform == "gateway"]
    users = sum(sum(stored.message["role"] == "user" for stored in store.log.iterate(record.id)) for record in proxied)
    check = store.care.checkup()
    return [
        ["conversations at once", f"{conversations}, half agent sessions, half proxied"],
        ["workers", f"{WORKERS} processes on one socket, one PostgreSQL (fsync on)"],
        ["time", f"{seconds:.0f} s"],
        ["turns", f"{len(seen.turns):,} ({len(seen.turns) / seconds:.1f} a second)"],
        ["errors seen by clients", f"{len(seen.errors)}" + (f": {seen.errors[0]}" if seen.errors else "")],
        ["folds committed", f"{folds:,}"],
        ["added to the model's own time, p50 / p95 / p99", " / ".join(f"{cuts[at]:.2f} s" for at in (49, 94, 98))],
        ["agent sessions with a message lost or doubled", f"{lost} of {len(seen.said)}"],
        ["proxied conversations in the store", f"{len(proxied)}, {users:,} of {seen.asked:,} messages of users"],
        ["doctor", "clean" if check.clean else f"{len(check.findings)} findings"],
    ]
