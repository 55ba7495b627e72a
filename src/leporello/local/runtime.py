"""The program that runs the model: `xllamacpp`, a prebuilt llama.cpp server as a Python package.

With the extra `leporello[local]` it is installed beside Leporello. Otherwise it goes into a folder of its own under the
home folder, so that nobody's environment is changed; the server process alone looks there.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from leporello.local.pip import Report, install

PACKAGE = "xllamacpp"
REQUIREMENT = "xllamacpp>=2026.10"
FOLDER = "runtime"


def find_runtime(folder: Path) -> str | None:
    """Where the package is: "" when it is installed, a path when it has a folder of its own, None when it is absent."""
    if find_spec(PACKAGE) is not None:
        return ""
    own = folder / FOLDER
    return str(own) if (own / PACKAGE).is_dir() else None


def fetch_runtime(folder: Path, scratch: Path, report: Report) -> None:
    """Bring the package into its own folder; all or nothing."""
    part = scratch / FOLDER
    install(REQUIREMENT, part, report)
    os.replace(part, folder / FOLDER)
