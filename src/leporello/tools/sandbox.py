"""Which paths a tool may touch, and careful access to files: regular ones only, writes whole or not at all."""

from __future__ import annotations

import contextlib
import difflib
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from leporello.errors import ToolError
from leporello.tools.base import ToolContext

_NO_FILES = tuple(Path(name) for name in ("/proc", "/sys", "/dev"))


def readable(context: ToolContext, raw: str) -> Path:
    """The real path behind `raw`, if tools may read there."""
    path = _resolve(context, raw)
    allowed = (context.workdir, *context.roots, *context.readable, context.outputs)
    _require(path, raw, allowed, "read")
    return path


def may_read(context: ToolContext, path: Path) -> bool:
    """Whether tools may read where a path leads."""
    try:
        readable(context, str(path))
    except ToolError:
        return False
    return True


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


def similar_names(path: Path) -> str:
    """A sentence with names in the same folder that look like the one that is missing; empty when none does."""
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return ""
    same = [name for name in names if name.lower() == path.name.lower()]
    similar = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    found = list(dict.fromkeys([*same, *similar]))[:3]
    return f" Similar names there: {', '.join(found)}." if found else ""


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


_SNIFF = 8_192
_MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "an ELF program"),
    (b"SQLite format 3\x00", "an SQLite database"),
)
UTF16 = (b"\xff\xfe", b"\xfe\xff")
_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def open_regular(path: Path) -> BinaryIO:
    """Open a resolved path for reading. Pipes and devices, which could block for ever, are refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ToolError(f"{path} is not a regular file but {_KINDS.get(stat.S_IFMT(mode), 'a device')}.")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def binary_kind(start: bytes) -> str:
    """What a file is when its first bytes are no text; empty for text."""
    for magic, words in _MAGIC:
        if start.startswith(magic):
            return words
    if start.startswith(UTF16):
        return ""
    return "binary data" if b"\x00" in start[:_SNIFF] else ""


def write_atomically(path: Path, data: bytes, *, private: bool = False) -> None:
    """Replace or create one file; a reader sees the old bytes or the new ones, even after a crash."""
    write_all_atomically({path: data}, private=private)


def write_all_atomically(changes: Mapping[Path, bytes | None], *, private: bool = False) -> None:
    """Write several files (None deletes one). All new bytes are on disk before the first name changes.

    So a full disk or a missing permission leaves every file as it was. Permissions of replaced files are kept.
    """
    with contextlib.ExitStack() as stack:
        written = {path: data for path, data in changes.items() if data is not None}
        ready = {path: stack.enter_context(_prepared(path, data, private)) for path, data in written.items()}
        for path, temporary in ready.items():
            os.replace(temporary, path)
        for path in changes:
            if path not in written:
                path.unlink()


@contextlib.contextmanager
def _prepared(path: Path, data: bytes, private: bool) -> Iterator[Path]:
    """A finished temporary file beside `path`; removed unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o777)
    temporary = path.parent / f".{path.name[:100]}.{secrets.token_hex(6)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if private else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
