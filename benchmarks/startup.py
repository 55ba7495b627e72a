"""How long `leporello --help` takes, and `leporello chat` until its prompt stands there."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pexpect

from benchmarks.table import seconds, table

RUNS = 20


def run() -> str:
    """Median and spread of twenty cold starts, beside a bare interpreter."""
    program = Path(sys.executable).with_name("leporello")
    rows = []
    for name, command in (
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("leporello --help", [str(program), "--help"]),
    ):
        times = sorted(_wall(command) for _ in range(RUNS))
        rows.append([name, seconds(statistics.median(times)), seconds(times[0]), seconds(times[-1])])
    with tempfile.TemporaryDirectory() as home:
        times = sorted(_to_prompt(program, home) for _ in range(RUNS))
    rows.append(["leporello chat, to its prompt", *map(seconds, (statistics.median(times), times[0], times[-1]))])
    return table(["command", f"median of {RUNS}", "fastest", "slowest"], rows)


def _wall(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def _to_prompt(program: Path, home: str) -> float:
    """A pseudo-terminal that answers the question for the cursor's place, as terminals do."""
    begun = time.perf_counter()
    child = pexpect.spawn(
        str(program), ["--home", home, "chat", "--model", "scripted:demo"], encoding="utf-8", timeout=60
    )
    try:
        while child.expect(["›", r"\x1b\[6n"]):
            child.send("\x1b[1;1R")
        return time.perf_counter() - begun
    finally:
        child.close(force=True)
