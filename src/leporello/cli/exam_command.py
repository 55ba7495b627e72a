"""`leporello exam`: what is still known after compaction, measured on question banks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leporello.cli.output import json_option, print_json, print_table, progress, say
from leporello.errors import InputError
from leporello.replay.bank import load_bank
from leporello.replay.exam import SessionScore, report
from leporello.replay.run import Sitting, run_all

_FOLDER = click.Path(file_okay=False, exists=True, path_type=Path)
_FILE = click.Path(exists=True, path_type=Path)


@click.command("exam")
@click.argument("banks", nargs=-1, type=_FILE, metavar="BANK...")
@click.option("--sessions", type=_FOLDER, help="Folder with the recorded sessions.")
@click.option("--engine", "engines", multiple=True, default=("compressor",), help="May be repeated. [compressor]")
@click.option("--search", "search", default="plain", show_default=True, help="Who answers the recovery call.")
@click.option("--window", default=128_000, show_default=True, help="The model's window in tokens.")
@click.option("--misses", is_flag=True, help="List the questions that were missed.")
@click.option("--processes", default=2, show_default=True, help="How many sessions run at once.")
@json_option
def command(
    banks: tuple[Path, ...],
    sessions: Path | None,
    engines: tuple[str, ...],
    search: str,
    window: int,
    misses: bool,
    processes: int,
    as_json: bool,
) -> None:
    """Replay sessions into engines and ask what is still known.

    With one engine `--json` prints one report; with several, an object of reports by engine name.
    """
    if not banks:
        raise InputError("no BANK was given")
    loaded = [load_bank(path) for path in _files(banks)]
    folder = sessions or Path()
    names = tuple(dict.fromkeys(engines))
    sittings = [Sitting(bank, folder, name, search, window) for name in names for bank in loaded]
    scores = _run(sittings, processes)
    by_engine = {name: [score for s, score in zip(sittings, scores, strict=True) if s.engine == name] for name in names}
    if as_json:
        reports = {name: _full_report(found, misses) for name, found in by_engine.items()}
        print_json(reports[names[0]] if len(names) == 1 else reports)
        return
    for name, found in by_engine.items():
        _print(name, window, found, misses)


def _files(paths: Sequence[Path]) -> list[Path]:
    return [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]


def _run(sittings: Sequence[Sitting], processes: int) -> list[SessionScore]:
    done: dict[int, SessionScore] = {}
    with progress("Sessions examined:") as line:
        for number, score in run_all(sittings, processes):
            done[number] = score
            line.update(len(done), len(sittings))
    return [done[number] for number in range(len(sittings))]


def _full_report(scores: Sequence[SessionScore], misses: bool) -> dict[str, Any]:
    result = report(scores)
    return {**result, "misses": _misses(scores)} if misses else result


def _misses(scores: Sequence[SessionScore]) -> list[dict[str, Any]]:
    return [
        {
            "session": score.session,
            "id": answer.question.id,
            "kind": answer.question.kind,
            "recovered": answer.recovered,
            "question": answer.question.question,
            "gold": answer.question.gold,
            "line": answer.question.line,
        }
        for score in scores
        for answer in score.answers
        if not answer.closed
    ]


def _print(engine: str, window: int, scores: Sequence[SessionScore], misses: bool) -> None:
    result = report(scores)
    say(f"{engine}, window {window:,}")
    rows = [
        (
            Path(row["session"]).name[:40],
            str(row["questions"]),
            f"{row['closed']:.1%}",
            f"{row['recovered']:.1%}",
            f"{row['kept_tokens']:,}",
            str(row["compactions"]),
            f"{row['seconds']:.1f}",
        )
        for row in result["sessions"]
    ]
    total = result["total"]
    rows.append(
        (
            "all",
            str(total["questions"]),
            f"{total['closed']:.1%}",
            f"{total['recovered']:.1%}",
            f"{total['kept_tokens']:,}",
            "",
            "",
        )
    )
    print_table(rows, ("session", "questions", "closed", "recovered", "kept", "compactions", "seconds"))
    say()
    kinds = sorted(result["kinds"].items())
    by_kind = [(kind, str(r["questions"]), f"{r['closed']:.1%}", f"{r['recovered']:.1%}") for kind, r in kinds]
    print_table(by_kind, ("kind", "questions", "closed", "recovered"))
    say()
    if misses:
        for miss in _misses(scores):
            mark = "found by search" if miss["recovered"] else "LOST"
            where = f"{Path(miss['session']).name} {miss['id']} [{miss['kind']}, line {miss['line']}] {mark}"
            say(f"{where}\n    {miss['question']}\n    {miss['gold']!r}")
