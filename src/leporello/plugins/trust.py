"""Which folders code may be loaded from: those that only the user and the system can write.

A plugin runs with all rights of the program. Where anybody can write a file, anybody could become a plugin.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

FLAG = "plugins.allow_unsafe_folders"


def distrust(folder: Path, root: Path) -> str:
    """Why code of a folder below `root` can't be trusted; empty when it can."""
    if os.name != "posix":
        return ""
    for path in _paths(folder, root):
        why = _writable_by_others(path)
        if why:
            return f"{path} {why}; mend that, or set {FLAG}: true if you mean it"
    return ""


def _paths(folder: Path, root: Path) -> Iterator[Path]:
    """The folders from the root down, then everything in the plugin; links are followed to what they name."""
    yield root
    yield from reversed([parent for parent in folder.parents if parent.is_relative_to(root) and parent != root])
    yield folder
    yield from folder.rglob("*")


def _writable_by_others(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        return f"can't be looked at ({error.strerror})"
    if found.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    # A sticky folder lets nobody replace what is not theirs, but anybody add to it; a plugin is such an addition.
    return "can be written by anybody" if found.st_mode & stat.S_IWOTH else ""
