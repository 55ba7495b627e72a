"""`search_files`: find text in files, or files by name. Uses ripgrep where it is installed, else a search in Python.

Both run as a child process that is stopped as soon as enough was found, and both respect ignore files, look into hidden
files, stay out of .git, and give the same order (by path).
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from msgspec import Meta, Struct

from leporello.cancel import CancelToken
from leporello.errors import ToolError
from leporello.lazy_regex import lazy_regex
from leporello.tools.base import Tool, ToolContext, ToolResult
from leporello.tools.budget import cut_mark
from leporello.tools.python_search import LARGEST_FILE, glob_filter
from leporello.tools.sandbox import is_within, may_read, readable, shown, similar_names
from leporello.tools.schema import tool_from

_LINE_CHARS = 300
_BEFORE_HIT = 100
_PLAIN_GLOB = lazy_regex(r"[\w.*?-]+")
_WILD = lazy_regex(r"[*?\[{]")
_PYTHON = "import sys; sys.path.insert(0, sys.argv[1]); from leporello.tools.python_search import main; main()"


@dataclass(frozen=True, slots=True)
class Query:
    path: Path
    mode: str = "content"
    pattern: str = ""
    glob: str = ""
    literal: bool = False
    ignore_case: bool = False
    context: int = 0


class Find(Struct, frozen=True):
    """One line (or one file, with line 0)."""

    path: Path
    line: int = 0
    text: str = ""
    at: int = 0
    hit: bool = True


def ripgrep() -> str | None:
    """The rg program: on the path, or beside the Python that runs this."""
    return shutil.which("rg") or shutil.which("rg", path=str(Path(sys.executable).parent))


def search_tool(rg: str | None = None) -> Tool:
    """The tool, searching with the given ripgrep program or, when None, in Python."""

    def search_files(
        context: ToolContext,
        pattern: str,
        path: str = ".",
        mode: Literal["content", "files"] = "content",
        glob: str = "",
        regex: bool = True,
        ignore_case: bool = False,
        context_lines: Annotated[int, Meta(ge=0, le=20)] = 0,
        limit: Annotated[int, Meta(ge=1, le=1_000)] = 100,
        offset: Annotated[int, Meta(ge=0)] = 0,
    ) -> ToolResult:
        """Search text in files (content), or find files by name (files). Ignored files and .git are left out.

        Args:
            pattern: Regular expression to look for; in files mode a glob such as *.py, or part of a path.
            path: Folder or file to search.
            mode: content for lines in files, files for file names.
            glob: Only search files whose name or path matches, such as *.py or src/**/*.ts.
            regex: false takes the pattern as plain text.
            ignore_case: Do not tell upper from lower case.
            context_lines: Lines to show around each find.
            limit: How many finds to show.
            offset: How many finds to skip, to see further ones.
        """
        target = readable(context, path)
        # It runs without a sandbox: not from a folder that commands can write to.
        program = rg if rg and not may_read(context, Path(rg).parent) else None
        if not target.exists():
            raise ToolError(f"there is no {path}.{similar_names(target)}")
        if mode == "files":
            query = Query(target, "files", glob=glob)
            finds = _named(run_search(query, program, context.cancel), pattern, target)
        else:
            _check_pattern(pattern, is_python_regex=regex and program is None)
            query = Query(target, "content", pattern, glob, not regex, ignore_case, context_lines)
            finds = run_search(query, program, context.cancel)
        return _result(context, finds, limit, offset, exempt=is_within(target, context.outputs))

    return tool_from(search_files, name="search_files")


def run_search(query: Query, rg: str | None, cancel: CancelToken) -> Iterator[Find]:
    """The finds of a query as they come; closing the iterator ends the search."""
    wanted = _check_glob(query.glob) if query.glob else None
    command = _rg_command(rg, query) if rg else [sys.executable, "-I", "-c", _PYTHON, str(Path(__file__).parents[2])]
    found = False
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as trouble:
        if not rg:
            given.write(json.dumps({**asdict(query), "path": str(query.path)}).encode())
            given.seek(0)
        # Child and parent share no pipe but the output, so neither can wait for the other.
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=trouble)
        cancel.on_cancel(process.kill)
        assert process.stdout is not None
        try:
            for row in process.stdout:
                find = _rg_find(row, query.mode) if rg else _python_find(row)
                if find is not None and (wanted is None or wanted.fullmatch(_relative(find.path, query.path))):
                    found = True
                    yield find
            code = process.wait()
            # ripgrep ends with 1 when nothing was found, with 2 when there was trouble, if only with one file.
            if cancel.cancelled or code not in (0, 1 if rg else 0, 2 if rg and found else 0):
                trouble.seek(0)
                _fail(trouble.read(2_000).decode("utf-8", "replace"), cancel)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()


def _fail(trouble: str, cancel: CancelToken) -> NoReturn:
    if cancel.cancelled:
        raise ToolError("the search was stopped before its end; narrow it down by path or glob.")
    hint = " Set regex to false to search it as plain text." if "regex" in trouble else ""
    raise ToolError(f"the search failed: {trouble.strip()[-500:]}{hint}")


def _rg_command(rg: str, query: Query) -> list[str]:
    command = [rg, "--no-config", "--hidden", "--no-require-git", "--no-ignore-global", "--sort", "path"]
    command += ["--glob", "!.git", "--max-filesize", str(LARGEST_FILE)]
    if _PLAIN_GLOB.fullmatch(query.glob):
        # Spares work only: --glob would override ignore files, a type of our own does not; finds are filtered anyway.
        command += ["--type-add", f"wanted:{query.glob}", "--type", "wanted"]
    if query.mode == "files":
        return [*command, "--files", "--", str(query.path)]
    command += ["--json", "--context", str(query.context)]
    if query.ignore_case:
        command.append("--ignore-case")
    if query.literal:
        command.append("--fixed-strings")
    return [*command, "--regexp", query.pattern, "--", str(query.path)]


def _rg_find(row: bytes, mode: str) -> Find | None:
    if mode == "files":
        return Find(Path(os.fsdecode(row.removesuffix(b"\n"))))
    event = json.loads(row)
    if event["type"] not in ("match", "context"):
        return None
    data = event["data"]
    text = _rg_text(data["lines"])
    hits = data.get("submatches") or []
    # Offsets count bytes.
    at = len(text.encode("utf-8", "replace")[: hits[0]["start"]].decode("utf-8", "ignore")) if hits else 0
    path = Path(_rg_text(data["path"]))
    return Find(path, data["line_number"], text.removesuffix("\n"), at, event["type"] == "match")


def _rg_text(value: dict[str, str]) -> str:
    return value["text"] if "text" in value else base64.b64decode(value["bytes"]).decode("utf-8", "replace")


def _python_find(row: bytes) -> Find:
    data = json.loads(row)
    return Find(**{**data, "path": Path(data["path"])})


def _named(finds: Iterator[Find], pattern: str, start: Path) -> Iterator[Find]:
    """Files whose name or path fits: by glob when the pattern is one, else by containing it."""
    wanted = _check_glob(pattern) if _WILD.search(pattern) else None
    for find in finds:
        name = _relative(find.path, start)
        if wanted.fullmatch(name) if wanted else pattern.lower() in name.lower():
            yield find


def _relative(path: Path, start: Path) -> str:
    return path.name if path == start else str(path.relative_to(start))


def _check_glob(glob: str) -> re.Pattern[str]:
    try:
        return glob_filter(glob)
    except (re.error, ValueError) as error:
        raise ToolError(f"{glob!r} is not a valid glob: {error}.") from None


def _check_pattern(pattern: str, *, is_python_regex: bool) -> None:
    if not pattern:
        raise ToolError("the pattern is empty.")
    if "\n" in pattern:
        raise ToolError("the pattern contains a line break; lines are searched one by one.")
    if is_python_regex:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ToolError(
                f"{pattern!r} is not a valid regular expression ({error}). "
                "Set regex to false to search it as plain text."
            ) from None


def _result(context: ToolContext, finds: Iterator[Find], limit: int, offset: int, *, exempt: bool) -> ToolResult:
    rows: list[str] = []
    hits = size = 0
    more = False
    last: Find | None = None
    for find in finds:
        if find.hit and hits - offset >= limit:
            more = True
            break
        hits += find.hit
        if offset and hits <= offset:
            continue
        row = _row(context, find)
        if size + len(row) > context.limits.read_chars:
            more, hits = True, hits - find.hit
            break
        if last is not None and _is_gap(last, find):
            rows.append("--")
        rows.append(row)
        size += len(row) + 1
        last = find
    if more:
        rows.append(cut_mark(f"there are more finds; go on with offset={hits}, or narrow the search"))
    details = {"finds": hits - min(offset, hits), "more": more}
    return ToolResult("\n".join(rows) or "(nothing found)", details=details, exempt=exempt)


def _is_gap(last: Find, find: Find) -> bool:
    return not (last.hit and find.hit) and (last.path != find.path or find.line > last.line + 1)


def _row(context: ToolContext, find: Find) -> str:
    name = shown(context, find.path).encode("utf-8", "replace").decode()
    if not find.line:
        return name
    text, start = find.text, max(0, find.at - _BEFORE_HIT)
    if len(text) > _LINE_CHARS:
        shown_part = text[start : start + _LINE_CHARS]
        rest = len(text) - start - len(shown_part)
        text = cut_mark(f"{start:,} characters") + shown_part if start else shown_part
        text += cut_mark(f"{rest:,} characters") if rest else ""
    return f"{name}:{find.line}{':' if find.hit else '-'} {text}"
