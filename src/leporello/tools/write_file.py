"""`write_file`: create or replace a whole file, atomically."""

from __future__ import annotations

import difflib
from pathlib import Path

from leporello.errors import ToolError
from leporello.tools.base import ApprovalRequest, Arguments, Tool, ToolContext, ToolResult
from leporello.tools.confine import shown, writable
from leporello.tools.files import open_regular, write_atomically
from leporello.tools.marks import refuse_marks
from leporello.tools.schema import tool_from

_DIFF_LINES = 200
_DIFFABLE = 200_000


def write_file(context: ToolContext, path: str, content: str, literal_marks: bool = False) -> ToolResult:
    """Write a whole file: creates it and its folders, or replaces what is there. To change part of a file use patch.

    Args:
        path: File to write, relative to the working directory or absolute.
        content: The complete new content.
        literal_marks: Set to true only if the file is really meant to contain a mark such as [REDACTED].
    """
    target = writable(context, path)
    old = current_text(target, path)
    data = encode_text(content, path)
    if not literal_marks:
        refuse_marks(content, old or "", where=path)
    try:
        write_atomically(target, data)
    except OSError as error:
        raise ToolError(f"{path} can't be written: {error.strerror or error}. It is as it was.") from None
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    verb = "created" if old is None else "replaced"
    text = f"{verb} {shown(context, target)}: {lines:,} lines, {len(data):,} bytes"
    return ToolResult(text, details={"path": str(target), "created": old is None, "bytes": len(data)})


def ask_write_file(context: ToolContext, arguments: Arguments) -> ApprovalRequest:
    """What a person is shown before a file is written."""
    path, content = arguments["path"], arguments["content"]
    target = writable(context, path)
    old = current_text(target, path)
    encode_text(content, path)
    if not arguments["literal_marks"]:
        refuse_marks(content, old or "", where=path)
    verb = "create" if old is None else "replace"
    title = f"{verb} {shown(context, target)}"
    return ApprovalRequest("write_file", title, lambda: change_text(old or "", content, path))


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


def encode_text(text: str, path: str) -> bytes:
    """Text as bytes for a file; half characters can't be written."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(f"the text for {path} contains half of a surrogate pair, which no file can hold.") from None


def change_text(old: str, new: str, path: str) -> str:
    """The change as a diff a person can judge, cut when it is long."""
    if len(old) + len(new) > _DIFFABLE:
        return f"({len(old):,} characters become {len(new):,}; too large for a diff)"
    rows = list(difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="", n=2))
    more = f"\n({len(rows) - _DIFF_LINES:,} more lines)" if len(rows) > _DIFF_LINES else ""
    return "\n".join(rows[:_DIFF_LINES]).encode("utf-8", "replace").decode() + more


WRITE_FILE: Tool = tool_from(write_file, ask=ask_write_file)
