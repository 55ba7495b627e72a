"""The conversation's outputs folder: whole tool outputs in files, named after their call.

A file is `<call id>-<hash>.txt`. The id comes from a provider and may hold anything, so only harmless characters of it
reach the name; the hash over the content keeps reused ids apart. The same output is kept once.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from leporello.tools.base import SavedOutput
from leporello.tools.files import write_atomically

_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_SHORT_HASH = 12
_LONGEST_ID = 64


def output_name(call_id: str, digest: str) -> str:
    """The file name for an output; can't leave the folder, whatever the id is."""
    plain = _ODD.sub("_", call_id)[:_LONGEST_ID].strip("_-")
    return f"{plain or 'call'}-{digest}.txt"


def content_digest(data: bytes) -> str:
    """Hash of a whole output, in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def save_output(folder: Path, call_id: str, data: bytes) -> SavedOutput:
    """Write a whole output; on return it is on disk."""
    digest = content_digest(data)
    saved = find_saved(folder, call_id, digest, len(data), data.count(b"\n"))
    if saved is None:
        saved = SavedOutput(_free_path(folder, call_id, digest), len(data), data.count(b"\n"))
        write_atomically(saved.path, data, private=True)
    return saved


def adopt_output(folder: Path, call_id: str, spool: Path, digest: str, lines: int) -> SavedOutput:
    """Give a spooled file its lasting name."""
    size = spool.stat().st_size
    saved = find_saved(folder, call_id, digest, size, lines)
    if saved is not None:
        spool.unlink()
        return saved
    target = _free_path(folder, call_id, digest)
    os.replace(spool, target)
    return SavedOutput(target, size, lines)


def find_saved(folder: Path, call_id: str, digest: str, size: int, lines: int) -> SavedOutput | None:
    """The file that already holds exactly this output, under whatever call's name."""
    own = folder / output_name(call_id, digest[:_SHORT_HASH])
    for path in (own, *sorted(folder.glob(f"*-{digest[:_SHORT_HASH]}.txt"))):
        if path.is_file() and path.stat().st_size == size and _digest_of(path) == digest:
            return SavedOutput(path, size, lines)
    return None


def _free_path(folder: Path, call_id: str, digest: str) -> Path:
    """A path that holds no other output: the short hash, or the whole one should two ever share it."""
    path = folder / output_name(call_id, digest[:_SHORT_HASH])
    return folder / output_name(call_id, digest) if path.exists() else path


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
