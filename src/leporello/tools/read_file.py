"""`read_file`: a text file with line numbers, in windows of bounded size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from leporello.errors import ToolError
from leporello.tools.base import Tool, ToolContext, ToolResult
from leporello.tools.confine import is_saved_output, near_names, readable, shown
from leporello.tools.files import binary_kind, open_regular
from leporello.tools.lines import Place, Window, count_lines, encoding_of, read_window
from leporello.tools.marks import cut_mark
from leporello.tools.schema import tool_from

_LISTED = 40


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
    place = Place(offset, column, min(limit, context.limits.read_lines), context.limits.read_chars)
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
    text = _render(context, window, shown(context, target), total)
    last = window.lines[-1].number if window.lines else 0
    return ToolResult(
        text,
        details={"path": str(target), "first": offset, "last": last, "total": total},
        exempt=is_saved_output(context, target),
    )


def _render(context: ToolContext, window: Window, name: str, total: int | None) -> str:
    if not window.lines:
        return "(empty file)"
    rows = [f"{line.number}\t{line.text}" for line in window.lines]
    if window.next_line:
        first, last = window.lines[0], window.lines[-1]
        seen = f"line {last.number}" if first is last else f"lines {first.number}-{last.number}"
        if not last.whole:
            seen += f" (the last up to character {window.next_column - 1:,})"
        of = f" of {total:,}" if total is not None else ""
        column = f", column={window.next_column}" if window.next_column > 1 else ""
        call = f'read_file(path="{name}", offset={window.next_line}{column})'
        rows.append(cut_mark(f"{seen}{of} shown; go on with {call}"))
    return "\n".join(rows)


def _directory_text(path: str, target: Path) -> str:
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in target.iterdir())
    listed = ", ".join(names[:_LISTED]) or "nothing"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{path} is a directory. It holds: {listed}{more}."


def _missing_text(path: str, target: Path) -> str:
    near = near_names(target)
    if near:
        return f"there is no file {path}. Similar names there: {', '.join(near)}."
    if not target.parent.is_dir():
        return f"there is no file {path}; its folder does not exist either."
    return f"there is no file {path}."


def _beyond_text(path: str, place: Place, total: int | None) -> str:
    if total is not None and place.line > total:
        return f"{path} has only {total:,} lines; offset {place.line:,} is behind its end."
    return f"line {place.line:,} of {path} is shorter than column {place.column:,}."


READ_FILE: Tool = tool_from(read_file, threshold=None)
