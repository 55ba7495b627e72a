"""Files of the working directory for completion: found once in a while, in a bounded walk."""

from __future__ import annotations

import os
import time
from pathlib import Path

MOST_FILES = 5_000
FRESH_SECONDS = 10.0
_SKIPPED = {"node_modules", "__pycache__", "venv", "dist", "build", "target"}


class ProjectFiles:
    """Relative paths below a folder, without hidden ones and the usual generated ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: list[str] = []
        self._at = float("-inf")

    def matching(self, fragment: str, most: int = 20) -> list[str]:
        """Paths that fit what was typed: those that begin so first, then names that do, then the rest."""
        wanted = fragment.casefold()
        ranked: list[tuple[int, int, str]] = []
        for path in self._all():
            folded = path.casefold()
            if wanted not in folded:
                continue
            name = folded.rstrip("/").rpartition("/")[2]
            rank = 0 if folded.startswith(wanted) else 1 if name.startswith(wanted) else 2
            ranked.append((rank, path.count("/"), path))
        return [path for _, _, path in sorted(ranked)[:most]]

    def _all(self) -> list[str]:
        now = time.monotonic()
        if now - self._at > FRESH_SECONDS:
            self._found = _walk(self._folder)
            self._at = now
        return self._found


def _walk(folder: Path) -> list[str]:
    found: list[str] = []
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        relative = os.path.relpath(root, folder)
        prefix = "" if relative == "." else relative.replace(os.sep, "/") + "/"
        found += [f"{prefix}{name}/" for name in folders]
        found += [f"{prefix}{name}" for name in sorted(files) if not name.startswith(".")]
        if len(found) >= MOST_FILES:
            break
    return found[:MOST_FILES]
