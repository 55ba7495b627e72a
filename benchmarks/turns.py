"""What a message of an agent session and a passed request say to their database, and what a message costs several
workers on one PostgreSQL.

Statements are counted where the database hears them, without what begins and ends a transaction. The processor time is
that of all workers; each message goes to any of them.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import httpx2

from benchmarks.table import seconds, table
from tests.gateway.house import STORE_URL, House
from tests.gateway.test_statements import agent_message, on_sqlite, passed_request
from tests.scaleout.plant import plant
from tests.store.server import Server
from tests.support.statements import Heard, listening_to_postgres, log_statements

WORKERS = (1, 2, 4)
TALKS = 8
TURNS = 20
ROUNDS = 5


def run(turns: int = TURNS) -> str:
    """Both tables."""
    with Server() as server:
        return f"{_statements(server)}\n\n{_workers(server, turns)}"


def run_quick() -> str:
    """With few messages."""
    return run(4)


def _statements(server: Server) -> str:
    def on_postgres(_: House) -> AbstractContextManager[Heard]:
        return listening_to_postgres(server.folder)

    rows = []
    for database, listen in (("SQLite", on_sqlite), ("PostgreSQL", on_postgres)):
        for name, work in (("agent message", agent_message), ("passed request", passed_request)):
            rows.append([f"{name}, {database}", *_counted(server, database, work, listen)])
    return table(["", "statements", "transactions", "of these writing"], rows)


def _counted(server: Server, database: str, work: Callable[..., Heard], listen: Callable[..., object]) -> list[str]:
    url = server.new_database() if database == "PostgreSQL" else ""
    if url:
        log_statements(url)
    token = STORE_URL.set(url)
    with tempfile.TemporaryDirectory() as folder:
        heard = work(Path(folder), listen)
    STORE_URL.reset(token)
    return [str(len(heard.statements)), str(heard.transactions), str(heard.writes)]


def _workers(server: Server, turns: int) -> str:
    """Each number of workers in turn, so that other work on the machine slows all alike; the medians."""
    took: dict[int, list[tuple[float, float]]] = {count: [] for count in WORKERS}
    for place in range(ROUNDS if turns == TURNS else 1):
        for count in WORKERS if place % 2 == 0 else WORKERS[::-1]:
            took[count].append(_per_message(server, count, turns))
    rows = []
    medians = {count: [statistics.median(column) for column in zip(*runs, strict=True)] for count, runs in took.items()}
    for count, (processor, rate) in medians.items():
        beside = f"{processor / medians[WORKERS[0]][0]:.2f}"
        rows.append([str(count), seconds(processor), beside, f"{rate:.0f}"])
    header = f"processor time of one of {TALKS * turns} messages"
    return table(["workers", header, "x one worker's", "messages a second"], rows)


def _per_message(server: Server, count: int, turns: int) -> tuple[float, float]:
    """Processor seconds of a message, and messages a second."""
    with (
        tempfile.TemporaryDirectory() as folder,
        plant(Path(folder), server.new_database(), workers=count) as made,
        httpx2.Client(timeout=300) as client,
    ):
        urls = [worker.url for worker in made.workers]
        ids = [client.post(f"{urls[0]}/api/conversations", json={}).json()["id"] for _ in range(TALKS)]
        choice = random.Random(1)

        def talk(id: str) -> None:
            for _ in range(turns):
                text = f"Message {choice.random()}"
                client.post(
                    f"{choice.choice(urls)}/api/conversations/{id}/messages", json={"text": text}
                ).raise_for_status()

        for url in urls:
            # Each conversation is open in each worker before the clock starts.
            for id in ids:
                client.post(f"{url}/api/conversations/{id}/messages", json={"text": "Hello"})
        before, began = sum(_processor(worker.pid) for worker in made.workers), time.perf_counter()
        with ThreadPoolExecutor(TALKS) as clients:
            list(clients.map(talk, ids))
        rate = TALKS * turns / (time.perf_counter() - began)
        return (sum(_processor(worker.pid) for worker in made.workers) - before) / (TALKS * turns), rate


def _processor(pid: int) -> float:
    """Seconds of a process, with the children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
