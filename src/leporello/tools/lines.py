"""A window of lines out of a file of any size, without loading the file.

Lines end at a newline and nowhere else, so line numbers agree with every other program. A line may be longer than what
fits: then a part of it is given, and `column` says where to go on.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import BinaryIO

_CHUNK = 1 << 20
_COUNT_AT_MOST = 1 << 28
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_WORTH_STARTING = 1_000
"""A line that can't fit whole in any case is begun at the end of a window only if this much of it can be shown."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or a part of it that starts at `column` (from 1)."""

    number: int
    column: int
    text: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive lines, and where the next window begins."""

    lines: tuple[Line, ...]
    next_line: int = 0
    """0 when the file ends here."""
    next_column: int = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text and how much may be taken from there."""

    line: int
    column: int
    lines: int
    chars: int


def encoding_of(start: bytes) -> str:
    """UTF-8, unless the file says otherwise."""
    if start.startswith(_UTF16):
        return "utf-16"
    return "utf-8-sig" if start.startswith(b"\xef\xbb\xbf") else "utf-8"


def count_lines(file: BinaryIO) -> int | None:
    """How many lines the file has; None for one too large to count."""
    file.seek(0)
    count = read = 0
    last = b"\n"
    while chunk := file.read(_CHUNK):
        count += chunk.count(b"\n")
        read += len(chunk)
        last = chunk[-1:]
        if read > _COUNT_AT_MOST:
            return None
    return count + (last != b"\n")


def read_window(file: BinaryIO, place: Place, encoding: str = "utf-8") -> Window | None:
    """The lines from `place` on; None when the file has no such place."""
    file.seek(0)
    skipped = 1
    if encoding == "utf-8":
        if not _seek_line(file, place.line):
            return None
        skipped = place.line
    text = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="\n")
    try:
        for _ in range(skipped, place.line):
            if not _skip_line(text):
                return None
        return _collect(text, place)
    finally:
        text.detach()


def _seek_line(file: BinaryIO, line: int) -> bool:
    """Move to the first byte of a line."""
    missing = line - 1
    while missing:
        chunk = file.read(_CHUNK)
        if not chunk:
            return False
        found = chunk.count(b"\n")
        if found < missing:
            missing -= found
            continue
        at = -1
        for _ in range(missing):
            at = chunk.find(b"\n", at + 1)
        file.seek(at + 1 - len(chunk), io.SEEK_CUR)
        return True
    return True


def _skip_line(text: io.TextIOWrapper) -> bool:
    while part := text.readline(_CHUNK):
        if part.endswith("\n"):
            return True
    return False


def _collect(text: io.TextIOWrapper, place: Place) -> Window | None:
    if not _skip_columns(text, place.column - 1):
        return None
    taken: list[Line] = []
    room = place.chars
    number, column = place.line, place.column
    while len(taken) < place.lines:
        # One more than fits tells a line that just fits from one that goes on.
        part = text.readline(place.chars + 1)
        if not part:
            return Window(tuple(taken)) if taken or number == 1 else None
        whole = part.endswith("\n") or len(part) <= place.chars
        body = part.removesuffix("\n")
        cost = len(body) + len(str(number)) + 2
        if cost > room or not whole:
            if taken and (whole or room < _WORTH_STARTING):
                break
            body = body[: max(1, room - len(str(number)) - 2)]
            taken.append(Line(number, column, body, whole=False))
            return Window(tuple(taken), number, column + len(body))
        taken.append(Line(number, column, body, whole=True))
        room -= cost
        if not part.endswith("\n"):
            return Window(tuple(taken))
        number, column = number + 1, 1
    else:
        if not text.readline(1):
            return Window(tuple(taken))
    return Window(tuple(taken), number, 1)


def _skip_columns(text: io.TextIOWrapper, count: int) -> bool:
    while count > 0:
        part = text.readline(min(count, _CHUNK))
        if not part or part.endswith("\n"):
            return False
        count -= len(part)
    return True
