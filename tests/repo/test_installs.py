"""The core installs beside another agent in one environment, and works there from its wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEIGHBOUR = "hermes-agent==0.19.0"
ENVIRONMENT = ROOT / "build" / "neighbours"

WORKS = """
from leporello import compress
messages = [{"role": "user", "content": "Count to sixty."}]
for number in range(60):
    messages.append({"role": "assistant", "content": f"Step {number}: " + "and so on " * 300})
    messages.append({"role": "user", "content": f"Go on after {number}."})
report = compress(messages, window=8_000).report
print(report.outcome.value)
import agent.context_engine
"""


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=ROOT / "build", capture_output=True, text=True, check=False
    )


def test_core_lives_beside_another_agent() -> None:
    """Both import, no requirement is broken, and a fold needs nothing that the wheel does not bring."""
    python = ENVIRONMENT / "bin" / "python"
    ENVIRONMENT.parent.mkdir(exist_ok=True)
    if not python.exists():
        assert _run(sys.executable, "-m", "venv", ENVIRONMENT).returncode == 0
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    installed = _run(*pip, "install", ROOT, NEIGHBOUR)
    if "No matching distribution found for hermes-agent" in installed.stderr:
        pytest.skip(f"the package index offers no {NEIGHBOUR}")
    assert installed.returncode == 0, installed.stderr
    # A version that did not change would otherwise keep the wheel of an earlier run.
    assert _run(*pip, "install", "--force-reinstall", "--no-deps", ROOT).returncode == 0
    checked = _run(*pip, "check")
    assert checked.returncode == 0, checked.stdout
    worked = _run(python, "-c", WORKS)
    assert worked.returncode == 0, worked.stderr
    assert worked.stdout.strip() == "committed"
