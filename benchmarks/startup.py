"""How long `leporello --help` takes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

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
    return table(["command", f"median of {RUNS}", "fastest", "slowest"], rows)


def _wall(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun
