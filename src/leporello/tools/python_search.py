"""Search without ripgrep, as a program of its own, with git's ignore rules."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
"""Later ones win over earlier ones in the same folder."""
_MOST_ALTERNATIVES = 1_000
_STAR = "[^/]*"
_FOLDERS = "(?:.*/)?"
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    expression: re.Pattern[str]
    ignores: bool
    """False for a line with `!`, which takes a file back in."""
    only_folders: bool

    def matches(self, path: str, is_folder: bool) -> bool:
        """Whether a path, relative to the ignore file's folder, is meant."""
        return (is_folder or not self.only_folders) and self.expression.fullmatch(path) is not None


def parse_rules(text: str) -> list[IgnoreRule]:
    """The rules of an ignore file; lines that make no sense are skipped, as git does."""
    return [rule for line in text.split("\n") if (rule := parse_rule(line.removesuffix("\r"))) is not None]


def parse_rule(line: str) -> IgnoreRule | None:
    """One rule, or None for comments, empty lines and broken patterns."""
    line = _strip_trailing_blanks(line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    if not ignores:
        line = line[1:]
    only_folders = line.endswith("/")
    pattern = line[:-1] if only_folders else line
    if not pattern:
        return None
    try:
        return IgnoreRule(glob_expression(pattern), ignores, only_folders)
    except (re.error, ValueError):
        return None


def _strip_trailing_blanks(line: str) -> str:
    while line.endswith(" ") and not _ends_with_escape(line[:-1]):
        line = line[:-1]
    return line


def _ends_with_escape(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def glob_expression(pattern: str) -> re.Pattern[str]:
    """A glob as git reads it: without a slash it means a name in any folder, with one the path from here."""
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    prefix = "" if anchored else _FOLDERS
    return re.compile(prefix + _translate(pattern), re.DOTALL)


def glob_filter(glob: str) -> re.Pattern[str]:
    """A glob as people type it for a search: the same, with `{a,b}` for alternatives."""
    return re.compile("|".join(glob_expression(choice).pattern for choice in _alternatives(glob)), re.DOTALL)


def _alternatives(glob: str) -> list[str]:
    braces = _BRACES.search(glob)
    if braces is None or "," not in braces[1]:
        return [glob]
    before, after = glob[: braces.start()], glob[braces.end() :]
    found = [choice for middle in braces[1].split(",") for choice in _alternatives(before + middle + after)]
    if len(found) > _MOST_ALTERNATIVES:
        raise ValueError("too many alternatives")
    return found


def _translate(pattern: str) -> str:
    out: list[str] = []
    at = 0
    # Where the last star of this folder's name, and the last pair of stars, stand in `out`. What stands between two of
    # them is best found at its first place, so no other place is tried: a glob of many stars would try them all.
    star: int | None = None
    folders: int | None = None
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            part, at = _translate_stars(pattern, at)
            if part == _STAR and star is not None:
                out[star] = "(?>[^/]*?"
                out.append(")")
            elif part == _FOLDERS and folders is not None:
                out[folders] = "(?>(?:.*?/)??"
                out.append(")")
            star = len(out) if part == _STAR else None
            folders = len(out) if part == _FOLDERS else folders
            out.append(part)
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[":
            part, at = _translate_class(pattern, at)
            out.append(part)
        elif char == "\\":
            if at + 1 >= len(pattern):
                raise ValueError("a pattern can't end with a backslash")
            out.append(re.escape(pattern[at + 1]))
            star = None if pattern[at + 1] == "/" else star
            at += 2
        else:
            out.append(re.escape(char))
            star = None if char == "/" else star
            at += 1
    return "".join(out)


def _translate_stars(pattern: str, at: int) -> tuple[str, int]:
    """One star stays in its folder; two or more between slashes are any number of folders."""
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    starts = at == 0 or pattern[at - 1] == "/"
    if end - at >= 2 and starts and end == len(pattern):
        return ".+", end
    if end - at >= 2 and starts and pattern[end] == "/":
        return _FOLDERS, end + 1
    return _STAR, end


def _translate_class(pattern: str, at: int) -> tuple[str, int]:
    """`[a-z]`, `[!a]`; never matches a slash."""
    at += 1
    negated = at < len(pattern) and pattern[at] in "!^"
    if negated:
        at += 1
    items: list[str] = []
    first = True
    while at < len(pattern) and (first or pattern[at] != "]"):
        first = False
        if pattern.startswith("[:", at):
            raise ValueError("named classes are not supported")
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
            items.append(re.escape(pattern[at]))
        elif pattern[at] == "-" and items and at + 1 < len(pattern) and pattern[at + 1] != "]":
            items.append("-")
        else:
            items.append(re.escape(pattern[at]))
        at += 1
    if at >= len(pattern):
        raise ValueError("a class without its end")
    body = "".join(items)
    return f"(?!/)[{'^' if negated else ''}{body}]", at + 1


class IgnoreStack:
    """The ignore files that apply in one folder: its own and those of the folders above it."""

    def __init__(self, levels: Sequence[tuple[str, list[IgnoreRule]]] = ()) -> None:
        self._levels = tuple(levels)

    def enter(self, folder: Path, relative: str) -> IgnoreStack:
        """The stack inside `folder`, which is `relative` to where the stack began (empty for the top)."""
        levels = list(self._levels)
        for name in IGNORE_FILES:
            try:
                text = (folder / name).read_text("utf-8", "replace")
            except OSError:
                continue
            levels.append((relative + "/" if relative else "", parse_rules(text)))
        return IgnoreStack(levels) if len(levels) > len(self._levels) else self

    def ignores(self, relative: str, is_folder: bool) -> bool:
        """Whether a path (relative to where the stack began) is left out. The nearest ignore file decides."""
        for base, rules in reversed(self._levels):
            inner = relative.removeprefix(base)
            for rule in reversed(rules):
                if rule.matches(inner, is_folder):
                    return rule.ignores
        return False


LARGEST_FILE = 20_000_000


def main() -> None:
    """Serve the one request on standard input."""
    search(json.load(sys.stdin), sys.stdout)


def search(request: dict[str, Any], out: TextIO) -> None:
    """Print every find of a request, which has the fields of a `Query`."""
    wanted = glob_filter(request["glob"]) if request["glob"] else None
    files = (f for f, name in iter_files(Path(request["path"])) if wanted is None or wanted.fullmatch(name))
    if request["mode"] == "files":
        for file in files:
            print(json.dumps({"path": str(file)}), file=out)
        return
    source = re.escape(request["pattern"]) if request["literal"] else request["pattern"]
    pattern = re.compile(source, re.IGNORECASE if request["ignore_case"] else 0)
    for file in files:
        for find in _search_file(file, pattern, request["context"]):
            print(json.dumps(find), file=out)


def iter_files(start: Path) -> Iterator[tuple[Path, str]]:
    """Files in order of their paths, with their names relative to `start`; ignored ones and .git left out."""
    if not start.is_dir():
        if start.is_file():
            yield start, start.name
        return
    top = _top_of(start)
    stack = IgnoreStack().enter(top, "")
    relative = ""
    for part in start.relative_to(top).parts:
        relative = f"{relative}/{part}" if relative else part
        stack = stack.enter(top / relative, relative)
    yield from _walk(top, relative, stack, len(relative) + 1 if relative else 0)


def _walk(top: Path, relative: str, stack: IgnoreStack, skip: int) -> Iterator[tuple[Path, str]]:
    try:
        with os.scandir(top / relative) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{relative}/{entry.name}" if relative else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or stack.ignores(path, is_folder):
            continue
        if is_folder:
            yield from _walk(top, path, stack.enter(top / path, path), skip)
        elif entry.is_file(follow_symlinks=False):
            yield top / path, path[skip:]


def _top_of(start: Path) -> Path:
    """The root of the repository that holds `start`, where its ignore files begin; else `start` itself."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    return start


def _search_file(file: Path, pattern: re.Pattern[str], context: int) -> Iterator[dict[str, Any]]:
    try:
        if file.stat().st_size > LARGEST_FILE:
            return
        data = file.read_bytes()
    except OSError:
        return
    if b"\x00" in data:
        return
    before: deque[dict[str, Any]] = deque(maxlen=context)
    after = 0
    for number, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        hit = pattern.search(text)
        row = {"path": str(file), "line": number, "text": text, "at": hit.start() if hit else 0, "hit": hit is not None}
        if hit:
            yield from before
            before.clear()
            after = context
            yield row
        elif after:
            after -= 1
            yield row
        else:
            before.append(row)
