"""Peers installed from the package index, each in an environment of its own under `build/`."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / "build" / "peers"
HERMES = "hermes-agent==0.19.0"


def environment(requirement: str) -> Path:
    """The interpreter of an environment that holds one peer; made on first use."""
    folder = ENVIRONMENTS / requirement.replace("==", "-")
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"installing {requirement} into {folder.relative_to(ROOT)} ...", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", requirement], check=True)
        done.write_text(requirement, encoding="utf-8")
    return python


def run_hermes(session: Path, window: int, repeats: int, home: Path) -> dict[str, Any]:
    """Compress a session with hermes-agent's compressor in its own interpreter; timings and sizes."""
    driver = Path(__file__).with_name("hermes_driver.py")
    command = [environment(HERMES), driver, session, str(window), str(repeats), home]
    # A bare environment: no key, no settings and no path of the person who runs this.
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": str(home)}
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
