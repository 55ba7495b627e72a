"""Opening a conversation of a store and sending its first request, for ever longer logs. Processor time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.table import seconds, table

LENGTHS = (600, 6_000, 60_000)
DRIVER = Path(__file__).with_name("opening_driver.py")
SOURCES = DRIVER.parent.parent / "src"


EARLIER_LENGTHS = LENGTHS[:2]
"""An earlier release takes minutes for more."""
KINDS = ("folded", "unfolded")


def run(earlier: Path | None = None, lengths: tuple[int, ...] = LENGTHS) -> str:
    """Folded and unfolded conversations of each length. `earlier`: the sources of an earlier release."""
    found = _driven(SOURCES, lengths)
    before = _driven(earlier, EARLIER_LENGTHS) if earlier else {kind: {} for kind in KINDS}
    rows = [
        [f"{length:,}", *(_cell(times[kind], length) for times in (found, before) for kind in KINDS)]
        for length in lengths
    ]
    return table(["messages of its log", "folded", "not folded", "0.1.0 folded", "0.1.0 not folded"], rows)


def _driven(sources: Path, lengths: tuple[int, ...]) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(DRIVER), folder, *map(str, lengths)]
        variables = {**os.environ, "PYTHONPATH": str(sources)}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=variables)
    times: dict[str, dict[str, float]] = json.loads(done.stdout)
    return times


def _cell(times: dict[str, float], length: int) -> str:
    return seconds(times[str(length)]) if str(length) in times else "-"


def run_quick() -> str:
    """The shortest only."""
    return run(lengths=LENGTHS[:1])
