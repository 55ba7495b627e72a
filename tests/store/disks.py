"""Small and read-only disks for tests: a tmpfs where mounting is allowed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A disk of a few megabytes; the test is skipped where none can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root; the size limit of the process is tested instead")
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this system does not let a tmpfs be mounted")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def read_only_disk(folder: Path) -> Iterator[None]:
    """Make the folder's disk read-only for a while (`small_disk` made it)."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Leave no byte free on the folder's disk for a while (`small_disk` made it)."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            pass
    try:
        yield
    finally:
        filler.unlink()
