"""A program for the tests: an agent whose process is killed in the second of three calls. Argument: its folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.agent.conftest import Bench, calls

if __name__ == "__main__":
    asked = calls(
        ("c1", "terminal", {"command": "echo first is done | tee first"}),
        ("c2", "terminal", {"command": f"touch second; kill -9 {os.getpid()}; sleep 5"}),
        ("c3", "terminal", {"command": "touch third"}),
    )
    bench = Bench(Path(sys.argv[1]))
    # In a sandbox a command does not reach the program.
    bench.flags["tools.sandbox"] = "off"
    bench.agent([asked, "never"]).turn("go")
