"""`read_file` and `write_file`: windows of bounded size out of files of any size, and atomic writes."""

from __future__ import annotations

import difflib
import io
import os
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta, Struct

from leporello.errors import ToolError
from leporello.tools.base import ApprovalRequest, Arguments, Tool, ToolContext, ToolResult
from leporello.tools.budget import cut_mark, refuse_marks
from leporello.tools.sandbox import (
    UTF16,
    binary_kind,
    is_within,
    open_regular,
    readable,
    shown,
    similar_names,
    writable,
    write_atomically,
)
from leporello.tools.schema import tool_from

_CHUNK = 1 << 20
_COUNT_AT_MOST = 1 << 28
_LISTED = 40
_DIFF_LINES = 200
_DIFFABLE = 200_000
_WORTH_STARTING = 1_000
"""A line that can't fit whole in any case is begun at the end of a window only if this much of it can be shown."""


class LineWindow(Struct, frozen=True):
    """Consecutive lines, and where the next window begins."""

    first: int
    lines: list[str]
    next_line: int = 0
    """0 when the file ends here."""
    next_column: int = 1
    """Above 1 when only a part of the last line is in this window."""


class LinePosition(Struct, frozen=True):
    line: int
    column: int
    lines: int
    chars: int


def encoding_of(start: bytes) -> str:
    """UTF-8, unless the file says otherwise."""
    if start.startswith(UTF16):
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


def read_window(file: BinaryIO, place: LinePosition, encoding: str = "utf-8") -> LineWindow | None:
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


def _collect(text: io.TextIOWrapper, place: LinePosition) -> LineWindow | None:
    if not _skip_columns(text, place.column - 1):
        return None
    lines: list[str] = []
    room = place.chars
    number = place.line
    while len(lines) < place.lines:
        # One more than fits tells a line that just fits from one that goes on.
        part = text.readline(place.chars + 1)
        if not part:
            return LineWindow(place.line, lines) if lines or number == 1 else None
        body = part.removesuffix("\n")
        fits_alone = body != part or len(part) <= place.chars
        label = len(str(number)) + 2
        if len(body) + label > room or not fits_alone:
            if lines and (fits_alone or room < _WORTH_STARTING):
                break
            body = body[: max(1, room - label)]
            column = 1 if lines else place.column
            return LineWindow(place.line, [*lines, body], number, column + len(body))
        lines.append(body)
        room -= len(body) + label
        if body == part:
            return LineWindow(place.line, lines)
        number += 1
    else:
        if not text.readline(1):
            return LineWindow(place.line, lines)
    return LineWindow(place.line, lines, number)


def _skip_columns(text: io.TextIOWrapper, count: int) -> bool:
    while count > 0:
        part = text.readline(min(count, _CHUNK))
        if not part or part.endswith("\n"):
            return False
        count -= len(part)
    return True


def read_file(
    context: ToolContext,
    path: str,
    offset: Annotated[int, Meta(ge=1)] = 1,
    limit: Annotated[int, Meta(ge=1)] = 2_000,
    column: Annotated[int, Meta(ge=1)] = 1,
) -> ToolResult:
    """Read a text file, with line numbers. Long files come in parts: go on with a larger offset.

    Args:
        path: File to read, relative to the working directory or absolute.
        offset: First line to show, counted from 1.
        limit: How many lines to show at most.
        column: First character to show of the first line; only needed inside very long lines.
    """
    target = readable(context, path)
    place = LinePosition(offset, column, min(limit, context.limits.read_lines), context.limits.read_chars)
    try:
        if target.is_dir():
            raise ToolError(_directory_text(path, target))
        with open_regular(target) as file:
            start = file.read(8_192)
            kind = binary_kind(start)
            if kind:
                size = os.fstat(file.fileno()).st_size
                raise ToolError(f"{path} is {kind} of {size:,} bytes, not text. Look at it with a command, if you can.")
            encoding = encoding_of(start)
            total = count_lines(file) if encoding != "utf-16" else None
            window = read_window(file, place, encoding)
    except FileNotFoundError:
        raise ToolError(_missing_text(path, target)) from None
    except OSError as error:
        raise ToolError(f"{path} can't be read: {error.strerror or error}.") from None
    if window is None:
        raise ToolError(_beyond_text(path, place, total))
    text = _render(window, shown(context, target), total)
    last = offset + len(window.lines) - 1 if window.lines else 0
    return ToolResult(
        text,
        details={"path": str(target), "first": offset, "last": last, "total": total},
        exempt=is_within(target, context.outputs),
    )


def _render(window: LineWindow, name: str, total: int | None) -> str:
    if not window.lines:
        return "(empty file)"
    rows = [f"{number}\t{text}" for number, text in enumerate(window.lines, window.first)]
    if window.next_line:
        last = window.first + len(window.lines) - 1
        seen = f"line {last}" if last == window.first else f"lines {window.first}-{last}"
        column = ""
        if window.next_column > 1:
            seen += f" (the last up to character {window.next_column - 1:,})"
            column = f", column={window.next_column}"
        of = f" of {total:,}" if total is not None else ""
        call = f'read_file(path="{name}", offset={window.next_line}{column})'
        rows.append(cut_mark(f"{seen}{of} shown; go on with {call}"))
    return "\n".join(rows)


def _directory_text(path: str, target: Path) -> str:
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in target.iterdir())
    listed = ", ".join(names[:_LISTED]) or "nothing"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{path} is a directory. It holds: {listed}{more}."


def _missing_text(path: str, target: Path) -> str:
    if target.parent.is_dir():
        return f"there is no file {path}.{similar_names(target)}"
    return f"there is no file {path}; its folder does not exist either."


def _beyond_text(path: str, place: LinePosition, total: int | None) -> str:
    if total is not None and place.line > total:
        return f"{path} has only {total:,} lines; offset {place.line:,} is behind its end."
    return f"line {place.line:,} of {path} is shorter than column {place.column:,}."


def write_file(context: ToolContext, path: str, content: str, literal_marks: bool = False) -> ToolResult:
    """Write a whole file: creates it and its folders, or replaces what is there. To change part of a file use patch.

    Args:
        path: File to write, relative to the working directory or absolute.
        content: The complete new content.
        literal_marks: Set to true only if the file is really meant to contain a mark such as [REDACTED].
    """
    target, old, data = _prepare_write(context, path, content, literal_marks)
    try:
        write_atomically(target, data)
    except OSError as error:
        raise ToolError(f"{path} can't be written: {error.strerror or error}. It is as it was.") from None
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    verb = "created" if old is None else "replaced"
    text = f"{verb} {shown(context, target)}: {lines:,} lines, {len(data):,} bytes"
    return ToolResult(text, details={"path": str(target), "created": old is None, "bytes": len(data)})


def ask_write_file(context: ToolContext, arguments: Arguments) -> ApprovalRequest:
    path, content = arguments["path"], arguments["content"]
    target, old, _ = _prepare_write(context, **arguments)
    title = f"{'create' if old is None else 'replace'} {shown(context, target)}"
    return ApprovalRequest("write_file", title, lambda: change_text(old or "", content, path), writes=(target,))


def _prepare_write(
    context: ToolContext, path: str, content: str, literal_marks: bool
) -> tuple[Path, str | None, bytes]:
    """The file, its present text (None: there is none) and its new bytes; `ToolError` when it can't be written."""
    target = writable(context, path)
    old = current_text(target, path)
    data = encode_text(content, path)
    if not literal_marks:
        refuse_marks(content, old or "", where=path)
    return target, old, data


def current_text(target: Path, path: str) -> str | None:
    """What a file holds now; None when there is none. Bytes that are no UTF-8 survive a round trip."""
    try:
        if target.is_dir():
            raise ToolError(f"{path} is a directory.")
        with open_regular(target) as file:
            return file.read().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise ToolError(f"{path} can't exist: a part of the path is a file.") from None
    except OSError as error:
        raise ToolError(f"{path} can't be read: {error.strerror or error}.") from None


def encode_text(text: str, path: str, errors: str = "strict") -> bytes:
    """Text as bytes for a file; half characters can't be written."""
    try:
        return text.encode("utf-8", errors)
    except UnicodeEncodeError:
        raise ToolError(f"the text for {path} contains half of a surrogate pair, which no file can hold.") from None


def change_text(old: str, new: str, path: str) -> str:
    """The change as a diff a person can judge, cut when it is long."""
    if len(old) + len(new) > _DIFFABLE:
        return f"({len(old):,} characters become {len(new):,}; too large for a diff)"
    rows = list(difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="", n=2))
    more = f"\n({len(rows) - _DIFF_LINES:,} more lines)" if len(rows) > _DIFF_LINES else ""
    return "\n".join(rows[:_DIFF_LINES]).encode("utf-8", "replace").decode() + more


READ_FILE: Tool = tool_from(read_file, threshold=None)
WRITE_FILE: Tool = tool_from(write_file, ask=ask_write_file)
