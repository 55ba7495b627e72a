"""`leporello import`: recorded sessions of other agents into the store, as often as one likes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from leporello.cli.exits import ExitCode
from leporello.cli.frame import Frame, pass_frame
from leporello.cli.output import json_option, note, print_json, print_table, progress, warn
from leporello.errors import InputError
from leporello.importers import ImportedSession, load_sessions
from leporello.importers.into_store import Change, Stored, import_sessions
from leporello.store import Store, open_store

_SUFFIXES = (".json", ".jsonl", ".traj", ".md")


@dataclass(frozen=True, slots=True)
class _Row:
    """One session of one file, and what became of it."""

    file: str
    session: ImportedSession
    stored: Stored

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "file": self.file,
            "format": self.session.format,
            "kind": self.session.kind,
            **asdict(self.stored),
            "skipped_lines": self.session.skipped_lines,
            "notes": list(self.session.notes),
        }


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="FILE...")
@click.option("--store", "url", metavar="URL", help="Where to put them, instead of the configured store.")
@json_option
@pass_frame
def command(frame: Frame, files: tuple[Path, ...], url: str | None, as_json: bool) -> ExitCode:
    """Put recorded sessions into the store.

    FILE is a recording of Claude Code, Codex, pi, OpenAI or Anthropic messages, Hermes, Gemini CLI, Qwen Code, Copilot,
    Kimi, opencode, aider, SWE-agent, mini-swe-agent and others, or a folder of them; the content tells which.
    Importing again adds only what is new. A FILE that can't be read is named, the others go on, and the exit code is
    2; what is no recording in a folder is only named.
    """
    rows: list[_Row] = []
    failed: list[str] = []
    skipped: list[str] = []
    paths = [path for given in files for path in _expand(given)]
    with open_store(url or frame.settings.store_url) as store, progress("Files imported:") as line:
        for number, path in enumerate(paths, 1):
            try:
                rows += _import(store, path)
            except InputError as error:
                (failed if path in files else skipped).append(str(error))
            line.update(number, len(paths))
    if as_json:
        print_json({"imported": [row.as_dict() for row in rows], "failed": failed, "skipped": skipped})
    else:
        _tell(rows, [*failed, *skipped])
    return ExitCode.BAD_INPUT if failed else ExitCode.OK


def _expand(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and file.suffix in _SUFFIXES)


def _import(store: Store, path: Path) -> list[_Row]:
    sessions = load_sessions(path)
    stored = import_sessions(store, sessions, path)
    return [_Row(str(path), session, result) for session, result in zip(sessions, stored, strict=True)]


def _tell(rows: list[_Row], unread: list[str]) -> None:
    if rows:
        print_table(
            [(row.stored.change.value, f"{row.stored.added:,}", row.stored.conversation) for row in rows],
            ("change", "messages added", "conversation"),
        )
    for row in rows:
        if row.session.skipped_lines:
            warn(f"{row.file}: lines that could not be read: {row.session.skipped_lines}")
        for text in row.session.notes:
            note(f"{row.file}: {text}")
    for reason in unread:
        warn(reason)
    added = sum(row.stored.added for row in rows)
    changed = sum(row.stored.change is not Change.UNCHANGED for row in rows)
    note(f"{added:,} messages added; {changed:,} of {len(rows):,} sessions were new or had grown.")
