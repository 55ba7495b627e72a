"""Search without ripgrep, as a program of its own, with git's ignore rules."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from leporello.tools.ignore import IgnoreStack, glob_filter

LARGEST_FILE = 20_000_000


def main() -> None:
    """Serve the one request on standard input."""
    search(json.load(sys.stdin), sys.stdout)


def search(request: dict[str, Any], out: TextIO) -> None:
    """Print every find of a request, which has the fields of a `Query`."""
    wanted = glob_filter(request["glob"]) if request["glob"] else None
    files = (f for f, name in iter_files(Path(request["path"])) if wanted is None or wanted.fullmatch(name))
    if request["mode"] == "files":
        for file in files:
            print(json.dumps({"path": str(file)}), file=out)
        return
    source = re.escape(request["pattern"]) if request["literal"] else request["pattern"]
    pattern = re.compile(source, re.IGNORECASE if request["ignore_case"] else 0)
    for file in files:
        for find in _search_file(file, pattern, request["context"]):
            print(json.dumps(find), file=out)


def iter_files(start: Path) -> Iterator[tuple[Path, str]]:
    """Files in order of their paths, with their names relative to `start`; ignored ones and .git left out."""
    if not start.is_dir():
        if start.is_file():
            yield start, start.name
        return
    top = _top_of(start)
    stack = IgnoreStack().enter(top, "")
    relative = ""
    for part in start.relative_to(top).parts:
        relative = f"{relative}/{part}" if relative else part
        stack = stack.enter(top / relative, relative)
    yield from _walk(top, relative, stack, len(relative) + 1 if relative else 0)


def _walk(top: Path, relative: str, stack: IgnoreStack, skip: int) -> Iterator[tuple[Path, str]]:
    try:
        with os.scandir(top / relative) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{relative}/{entry.name}" if relative else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or stack.ignores(path, is_folder):
            continue
        if is_folder:
            yield from _walk(top, path, stack.enter(top / path, path), skip)
        elif entry.is_file(follow_symlinks=False):
            yield top / path, path[skip:]


def _top_of(start: Path) -> Path:
    """The root of the repository that holds `start`, where its ignore files begin; else `start` itself."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    return start


def _search_file(file: Path, pattern: re.Pattern[str], context: int) -> Iterator[dict[str, Any]]:
    try:
        if file.stat().st_size > LARGEST_FILE:
            return
        data = file.read_bytes()
    except OSError:
        return
    if b"\x00" in data:
        return
    before: deque[dict[str, Any]] = deque(maxlen=context)
    after = 0
    for number, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        hit = pattern.search(text)
        row = {"path": str(file), "line": number, "text": text, "at": hit.start() if hit else 0, "hit": hit is not None}
        if hit:
            yield from before
            before.clear()
            after = context
            yield row
        elif after:
            after -= 1
            yield row
        else:
            before.append(row)
