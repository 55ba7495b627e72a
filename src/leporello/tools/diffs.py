"""Unified diffs as models write them: parsed leniently, applied strictly.

Where lines are not in a file, the nearest place is named.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from leporello.errors import ToolError
from leporello.tools.markers import cut_mark

_CANDIDATES = 5
_FILE_LINES = 50_000
_WANTED_LINES = 60
_SHOWN_LINES = 12
_SHOWN_CHARS = 200
_GOOD_ENOUGH = 0.5


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
    if all(_starts_with_number(line) for line in wanted if line.strip()):
        return "The text seems to include the line numbers of read_file; leave them out. "
    return ""


def _starts_with_number(line: str) -> bool:
    number, tab, _ = line.partition("\t")
    return bool(tab) and number.strip().isdigit()


def _shorten(line: str) -> str:
    if len(line) <= _SHOWN_CHARS:
        return line
    return line[:_SHOWN_CHARS] + cut_mark(f"{len(line) - _SHOWN_CHARS:,} more characters")


_SIDE = re.compile(r"^[abiw]/")
_HUNK = re.compile(r"^@@(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@)?")
_NO_NEWLINE = "\\ No newline"
_NOWHERE = "/dev/null"
_Same: TypeAlias = Callable[[Sequence[str], Sequence[str]], bool]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Old lines to find and new lines to put there. `context` pairs indices of unchanged lines (old, new)."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    context: tuple[tuple[int, int], ...]
    start: int | None
    """Line (from 1) in the old file, when the header says it."""
    old_ends_bare: bool = False
    new_ends_bare: bool = False
    """The last line has no newline behind it."""


@dataclass(frozen=True, slots=True)
class FileChange:
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
    rows = text.split("\n")
    if rows and rows[-1] == "":
        rows.pop()
    changes: list[FileChange] = []
    names = (path, path) if path else None
    hunks: list[Hunk] = []
    at = 0
    while at < len(rows):
        row = rows[at]
        if row.startswith("--- ") and at + 1 < len(rows) and rows[at + 1].startswith("+++ "):
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


def apply_hunks(text: str, hunks: Sequence[Hunk], path: str) -> str:
    """The file's new text; `ToolError` when a hunk does not fit, and then nothing is changed."""
    ending = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    lines = text.split("\n")
    ends_bare = lines[-1] != ""
    if not ends_bare:
        lines.pop()
    drift = 0
    floor = 0
    for number, hunk in enumerate(hunks, 1):
        at = _locate(lines, hunk, drift, floor, f"hunk {number} of {path}")
        fresh = _new_lines(lines, hunk, at, "\r" if ending == "\r\n" else "")
        touches_end = at + len(hunk.old) == len(lines)
        lines[at : at + len(hunk.old)] = fresh
        if touches_end:
            ends_bare = hunk.new_ends_bare or (ends_bare and not hunk.old_ends_bare)
        drift += len(fresh) - len(hunk.old)
        floor = at + len(fresh)
    if not lines:
        return ""
    return "\n".join(lines) + ("" if ends_bare else "\n")


def _close(changes: list[FileChange], names: tuple[str, str] | None, hunks: list[Hunk]) -> None:
    if not hunks and (names is None or _NOWHERE not in names):
        return
    if names is None:
        raise ToolError("the diff does not say which file it is for: give path, or '---' and '+++' lines.")
    changes.append(FileChange(names[0], names[1], tuple(hunks)))


def _file_name(row: str) -> str:
    name = row[4:].split("\t")[0].strip().strip('"')
    if name == _NOWHERE:
        return name
    return _SIDE.sub("", name)


def _parse_hunk(rows: Sequence[str], at: int) -> tuple[Hunk, int]:
    header = _HUNK.match(rows[at])
    build = _HunkBuilder(header)
    at += 1
    while at < len(rows) and not _ends_hunk(rows, at, build):
        build.add(rows[at], at + 1)
        at += 1
    return build.hunk(), at


class _HunkBuilder:
    """Collects the lines of one hunk. Models miscount, so the header's sizes never end a hunk on their own."""

    def __init__(self, header: re.Match[str] | None) -> None:
        stated = header is not None and header[1] is not None
        self._start = int(header[1]) if header and stated else None
        self._sizes = (int(header[2] or 1), int(header[4] or 1)) if header and stated else None
        self._old: list[str] = []
        self._new: list[str] = []
        self._context: list[tuple[int, int]] = []
        self._bare = {"-": False, "+": False}
        self._last = " "
        self._blank_tail = 0

    @property
    def complete(self) -> bool:
        return self._sizes is not None and self._sizes == (len(self._old), len(self._new))

    def add(self, row: str, number: int) -> None:
        if row.startswith(_NO_NEWLINE):
            self._bare["-"] |= self._last in " -"
            self._bare["+"] |= self._last in " +"
            return
        if row and row[0] not in " -+":
            raise ToolError(f"line {number} of the diff begins with neither ' ', '-' nor '+': {row[:80]!r}.")
        # A blank context line often loses its leading blank on the way.
        self._last = row[0] if row else " "
        self._blank_tail = 0 if row else self._blank_tail + 1
        if self._last == " ":
            self._context.append((len(self._old), len(self._new)))
        if self._last in " -":
            self._old.append(row[1:])
        if self._last in " +":
            self._new.append(row[1:])

    def hunk(self) -> Hunk:
        if self._sizes is None and self._blank_tail:
            # Empty lines behind the hunk are not part of it when no size says so.
            del self._old[-self._blank_tail :], self._new[-self._blank_tail :], self._context[-self._blank_tail :]
        if not self._old and not self._new:
            raise ToolError("the diff has a hunk without lines.")
        return Hunk(
            tuple(self._old), tuple(self._new), tuple(self._context), self._start, self._bare["-"], self._bare["+"]
        )


def _ends_hunk(rows: Sequence[str], at: int, build: _HunkBuilder) -> bool:
    row = rows[at]
    if row.startswith(("@@", "diff --git ", "```")):
        return True
    if build.complete and not row.startswith((" ", "+", "-", "\\")):
        return True
    if build.complete and row.rstrip() == "--":
        return True  # the signature below a mailed patch
    has_names = row.startswith("--- ") and at + 1 < len(rows) and rows[at + 1].startswith("+++ ")
    return has_names and (at + 2 >= len(rows) or rows[at + 2].startswith("@@"))


def _locate(lines: list[str], hunk: Hunk, drift: int, floor: int, where: str) -> int:
    """Index of the first old line in `lines`."""
    stated = None if hunk.start is None else max(hunk.start - 1, 0) + drift
    if not hunk.old:
        # Without old lines the header counts from the line before.
        at = None if hunk.start is None else hunk.start + drift
        if at is None and not lines:
            at = 0
        if at is None or not floor <= at <= len(lines):
            raise ToolError(f"{where} only adds lines and does not say where; give lines around the place.")
        return at
    for same in (_equal, _equal_but_blanks):
        if stated is not None and floor <= stated and same(lines[stated : stated + len(hunk.old)], hunk.old):
            return stated
        places = _places(lines, hunk.old, floor, same)
        if len(places) == 1:
            return places[0]
        if places:
            shown = ", ".join(str(place + 1) for place in places[:5])
            raise ToolError(f"{where} fits in {len(places)} places (lines {shown}); give more lines around it.")
    raise ToolError(f"the old lines of {where} are not in the file. {nearest_text(lines, hunk.old)}")


def _places(lines: list[str], old: Sequence[str], floor: int, same: _Same) -> list[int]:
    first = old[0].rstrip()
    return [
        at
        for at in range(floor, len(lines) - len(old) + 1)
        if lines[at].rstrip() == first and same(lines[at : at + len(old)], old)
    ]


def _new_lines(lines: list[str], hunk: Hunk, at: int, carriage: str) -> list[str]:
    fresh = [line if line.endswith("\r") else line + carriage for line in hunk.new]
    for old_index, new_index in hunk.context:
        fresh[new_index] = lines[at + old_index]
    return fresh


def _equal(some: Sequence[str], others: Sequence[str]) -> bool:
    return list(some) == list(others)


def _equal_but_blanks(some: Sequence[str], others: Sequence[str]) -> bool:
    return [line.rstrip() for line in some] == [line.rstrip() for line in others]
