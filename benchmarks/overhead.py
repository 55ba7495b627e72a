"""What is done around one model call of a conversation of a million tokens, beside hermes-agent's steps, in one run."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers import HERMES, environment
from benchmarks.table import seconds, table
from leporello.testing.sessions import generate
from leporello.tokens import TokenCounter

MESSAGES, TOKENS = 3_000, 1_000_000
CALLS = 60
DRIVER = Path(__file__).with_name("overhead_driver.py")


def run() -> str:
    """The table, and how much memory a call adds."""
    session = generate(seed=1, messages=MESSAGES, tokens=TOKENS, images=0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "session.json"
        file.write_text(json.dumps({"messages": session.messages}), encoding="utf-8")
        ours = _measured("leporello", Path(sys.executable), file, Path(folder) / "ours")
        peer = _measured("hermes", environment(HERMES), file, Path(folder) / "peer")
    base = statistics.median(ours["seconds"])
    rows = [
        [
            name,
            seconds(statistics.median(found["seconds"])),
            seconds(statistics.fmean(found["seconds"])),
            f"{statistics.median(found['seconds']) / base:.1f}",
            f"{found['bytes_per_call'] / 1024:.1f} KB",
        ]
        for name, found in (("Leporello", ours), (HERMES.replace("==", " "), peer))
    ]
    size = f"{len(session.messages):,} messages, {TokenCounter.for_model(None).messages(session.messages):,} tokens"
    header = ["", f"processor, median of {CALLS} calls", "mean", "x ours", "memory kept per call"]
    return f"{size} before the first call; two short messages are added by each:\n\n{table(header, rows)}"


def _measured(name: str, python: Path, session: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    # A bare environment: no key, no settings and no path of the person who runs this.
    done = subprocess.run(
        [python, DRIVER, name, session, folder, str(CALLS)],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
