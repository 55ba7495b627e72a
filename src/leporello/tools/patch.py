"""`patch`: change part of a file, by exact text or by a unified diff. Everything fits, or nothing is written.

Diffs are read as models write them, leniently, and applied strictly. Where lines are not in a file, the nearest place
is named.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from leporello.errors import ToolError
from leporello.lazy_regex import lazy_regex
from leporello.tools.base import ApprovalRequest, Arguments, Tool, ToolContext, ToolResult
from leporello.tools.budget import cut_mark, refuse_marks
from leporello.tools.file_tools import change_text, current_text, encode_text
from leporello.tools.sandbox import shown, similar_names, writable, write_all_atomically
from leporello.tools.schema import tool_from

_LISTED = 8
_CANDIDATES = 5
_FILE_LINES = 50_000
_WANTED_LINES = 60
_SHOWN_LINES = 12
_SHOWN_CHARS = 200
_GOOD_ENOUGH = 0.5
_SIDE = lazy_regex(r"^[abiw]/")
_HUNK = lazy_regex(r"@@(?: -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@)?")
_NO_NEWLINE = "\\ No newline"
_NOWHERE = "/dev/null"
_NUMBERED = lazy_regex(r" *\d+ *\t")


class _Edit(Struct, frozen=True):
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
    changes = {target: _encode(edit) for target, edit in edits.items()}
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
    return ApprovalRequest(
        "patch", title, lambda: "\n".join(_change(edit) for edit in edits.values()), writes=tuple(edits)
    )


def _plan(
    context: ToolContext, path: str, old_string: str, new_string: str, replace_all: bool, diff: str, literal_marks: bool
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
        raise ToolError(f"there is no file {path}.{similar_names(target)} To create one use write_file.")
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


def _encode(edit: _Edit) -> bytes | None:
    # Bytes of the file that are no UTF-8 were read as lone surrogates and go back as they were.
    return None if edit.new is None else encode_text(edit.new, edit.name, "surrogateescape")


def _change(edit: _Edit) -> str:
    return change_text(edit.old or "", edit.new or "", edit.name)


def _describe(edit: _Edit) -> str:
    if edit.new is None:
        return f"deleted {edit.name}"
    verb = "created" if edit.old is None else "changed"
    return f"{verb} {edit.name}:\n{_change(edit)}"


class Hunk(Struct, frozen=True):
    """Rows as in the diff: lines that stay begin with a blank or are empty, the others begin with '-' or '+'."""

    rows: tuple[str, ...]
    start: int | None
    """Line (from 1) in the old file, when the header says it."""
    old_ends_bare: bool
    new_ends_bare: bool
    """The last line has no newline behind it."""

    @property
    def old(self) -> list[str]:
        return [row[1:] for row in self.rows if not row.startswith("+")]


class FileChange(Struct, frozen=True):
    old_path: str
    new_path: str
    hunks: tuple[Hunk, ...]

    @property
    def creates(self) -> bool:
        """Whether the file must not exist before."""
        return self.old_path == _NOWHERE

    @property
    def deletes(self) -> bool:
        return self.new_path == _NOWHERE

    @property
    def path(self) -> str:
        return self.old_path if self.deletes else self.new_path


def parse_diff(text: str, path: str = "") -> list[FileChange]:
    """The changes of a diff; `path` names the file of a diff without file headers."""
    rows = text.removesuffix("\n").split("\n")
    changes: list[FileChange] = []
    names = (path, path) if path else None
    hunks: list[Hunk] = []
    at = 0
    while at < len(rows):
        row = rows[at]
        if _names_files(rows, at):
            _close(changes, names, hunks)
            hunks = []
            names = (_file_name(row), _file_name(rows[at + 1]))
            at += 2
        elif row.startswith("@@"):
            hunk, at = _parse_hunk(rows, at)
            hunks.append(hunk)
        elif row.startswith(("rename ", "copy ", "GIT binary patch", "Binary files ")):
            raise ToolError(f"the diff contains {row!r}; only changes of text can be applied.")
        else:
            at += 1
    _close(changes, names, hunks)
    if not changes:
        raise ToolError("the diff has no hunk. It needs lines beginning with '@@', then ' ', '-' and '+' lines.")
    return changes


def _names_files(rows: Sequence[str], at: int) -> bool:
    return rows[at].startswith("--- ") and at + 1 < len(rows) and rows[at + 1].startswith("+++ ")


def _close(changes: list[FileChange], names: tuple[str, str] | None, hunks: list[Hunk]) -> None:
    if not hunks and (names is None or _NOWHERE not in names):
        return
    if names is None:
        raise ToolError("the diff does not say which file it is for: give path, or '---' and '+++' lines.")
    changes.append(FileChange(*names, tuple(hunks)))


def _file_name(row: str) -> str:
    name = row[4:].split("\t")[0].strip().strip('"')
    return name if name == _NOWHERE else _SIDE.sub("", name)


def _parse_hunk(rows: Sequence[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose header is at `at`, and where it ends. Models miscount: the header's sizes never end it alone."""
    header = _HUNK.match(rows[at])
    start = int(header[1]) if header and header[1] else None
    missing = [int(header[2] or 1), int(header[3] or 1)] if header and header[1] else []
    taken: list[str] = []
    bare = ""
    at += 1
    while at < len(rows) and not _ends_hunk(rows, at, complete=missing == [0, 0]):
        row = rows[at]
        at += 1
        if row.startswith(_NO_NEWLINE):
            bare += taken[-1][:1] or " " if taken else " "
            continue
        if row and row[0] not in " -+":
            raise ToolError(f"line {at} of the diff begins with neither ' ', '-' nor '+': {row[:80]!r}.")
        taken.append(row)
        if missing:
            missing[0] -= not row.startswith("+")
            missing[1] -= not row.startswith("-")
    # A blank line that stays often loses its leading blank; behind a hunk, when no size says so, it is not part of it.
    while taken and not taken[-1] and not missing:
        taken.pop()
    if not taken:
        raise ToolError("the diff has a hunk without lines.")
    return Hunk(tuple(taken), start, bool(set(bare) & {" ", "-"}), bool(set(bare) & {" ", "+"})), at


def _ends_hunk(rows: Sequence[str], at: int, *, complete: bool) -> bool:
    row = rows[at]
    if row.startswith(("@@", "diff --git ", "```")):
        return True
    if complete and (row.rstrip() == "--" or not row.startswith((" ", "+", "-", "\\"))):
        return True  # "--" is the signature below a mailed patch
    return _names_files(rows, at) and (at + 2 >= len(rows) or rows[at + 2].startswith("@@"))


def apply_hunks(text: str, hunks: Sequence[Hunk], path: str) -> str:
    """The file's new text; `ToolError` when a hunk does not fit, and then nothing is changed."""
    carriage = "\r" if text.count("\r\n") * 2 > text.count("\n") else ""
    lines = text.split("\n")
    ends_bare = lines[-1] != ""
    if not ends_bare:
        lines.pop()
    drift = floor = 0
    for number, hunk in enumerate(hunks, 1):
        at = _locate(lines, hunk, drift, floor, f"hunk {number} of {path}")
        end = at + len(hunk.old)
        fresh = _new_lines(lines[at:end], hunk, carriage)
        if end == len(lines):
            ends_bare = hunk.new_ends_bare or (ends_bare and not hunk.old_ends_bare)
        lines[at:end] = fresh
        drift += at + len(fresh) - end
        floor = at + len(fresh)
    if not lines:
        return ""
    return "\n".join(lines) + ("" if ends_bare else "\n")


def _new_lines(there: Sequence[str], hunk: Hunk, carriage: str) -> list[str]:
    """What takes the place of the lines that are there; those that stay are taken from the file."""
    old = iter(there)
    fresh: list[str] = []
    for row in hunk.rows:
        if row.startswith("+"):
            fresh.append(row[1:] if row.endswith("\r") else row[1:] + carriage)
        else:
            line = next(old)
            fresh += [] if row.startswith("-") else [line]
    return fresh


def _locate(lines: Sequence[str], hunk: Hunk, drift: int, floor: int, where: str) -> int:
    """Index of the first old line in `lines`."""
    old = hunk.old
    if not old:
        # Without old lines the header counts from the line before.
        at = (None if lines else 0) if hunk.start is None else hunk.start + drift
        if at is None or not floor <= at <= len(lines):
            raise ToolError(f"{where} only adds lines and does not say where; give lines around the place.")
        return at
    stated = -1 if hunk.start is None else max(hunk.start - 1, 0) + drift
    for clean in (str, str.rstrip):
        there, wanted = [clean(line) for line in lines], [clean(line) for line in old]
        if stated >= floor and there[stated : stated + len(old)] == wanted:
            return stated
        first = range(floor, len(there) - len(old) + 1)
        places = [at for at in first if there[at] == wanted[0] and there[at : at + len(old)] == wanted]
        if len(places) == 1:
            return places[0]
        if places:
            listed = ", ".join(str(place + 1) for place in places[:5])
            raise ToolError(f"{where} fits in {len(places)} places (lines {listed}); give more lines around it.")
    raise ToolError(f"the old lines of {where} are not in the file. {nearest_text(lines, old)}")


def nearest_text(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """A sentence that shows the most similar lines with their numbers and says how they differ, if it is plain."""
    found = nearest(lines, wanted)
    if found is None:
        return "Nothing in the file is similar; read it again."
    size = min(len(wanted), _SHOWN_LINES)
    place = lines[found : found + size]
    rows = "\n".join(f"{found + k + 1}\t{_shorten(line)}" for k, line in enumerate(place))
    return f"{_difference(lines[found : found + len(wanted)], wanted)}The nearest lines are:\n{rows}"


def nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Index where the most similar lines begin; None when nothing is similar."""
    wanted = list(wanted[:_WANTED_LINES])
    if not wanted or not lines or len(lines) > _FILE_LINES:
        return None
    scored = _rough_scores(lines, wanted)
    target = "\n".join(line.strip() for line in wanted)
    best, place = 0.0, None
    for _, at in scored[:_CANDIDATES]:
        there = "\n".join(line.strip() for line in lines[at : at + len(wanted)])
        score = difflib.SequenceMatcher(None, there[:4_000], target[:4_000], autojunk=False).ratio()
        if score > best:
            best, place = score, at
    return place if best >= _GOOD_ENOUGH else None


def _rough_scores(lines: Sequence[str], wanted: Sequence[str]) -> list[tuple[float, int]]:
    """Windows of the file by how many words they share with what is wanted: linear in the size of the file."""
    target = Counter(word for line in wanted for word in line.split())
    per_line = [Counter(word for word in line.split() if word in target) for line in lines]
    running: Counter[str] = Counter()
    scores: list[tuple[float, int]] = []
    for at, words in enumerate(per_line):
        running.update(words)
        if at >= len(wanted):
            running.subtract(per_line[at - len(wanted)])
        start = max(0, at - len(wanted) + 1)
        scores.append((-sum(min(count, target[word]) for word, count in running.items() if count > 0), start))
    return sorted(set(scores))


def _difference(there: Sequence[str], wanted: Sequence[str]) -> str:
    if [line.split() for line in there] == [line.split() for line in wanted]:
        return "Only blanks or indentation differ. "
    if all(_NUMBERED.match(line) for line in wanted if line.strip()):
        return "The text seems to include the line numbers of read_file; leave them out. "
    return ""


def _shorten(line: str) -> str:
    if len(line) <= _SHOWN_CHARS:
        return line
    return line[:_SHOWN_CHARS] + cut_mark(f"{len(line) - _SHOWN_CHARS:,} more characters")


PATCH: Tool = tool_from(patch, ask=ask_patch)
