"""Peers installed from the package index, each in an environment of its own under `build/`."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / "build" / "peers"
HERMES = "hermes-agent==0.19.0"
HEADROOM = "headroom-ai==0.42.0"


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
