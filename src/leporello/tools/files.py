"""Files, carefully: only regular ones are read, and a write is seen whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from leporello.errors import ToolError

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
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def open_regular(path: Path) -> BinaryIO:
    """Open a resolved path for reading. Pipes and devices, which could block for ever, are refused."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ToolError(f"{path} is not a regular file but {kind_of(mode)}.")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def kind_of(mode: int) -> str:
    """What a directory entry is, in words."""
    for test, words in (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISLNK, "a symbolic link"),
    ):
        if test(mode):
            return words
    return "a regular file"


def binary_kind(start: bytes) -> str:
    """What a file is when its first bytes are no text; empty for text."""
    for magic, words in _MAGIC:
        if start.startswith(magic):
            return words
    if start.startswith(_UTF16):
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
        ready: dict[Path, Path] = {}
        for path, data in changes.items():
            if data is not None:
                ready[path] = stack.enter_context(_prepared(path, data, private))
        for path, temporary in ready.items():
            os.replace(temporary, path)
        for path, data in changes.items():
            if data is None:
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
