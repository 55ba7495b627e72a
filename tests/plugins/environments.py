"""Environments of other programs under `build/`, made when first needed; a test that can't have one is skipped."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600


def environment(name: str, *requirements: str, with_leporello: bool = True) -> Path:
    """The interpreter of an environment with these packages, and with this checkout."""
    folder = ROOT / "build" / "environments" / name
    python = folder / "bin" / "python"
    done = folder / "installed"
    wanted = "\n".join(requirements)
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        venv.create(folder, with_pip=True, clear=True)
        _install(python, *requirements)
        if with_leporello:
            _install(python, "--editable", str(ROOT))
        done.write_text(wanted, encoding="utf-8")
    return python


def _install(python: Path, *what: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"installing {' '.join(what)} took longer than {SECONDS} s")
    if ran.returncode:
        print(ran.stderr, file=sys.stderr)
        pytest.skip(f"{' '.join(what)} can't be installed here: {ran.stderr.strip().splitlines()[-1][:200]}")


def run(python: Path, script: Path, *arguments: object, home: Path) -> str:
    """What a script prints in such an environment, with nothing of the person who runs the tests."""
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "HERMES_HOME": str(home),
        "LEPORELLO_HOME": str(home / "leporello"),
    }
    command = [str(python), str(script), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=env)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def checkout(name: str, address: str, tag: str) -> Path:
    """A public repository at a tag, under `build/plugins`."""
    folder = ROOT / "build" / "plugins" / f"{name}-{tag}"
    if not folder.exists():
        command = ["git", "clone", "--quiet", "--depth", "1", "--branch", tag, address, str(folder)]
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, env={"GIT_TERMINAL_PROMPT": "0"}
        )
        if ran.returncode:
            pytest.skip(f"{address} can't be cloned here; put it into {folder.relative_to(ROOT)} for this test")
    return folder
