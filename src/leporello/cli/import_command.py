"""`leporello import`: imports recorded sessions of other agents; importing again adds only what is new."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from leporello.cli import ExitCode
from leporello.cli.context import CommandContext, encoding_option, pass_context
from leporello.errors import InputError
from leporello.files import NotText
from leporello.importers import (
    FORMATS,
    Change,
    ImportedSession,
    Stored,
    UnknownFormat,
    import_sessions,
    load_sessions,
    looks_recorded,
)
from leporello.lazy_regex import lazy_regex
from leporello.present.output import json_option, note, print_json, print_table, progress, warn
from leporello.present.text import plural, safe
from leporello.store import open_store

_SUFFIXES = (".json", ".jsonl", ".traj", ".md")
_COUNTED = lazy_regex(r"(.*) \((\d+)\)\Z", re.DOTALL)  # a note of an importer that says how often it applies


_MOST_REMARKS = 10


@dataclass(frozen=True, slots=True)
class _Row:
    file: str
    session: ImportedSession
    stored: Stored

    def as_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "format": self.session.format,
            "kind": self.session.kind,
            **asdict(self.stored),
            "skipped_lines": self.session.skipped_lines,
            "notes": list(self.session.notes),
        }


@dataclass(slots=True)
class _Outcome:
    rows: list[_Row] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Files that were named and can't be read, each with the reason."""
    skipped: list[str] = field(default_factory=list)
    """Files of a folder that are not recordings."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why files of folders were left out, and how many of them."""
    unknown: bool = False
    """Whether one of them is in no known format."""

    def refuse(self, error: InputError, *, named: bool) -> None:
        self.unknown = self.unknown or isinstance(error, UnknownFormat)
        reason = error.reason if isinstance(error, UnknownFormat) else str(error).removeprefix(f"{error.where}: ")
        (self.failed if named else self.skipped).append(safe(f"{error.where}: {reason}"))
        if not named:
            self.reasons[reason] += 1


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(readable=False, path_type=Path), metavar="FILE...")
@click.option("--store", "url", metavar="URL", help="Where to put them, instead of the configured store.")
@encoding_option
@click.option("--verbose", is_flag=True, help="Name every session, remark and file that was left out.")
@json_option
@pass_context
def command(
    context: CommandContext,
    files: tuple[Path, ...],
    url: str | None,
    encoding: str | None,
    verbose: bool,
    as_json: bool,
) -> ExitCode:
    """Put recorded sessions into the store.

    FILE is a recording of Claude Code, Codex, pi, OpenAI or Anthropic messages, Hermes, Gemini CLI, Qwen Code, Copilot,
    Kimi, opencode, aider, SWE-agent, mini-swe-agent and others, or a folder of them; the content tells which.
    Importing again adds only what is new. A FILE that is missing or can't be read is named, the others are imported,
    and the exit code is 2; so is a recording that is not UTF-8 text, unless it has a byte order mark or --encoding
    names its encoding. Other files of a folder are only counted. Exit code 3: there was nothing to import.
    """
    done = _Outcome()
    paths = [path for given in files for path in _expand(given, done)]
    if paths:
        with open_store(url or context.settings.store_url) as store, progress("Files imported:") as line:
            for number, path in enumerate(paths, 1):
                try:
                    sessions = load_sessions(path, encoding)
                    stored = import_sessions(store, sessions, path)
                    done.rows += [_Row(str(path), *pair) for pair in zip(sessions, stored, strict=True)]
                except NotText as error:
                    done.refuse(error, named=path in files or looks_recorded(path))
                except InputError as error:
                    done.refuse(error, named=path in files)
                line.update(number, len(paths))
    if as_json:
        imported = [row.as_dict() for row in done.rows]
        print_json({"imported": imported, "failed": done.failed, "skipped": done.skipped})
    else:
        _tell(done, verbose)
    if done.failed:
        return ExitCode.BAD_INPUT
    return ExitCode.OK if done.rows else ExitCode.NOTHING_DONE


def _expand(path: Path, done: _Outcome) -> list[Path]:
    """The files of a path or folder; a path that does not exist is recorded as refused."""
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file() and file.suffix in _SUFFIXES)
    if path.exists():
        return [path]
    pattern = any(letter in str(path) for letter in "*?[")
    what = "no file matches this pattern" if pattern else "there is no such file or folder"
    done.refuse(InputError(what, str(path)), named=True)
    return []


def _tell(done: _Outcome, verbose: bool) -> None:
    spoken = [row for row in done.rows if row.stored.change is not Change.EMPTY]
    if spoken:
        print_table(
            [(row.stored.change.value, f"{row.stored.added:,}", safe(row.stored.conversation)) for row in spoken],
            ("change", "messages added", "conversation"),
            numbers=(1,),
        )
    if verbose:
        _tell_each(done)
    else:
        _tell_counted(done)
    for reason in done.failed:
        warn(reason)
    if done.unknown:
        note(f"Formats that can be read: {', '.join(known.name for known in FORMATS)}.")
    if not done.rows:
        note("Nothing was imported." if done.failed else "Nothing was imported: no recordings were found.")
        return
    added = sum(row.stored.added for row in spoken)
    changed = sum(row.stored.change is not Change.UNCHANGED for row in spoken)
    silent = len(done.rows) - len(spoken)
    nothing_said = f" In {plural(silent, 'recording')} nothing was said." if silent else ""
    note(
        f"{plural(added, 'message')} added; new or grown: {changed:,} of {plural(len(spoken), 'session')}."
        + nothing_said
    )


def _tell_each(done: _Outcome) -> None:
    for row in done.rows:
        name = safe(row.file)
        if row.stored.change is Change.EMPTY:
            note(f"{name}: nothing was said in it")
        if row.session.skipped_lines:
            warn(f"{name}: lines that could not be read: {row.session.skipped_lines}")
        for text in row.session.notes:
            note(f"{name}: {safe(text)}")
    for reason in done.skipped:
        note(reason)


def _tell_counted(done: _Outcome) -> None:
    lost = [row.session.skipped_lines for row in done.rows if row.session.skipped_lines]
    if lost:
        warn(f"lines that could not be read: {sum(lost):,}, in {plural(len(lost), 'session')}")
    times: Counter[str] = Counter()
    sessions: Counter[str] = Counter()
    for row in done.rows:
        for text in row.session.notes:
            counted = _COUNTED.fullmatch(text)
            what = counted[1] if counted else text
            times[what] += int(counted[2]) if counted else 1
            sessions[what] += 1
    for what, count in times.most_common(_MOST_REMARKS):
        note(f"{safe(what)}: {plural(count, 'time')}, in {plural(sessions[what], 'session')}")
    if len(times) > _MOST_REMARKS:
        note(f"and {plural(len(times) - _MOST_REMARKS, 'rarer remark')}")
    for reason, count in done.reasons.most_common():
        note(f"left out, {plural(count, 'file')}: {safe(reason)}")
    if times or done.reasons:
        note("--verbose names each of them.")
