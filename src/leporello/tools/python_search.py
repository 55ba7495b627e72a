"""Search without ripgrep, as a program of its own, with git's ignore rules."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from leporello.lazy_regex import lazy_regex

IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")  # later ones win over earlier ones in the same folder
LARGEST_FILE = 20_000_000
_MOST_ALTERNATIVES = 1_000
_BRACES = lazy_regex(r"\{([^{}]*)\}")
# One star stays in its folder; two or more between slashes are any number of folders. Named classes are not supported.
_TOKEN = lazy_regex(
    r"(?P<folders>(?:(?<=/)|\A)\*\*+/)|(?P<inside>(?:(?<=/)|\A)\*\*+\Z)|(?P<star>\*+)|(?P<any>\?)|\\(?P<escaped>.)"
    r"|\[(?P<negated>[!^]?+)(?P<items>(?:\\.|(?!\[:)[^\\])(?:\\.|(?!\[:)[^\]\\])*)\]|(?P<plain>[^\\\[])",
    re.DOTALL,
)
_CLASS_ITEM = lazy_regex(r"\\?.", re.DOTALL)
_EXPRESSIONS = {"star": "[^/]*", "folders": "(?:.*/)?", "inside": ".+", "any": "[^/]"}
_FIRST_PLACE = {"star": "(?>[^/]*?", "folders": "(?>(?:.*?/)??"}


def glob_expression(pattern: str) -> re.Pattern[str]:
    """A glob as git reads it: without a slash it means a name in any folder, with one the path from here."""
    prefix = "" if "/" in pattern else _EXPRESSIONS["folders"]
    return re.compile(prefix + _translate(pattern.removeprefix("/")), re.DOTALL)


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
    # Where the last star of this folder's name, and the last pair of stars, stand in `out`. What stands between two of
    # them is best found at its first place, so no other place is tried: a glob of many stars would try them all.
    last: dict[str, int] = {}
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None and pattern[at] == "[":
            raise ValueError("a class without its end, or with a name such as [:alpha:]")
        if token is None or token.lastgroup is None:
            raise ValueError("a pattern can't end with a backslash")
        at = token.end()
        kind = token.lastgroup
        if kind in _FIRST_PLACE:
            if kind in last:
                out[last[kind]] = _FIRST_PLACE[kind]
                out.append(")")
            last[kind] = len(out)
        if token[0].endswith("/"):
            last.pop("star", None)
        if kind == "items":
            out.append(_class_expression(token["items"], token["negated"]))
        else:
            out.append(_EXPRESSIONS.get(kind) or re.escape(token[kind]))
    return "".join(out)


def _class_expression(text: str, negated: str) -> str:
    """`[a-z]`, `[!a]`; never matches a slash."""
    items = _CLASS_ITEM.findall(text)
    ranges = range(1, len(items) - 1)
    body = "".join("-" if item == "-" and k in ranges else re.escape(item[-1]) for k, item in enumerate(items))
    return f"(?!/)[{'^' if negated else ''}{body}]"


class IgnoreRule(Struct, frozen=True):
    expression: re.Pattern[str]
    ignores: bool
    """False for a line with `!`, which takes a file back in."""
    only_folders: bool
    base: str
    """Where the paths begin that it is about: the folder of its ignore file with a slash, empty at the top."""

    def matches(self, path: str, is_folder: bool) -> bool:
        """Whether a path from the top is meant."""
        in_scope = is_folder or not self.only_folders
        return in_scope and self.expression.fullmatch(path, len(self.base)) is not None


def parse_rules(text: str, base: str = "") -> list[IgnoreRule]:
    """The rules of an ignore file; comments, and lines that make no sense, are skipped, as git does."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [rule for line in lines if (rule := _parse_rule(_strip_blanks(line), base)) is not None]


def _parse_rule(line: str, base: str) -> IgnoreRule | None:
    pattern = line.removeprefix("!").removesuffix("/")
    if not pattern or line.startswith("#"):
        return None
    try:
        return IgnoreRule(glob_expression(pattern), not line.startswith("!"), line.endswith("/"), base)
    except (re.error, ValueError):
        return None


def _strip_blanks(line: str) -> str:
    """The line without trailing blanks; one behind a backslash stays."""
    bare = line.rstrip(" ")
    is_escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return line[: len(bare) + 1] if is_escaped else bare


def _rules_in(folder: Path, base: str) -> Iterator[IgnoreRule]:
    for name in IGNORE_FILES:
        try:
            text = (folder / name).read_text("utf-8", "replace")
        except OSError:
            continue
        yield from parse_rules(text, base)


def _is_ignored(path: str, is_folder: bool, rules: list[IgnoreRule]) -> bool:
    """Whether a path is left out. The last rule that means it decides: that of the nearest ignore file."""
    decides = next((rule for rule in reversed(rules) if rule.matches(path, is_folder)), None)
    return decides is not None and decides.ignores


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
    # Ignore files begin to count at the root of the repository, if there is one.
    top = next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)
    base = ""
    rules: list[IgnoreRule] = []
    for part in start.relative_to(top).parts:
        rules += _rules_in(top / base, base)
        base += f"{part}/"
    for path in _walk(top, base, rules):
        yield top / path, path.removeprefix(base)


def _walk(top: Path, base: str, rules: list[IgnoreRule]) -> Iterator[str]:
    """Paths of files below a folder; `base` is the folder, with a slash, and they are all seen from the top."""
    try:
        with os.scandir(top / base) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    rules = [*rules, *_rules_in(top / base, base)]
    for entry in entries:
        path = base + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or _is_ignored(path, is_folder, rules):
            continue
        if is_folder:
            yield from _walk(top, f"{path}/", rules)
        elif entry.is_file(follow_symlinks=False):
            yield path


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
