"""A program for the tests: an agent whose process is killed in the second of three calls. Argument: its folder."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.agent.conftest import Bench, calls

if __name__ == "__main__":
    asked = calls(
        ("c1", "terminal", {"command": "echo first is done | tee first"}),
        ("c2", "terminal", {"command": "touch second; kill -9 $PPID; sleep 5"}),
        ("c3", "terminal", {"command": "touch third"}),
    )
    Bench(Path(sys.argv[1])).agent([asked, "never"]).turn("go")
