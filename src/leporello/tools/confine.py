"""Which paths a tool may touch: the working directory and the folders that were allowed, nothing else.

A path is resolved first (relative parts, `..`, every symbolic link, also the magic links under /proc) and judged by
where it really leads. /proc, /sys and /dev are refused even when the root directory is allowed: they are no files, and
/proc/self/environ holds the program's keys. This keeps a model's paths in bounds; it is no wall against another program
of the same user that swaps folders for links in the same moment, nor does it confine what `terminal` runs.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from leporello.errors import ToolError
from leporello.tools.base import ToolContext

_NO_FILES = tuple(Path(name) for name in ("/proc", "/sys", "/dev"))


def readable(context: ToolContext, raw: str) -> Path:
    """The real path behind `raw`, if tools may read there."""
    path = _resolve(context, raw)
    allowed = (context.workdir, *context.roots, *context.readable, context.outputs)
    _require(path, raw, allowed, "read")
    return path


def writable(context: ToolContext, raw: str) -> Path:
    """The real path behind `raw`, if tools may write there."""
    path = _resolve(context, raw)
    if is_within(path, context.outputs):
        raise ToolError(f"{raw} is a saved output; those are kept as they are. Write to another path.")
    for folder in context.readable:
        if is_within(path, folder):
            raise ToolError(f"{raw} may only be read.")
    _require(path, raw, (context.workdir, *context.roots), "write")
    return path


def is_saved_output(context: ToolContext, path: Path) -> bool:
    """Whether a resolved path lies in the conversation's outputs folder."""
    return is_within(path, context.outputs)


def is_within(path: Path, folder: Path) -> bool:
    """Whether a resolved path is the folder or lies inside it."""
    return path.is_relative_to(real(folder))


def real(path: Path) -> Path:
    """Where a path leads once every link is followed; the last parts need not exist."""
    return Path(os.path.realpath(path))


def shown(context: ToolContext, path: Path) -> str:
    """A path as the model should see it: relative inside the working directory, else whole."""
    workdir = real(context.workdir)
    if path == workdir:
        return "."
    return str(path.relative_to(workdir)) if path.is_relative_to(workdir) else str(path)


def near_names(path: Path) -> list[str]:
    """Names in the same folder that look like the one that is missing."""
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return []
    same = [name for name in names if name.lower() == path.name.lower()]
    similar = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    return list(dict.fromkeys([*same, *similar]))[:3]


def _resolve(context: ToolContext, raw: str) -> Path:
    if not raw.strip():
        raise ToolError("the path is empty.")
    try:
        # A relative path counts from the working directory, whatever the program's own is.
        path = real(context.workdir / Path(raw).expanduser())
        os.fsencode(path)
    except (ValueError, OSError, RuntimeError) as error:
        raise ToolError(f"{raw!r} is not a usable path: {error}.") from None
    return path


def _require(path: Path, raw: str, allowed: tuple[Path, ...], verb: str) -> None:
    fenced = any(path.is_relative_to(folder) for folder in _NO_FILES)
    if not fenced and any(is_within(path, folder) for folder in allowed):
        return
    leads = f" (it leads to {path})" if str(path) != raw else ""
    if fenced:
        raise ToolError(f"{raw} can't be used{leads}: system interfaces are not files.")
    raise ToolError(
        f"not allowed to {verb} {raw}{leads}: it is outside the working directory {real(allowed[0])}. "
        "Work inside it, or ask the user to add the folder to tools.paths."
    )
