"""Catches the output of a process: bounded in memory, complete on disk.

Small outputs stay in memory. Once an output outgrows that, everything goes to a file as it arrives, and memory keeps
only the beginning and the end. Not a byte is dropped on the way, so a preview can be made without losing the rest.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from leporello.tools.base import SavedOutput
from leporello.tools.files import binary_kind
from leporello.tools.outputs import adopt_output, save_output

IN_MEMORY = 1_048_576
"""Bytes kept in memory before an output goes to a file; above every threshold of the budget."""
EDGE = 65_536
"""Bytes of the beginning and of the end that stay in memory after that."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A finished output."""

    size: int
    head: bytes
    tail: bytes
    """Empty when `head` is everything."""
    saved: SavedOutput | None = None
    trouble: str = ""
    """Why the whole output could not be kept, if so."""

    @property
    def whole(self) -> bool:
        """Whether `head` is the complete output."""
        return len(self.head) == self.size

    @property
    def kind(self) -> str:
        """What it is when it is no text; empty for text."""
        return binary_kind(self.head)


class Capture:
    """Takes bytes as they come."""

    def __init__(self, folder: Path, call_id: str, in_memory: int = IN_MEMORY) -> None:
        self._folder = folder
        self._call_id = call_id
        self._in_memory = in_memory
        self._memory = bytearray()
        self._head = b""
        self._tail = bytearray()
        self._spool: BinaryIO | None = None
        self._spool_path = folder / f".spool-{secrets.token_hex(8)}"
        self._digest = hashlib.blake2b(digest_size=16)
        self._lines = 0
        self.size = 0
        self._trouble = ""

    def write(self, data: bytes) -> None:
        """Take the next bytes; trouble with the disk is remembered, not raised, so that the process can go on."""
        self.size += len(data)
        self._lines += data.count(b"\n")
        self._digest.update(data)
        if not self._head:
            self._memory += data
            if len(self._memory) > self._in_memory:
                self._spill()
            return
        self._keep_tail(data)
        self._to_file(data)

    def finish(self, *, save: bool = False) -> Captured:
        """Close the capture. `save` keeps a file even of an output that fits in memory."""
        if not self._head:
            return self._finish_small(save)
        saved = None
        if self._spool is not None:
            try:
                self._spool.flush()
                os.fsync(self._spool.fileno())
                self._spool.close()
                digest = self._digest.hexdigest()
                saved = adopt_output(self._folder, self._call_id, self._spool_path, digest, self._lines)
            except OSError as error:
                self._give_up(error)
        # Only the last EDGE bytes of the tail are sure to be without a gap.
        return Captured(self.size, self._head, bytes(self._tail[-EDGE:]), saved, self._trouble)

    def _finish_small(self, save: bool) -> Captured:
        data = bytes(self._memory)
        saved = None
        if data and (save or binary_kind(data) or not _is_utf8(data)):
            try:
                saved = save_output(self._folder, self._call_id, data)
            except OSError as error:
                self._trouble = str(error)
        return Captured(len(data), data, b"", saved, self._trouble)

    def _spill(self) -> None:
        data = bytes(self._memory)
        self._memory.clear()
        self._head = data[:EDGE]
        self._keep_tail(data[EDGE:])
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._spool = open(self._spool_path, "xb", opener=_private)  # noqa: SIM115 - `finish` closes it
        except OSError as error:
            self._trouble = str(error)
        self._to_file(data)

    def _keep_tail(self, data: bytes) -> None:
        self._tail += data[-EDGE:]
        if len(self._tail) > 2 * EDGE:
            del self._tail[:-EDGE]

    def _to_file(self, data: bytes) -> None:
        if self._spool is None:
            return
        try:
            self._spool.write(data)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """The disk is full or gone: part of an output under the name of a whole one would be a lie, so it goes."""
        self._trouble = str(error)
        spool, self._spool = self._spool, None
        with contextlib.suppress(OSError):
            if spool is not None:
                spool.close()
        with contextlib.suppress(OSError):
            self._spool_path.unlink()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _is_utf8(data: bytes) -> bool:
    try:
        codecs.decode(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
