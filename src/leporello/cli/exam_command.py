"""`leporello exam`: what is still known after compaction, measured on question banks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import orjson

from leporello.bench.bank import KINDS, load_bank
from leporello.bench.exam import SessionScore, report
from leporello.bench.make_bank import make_bank
from leporello.bench.run import ExamResult, ExamRun, run_all
from leporello.cli.files import must_be_another, write_atomically
from leporello.errors import InputError
from leporello.present.output import json_option, note, print_json, print_table, progress, say, strong

_SESSION_WIDTH = 40


def print_scores(run: ExamRun, scores: Sequence[SessionScore]) -> None:
    """One engine at one window: by session, then by kind of question."""
    result = report(scores)
    say(strong(f"{run.engine}, window {run.window:,}, search {run.search}"))
    rows = [
        (Path(row["session"]).name[:_SESSION_WIDTH], *_figures(row), str(row["compactions"]), f"{row['seconds']:.1f}")
        for row in result["sessions"]
    ]
    totals = (str(sum(score.compactions for score in scores)), f"{sum(score.seconds for score in scores):.1f}")
    rows.append(("all", *_figures(result["total"]), *totals))
    print_table(rows, ("session", "questions", "closed", "recovered", "kept", "compactions", "seconds"))
    say()
    print_table(
        [(kind, *_figures(row)) for kind, row in sorted(result["kinds"].items())],
        ("kind", "questions", "closed", "recovered"),
    )
    say()


def _figures(row: dict[str, Any]) -> tuple[str, ...]:
    rates = (str(row["questions"]), f"{row['closed']:.1%}", f"{row['recovered']:.1%}")
    return (*rates, f"{row['kept_tokens']:,}") if "kept_tokens" in row else rates


def markdown_table(results: Sequence[tuple[ExamRun, Sequence[SessionScore]]]) -> list[str]:
    """Engines and windows down, kinds of questions across; each cell is closed-book / recovered in per cent."""
    reports = [(run, report(scores)) for run, scores in results]
    present = [kind for kind in KINDS if any(kind in result["kinds"] for _, result in reports)]
    headings = ["engine", "window", "kept tokens", "all", *present, "compactions", "seconds"]
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for (run, result), (_, scores) in zip(reports, results, strict=True):
        cells = [run.engine, f"{run.window:,}", f"{result['total']['kept_tokens']:,}", _cell(result["total"])]
        cells += [_cell(result["kinds"][kind]) if kind in result["kinds"] else "" for kind in present]
        cells += [str(sum(score.compactions for score in scores)), f"{sum(score.seconds for score in scores):.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(row: dict[str, Any]) -> str:
    return f"{row['closed'] * 100:.1f} / {row['recovered'] * 100:.1f}"


def misses_of(scores: Sequence[SessionScore]) -> list[dict[str, Any]]:
    """Every question that was not answered from the context alone, and whether the search found it."""
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


def print_misses(scores: Sequence[SessionScore]) -> None:
    for miss in misses_of(scores):
        mark = "found by search" if miss["recovered"] else "LOST"
        where = f"{Path(miss['session']).name} {miss['id']} [{miss['kind']}, line {miss['line']}] {mark}"
        say(f"{where}\n    {miss['question']}\n    {miss['gold']!r}")
    say()


@dataclass(frozen=True, slots=True)
class ExamOptions:
    """What is examined, and what is shown of it."""

    banks: tuple[Path, ...]
    sessions: Path | None
    engines: tuple[str, ...]
    windows: tuple[int, ...]
    search: str
    misses: bool
    markdown: bool
    processes: int


_FOLDER = click.Path(file_okay=False, exists=True, path_type=Path)
_FILE = click.Path(exists=True, path_type=Path)


@click.command("exam")
@click.argument("banks", nargs=-1, type=_FILE, metavar="BANK...")
@click.option("--sessions", type=_FOLDER, help="Folder with the recorded sessions.")
@click.option("--engine", "engines", multiple=True, default=("compressor",), help="May be repeated. [compressor]")
@click.option("--window", "windows", multiple=True, type=click.IntRange(min=1_000), help="Tokens. May be repeated.")
@click.option("--search", default="recall", show_default=True, help="What answers the recovery call.")
@click.option("--misses", is_flag=True, help="List the questions that were missed.")
@click.option("--markdown", is_flag=True, help="Print one table of all engines and windows, for a page.")
@click.option("--processes", default=2, show_default=True, help="How many sessions run at once.")
@click.option("--make", "session", type=_FILE, metavar="SESSION", help="Write a bank for a session, by rule.")
@click.option("--out", type=click.Path(path_type=Path), help="Where --make writes it, instead of to the screen.")
@json_option
def command(as_json: bool, session: Path | None, out: Path | None, **given: Any) -> None:
    """Replay sessions into engines and measure what is still known.

    BANK is a question bank or a folder of them. With one engine and one window --json prints one report; with several
    engines an object of reports by engine, with several windows too by "engine@window".
    """
    options = ExamOptions(**given)
    if session is not None:
        _make(session, options.sessions, out)
        return
    if not options.banks:
        raise InputError("no BANK was given; `leporello exam --make SESSION` writes one")
    files = [file for path in options.banks for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    exams = [ExamResult(load_bank(path), options.sessions or Path()) for path in files]
    runs = [
        ExamRun(engine, window, options.search)
        for engine in dict.fromkeys(options.engines)
        for window in options.windows or (128_000,)
    ]
    results = list(zip(runs, _run(runs, exams, options.processes), strict=True))
    if as_json:
        several = len(set(options.windows)) > 1
        reports = {
            f"{run.engine}@{run.window}" if several else run.engine: {
                **report(scores),
                **({"misses": misses_of(scores)} if options.misses else {}),
            }
            for run, scores in results
        }
        print_json(reports if len(reports) > 1 else next(iter(reports.values())))
    elif options.markdown:
        for line in markdown_table(results):
            say(line)
    else:
        for run, scores in results:
            print_scores(run, scores)
            if options.misses:
                print_misses(scores)


def _run(runs: Sequence[ExamRun], exams: Sequence[ExamResult], processes: int) -> list[list[SessionScore]]:
    """For each run the scores of all sessions, in the order given."""
    pairs = [(run, exam) for run in runs for exam in exams]
    done: dict[int, SessionScore] = {}
    with progress("Sessions examined:") as line:
        for number, score in run_all(pairs, processes):
            done[number] = score
            line.update(len(done), len(pairs))
    width = len(exams)
    return [[done[row * width + column] for column in range(width)] for row in range(len(runs))]


def _make(session: Path, folder: Path | None, out: Path | None) -> None:
    if out is not None:
        must_be_another(out, str(session), "A bank can't replace its session; choose another name.")
    name = session.name
    if folder is not None and session.resolve().is_relative_to(folder.resolve()):
        name = str(session.resolve().relative_to(folder.resolve()))
    bank = make_bank(session, name)
    if out is None:
        print_json(bank.as_dict())
        return
    write_atomically(out, orjson.dumps(bank.as_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    note(f"{len(bank.questions)} questions about {session.name} written to {out}")
    say(str(out))
