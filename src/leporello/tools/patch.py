"""`patch`: change part of a file, by exact text or by a unified diff. Everything fits, or nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leporello.errors import ToolError
from leporello.tools.base import ApprovalRequest, Arguments, Tool, ToolContext, ToolResult
from leporello.tools.diffs import FileChange, apply_hunks, nearest_text, parse_diff
from leporello.tools.file_tools import change_text, current_text
from leporello.tools.markers import refuse_marks
from leporello.tools.sandbox import near_names, shown, writable, write_all_atomically
from leporello.tools.schema import tool_from

_LISTED = 8


@dataclass(frozen=True, slots=True)
class _Edit:
    """One file before and after; None where it does not exist."""

    name: str
    old: str | None
    new: str | None


def patch(
    context: ToolContext,
    path: str = "",
    old_string: str = "",
    new_string: str = "",
    replace_all: bool = False,
    diff: str = "",
    literal_marks: bool = False,
) -> ToolResult:
    """Change part of a file: either replace old_string by new_string, or apply a unified diff (also to several files).

    old_string must occur exactly once in the file, with its blanks and line breaks, unless replace_all is true.

    Args:
        path: File to change. May be left out when the diff names its files.
        old_string: Exact text to replace; enough of it to be unique.
        new_string: The text that takes its place.
        replace_all: Replace every occurrence.
        diff: A unified diff, instead of old_string and new_string.
        literal_marks: Set to true only if the file is really meant to contain a mark such as [REDACTED].
    """
    edits = _plan(context, path, old_string, new_string, replace_all, diff, literal_marks)
    changes = {target: None if edit.new is None else _encode(edit) for target, edit in edits.items()}
    try:
        write_all_atomically(changes)
    except OSError as error:
        raise ToolError(f"the change can't be written: {error.strerror or error}.") from None
    text = "\n".join(_describe(edit) for edit in edits.values())
    return ToolResult(text, details={"paths": [str(target) for target in edits]})


def ask_patch(context: ToolContext, arguments: Arguments) -> ApprovalRequest:
    """What a person is shown before a file is changed."""
    edits = _plan(context, **arguments)
    title = f"change {', '.join(edit.name for edit in edits.values())}"
    return ApprovalRequest("patch", title, lambda: "\n".join(_change(edit) for edit in edits.values()))


def _plan(
    context: ToolContext,
    path: str,
    old_string: str,
    new_string: str,
    replace_all: bool,
    diff: str,
    literal_marks: bool,
) -> Mapping[Path, _Edit]:
    """Every file with its new text, computed in full before anything is touched."""
    if diff and (old_string or new_string):
        raise ToolError("give either old_string and new_string, or diff, not both.")
    if diff:
        edits = _plan_diff(context, parse_diff(diff, path))
    else:
        if not path:
            raise ToolError("path is missing.")
        target = writable(context, path)
        old = _existing(target, path)
        new = replace_text(old, old_string, new_string, path, replace_all)
        edits = {target: _Edit(shown(context, target), old, new)}
    for edit in edits.values():
        if edit.old == edit.new:
            raise ToolError(f"the change leaves {edit.name} as it is.")
        if edit.new is not None and not literal_marks:
            refuse_marks(edit.new, edit.old or "", where=edit.name)
    return edits


def _plan_diff(context: ToolContext, changes: list[FileChange]) -> dict[Path, _Edit]:
    edits: dict[Path, _Edit] = {}
    for change in changes:
        target = writable(context, change.path)
        if change.creates:
            if target.exists() or target in edits:
                raise ToolError(f"{change.path} exists already, but the diff creates it.")
            edits[target] = _Edit(change.path, None, apply_hunks("", change.hunks, change.path))
            continue
        known = edits.get(target)
        old = known.new if known else _existing(target, change.path)
        if old is None:
            raise ToolError(f"the diff deletes {change.path} and changes it afterwards.")
        new = apply_hunks(old, change.hunks, change.path)
        if change.deletes and new:
            raise ToolError(f"the diff deletes {change.path}, but the file holds more than the diff removes.")
        edits[target] = _Edit(change.path, known.old if known else old, None if change.deletes else new)
    return edits


def _existing(target: Path, path: str) -> str:
    text = current_text(target, path)
    if text is None:
        near = near_names(target)
        hint = f" Similar names there: {', '.join(near)}." if near else ""
        raise ToolError(f"there is no file {path}.{hint} To create one use write_file.")
    return text


def replace_text(text: str, old: str, new: str, path: str, replace_all: bool = False) -> str:
    """The text with `old` replaced; exactly one place unless `replace_all`."""
    if not old:
        raise ToolError("old_string is empty. Give the text to replace, or use write_file for a whole file.")
    count = text.count(old)
    if not count and "\r\n" in text and "\r" not in old:
        # The file ends its lines the other way; the model can't see that.
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
        count = text.count(old)
    if not count:
        raise ToolError(f"old_string is not in {path}. {nearest_text(text.splitlines(), old.splitlines())}")
    if count > 1 and not replace_all:
        lines = _lines_of(text, old)
        raise ToolError(
            f"old_string occurs {count} times in {path} (lines {lines}). Give more of the text around the right one, "
            "or set replace_all to true."
        )
    return text.replace(old, new)


def _lines_of(text: str, old: str) -> str:
    found: list[str] = []
    at = text.find(old)
    while at >= 0 and len(found) < _LISTED:
        found.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ", ".join(found) + (", …" if at >= 0 else "")


def _encode(edit: _Edit) -> bytes:
    try:
        return (edit.new or "").encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ToolError(
            f"the text for {edit.name} contains half of a surrogate pair, which no file can hold."
        ) from None


def _change(edit: _Edit) -> str:
    return change_text(edit.old or "", edit.new or "", edit.name)


def _describe(edit: _Edit) -> str:
    if edit.new is None:
        return f"deleted {edit.name}"
    verb = "created" if edit.old is None else "changed"
    return f"{verb} {edit.name}:\n{_change(edit)}"


PATCH: Tool = tool_from(patch, ask=ask_patch)
