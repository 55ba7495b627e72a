"""`leporello exam`: what is still known of recorded sessions after engines folded them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import click
import orjson

from leporello.agent.endpoints import choose_model
from leporello.bench.bank import KINDS
from leporello.bench.bill import COLUMNS
from leporello.bench.exam import Exam, SessionScore
from leporello.bench.make_bank import make_bank
from leporello.bench.run import FORMATS, STATE, ExamFormat, ExamRun, recognise, run_all
from leporello.bench.states import LABELS
from leporello.cli.context import CommandContext, must_be_another, pass_context, write_atomically
from leporello.config import Settings
from leporello.errors import InputError
from leporello.models.limits import limits_of
from leporello.policy.decision import MEMORY, POLICIES
from leporello.present.output import json_option, note, print_json, print_table, progress, say, strong, warn
from leporello.present.text import cut_middle
from leporello.summaries.base import Summariser
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.tokens import TokenCounter
from leporello.usage import money

_SESSION_WIDTH = 40
_REPLAY_COLUMNS = ("kept_tokens", "compactions", "seconds")
_NO_RATES = ("lines", "summaries", *_REPLAY_COLUMNS)
_STATE_COLUMNS = ("active_task", "finished", "pending", "not_pending", "rules", "not_rules", "new_values", "only_old")
"""The labels shown for each session; all of them stand in the table below it."""
Scores: TypeAlias = Sequence[SessionScore[Any]]


def print_scores(form: ExamFormat, run: ExamRun, scores: Scores) -> None:
    """One engine at one window: by session, then by kind of question or by section."""
    result = form.report(scores)
    say(strong(f"{run.engine}, window {run.window:,}, search {run.search}"))
    # Compactions and seconds add up; kept tokens are a mean.
    sums = {"compactions": sum(one.compactions for one in scores), "seconds": sum(one.seconds for one in scores)}
    rows = [*result["sessions"], {"session": "all", **result["total"], **sums}]
    columns = _STATE_COLUMNS if form is STATE else [name for name in result["total"] if name not in _NO_RATES]
    headings = [COLUMNS.get(column, column.replace("_", " ")) for column in columns]
    print_table(
        [
            (cut_middle(Path(row["session"]).name, _SESSION_WIDTH), *_cells(row, (*columns, *_REPLAY_COLUMNS)))
            for row in rows
        ],
        ("session", *headings, "kept", "compactions", "seconds"),
    )
    say()
    if form is STATE:
        total = result["total"]
        labels = [(words, *_cells(total[label], ("found", "of", "share"))) for label, words in LABELS.items()]
        print_table(labels, ("what", "found", "of", "share"))
        say()
        print_table([(name, str(lines)) for name, lines in total.get("lines", {}).items()], ("section", "lines"))
    else:
        kinds = sorted(result["kinds"].items())
        print_table([(kind, *_cells(row, columns)) for kind, row in kinds], ("kind", *headings))
    say()
    if "summaries" in result["total"]:
        _print_summaries(result["total"]["summaries"])


def _cells(row: dict[str, Any], columns: Sequence[str]) -> list[str]:
    return [_cell(row[column], column) for column in columns]


def _cell(value: Any, column: str = "") -> str:
    if value is None:
        return "-"
    if column == "cost":
        return money(value)
    if isinstance(value, dict):
        return f"{value['found']}/{value['of']}"
    if column == "seconds":
        return f"{value:.1f}"
    return f"{value:.1%}" if isinstance(value, float) else f"{value:,}"


def _print_summaries(spent: dict[str, Any]) -> None:
    price = "price not known" if spent["cost"] is None else money(spent["cost"])
    say(
        f"Summaries by the model: {spent['written']:,} of {spent['asked']:,}, {spent['input_tokens']:,} tokens read, "
        f"{spent['output_tokens']:,} written, {price}."
    )
    for text in spent["warnings"]:
        warn(text)
    say()


def markdown_table(form: ExamFormat, results: Sequence[tuple[ExamRun, Scores]]) -> list[str]:
    """Engines and windows down, kinds of questions or labels across; kinds show closed-book / recovered in per cent."""
    lines: list[list[str]] = []
    for run, scores in results:
        result = form.report(scores)
        cells = {
            "engine": run.engine,
            "window": f"{run.window:,}",
            "kept tokens": _cell(result["total"]["kept_tokens"]),
        }
        cells |= _markdown_cells(result)
        cells["compactions"] = str(sum(score.compactions for score in scores))
        cells["seconds"] = f"{sum(score.seconds for score in scores):.1f}"
        lines = lines or [list(cells), ["---"] * len(cells)]
        lines.append(list(cells.values()))
    return ["| " + " | ".join(line) + " |" if line[0] != "---" else "|" + "---|" * len(line) for line in lines]


def _markdown_cells(result: dict[str, Any]) -> dict[str, str]:
    total = result["total"]
    if "kinds" not in result:
        return {label: _cell(total[label]) for label in LABELS}
    order = sorted(result["kinds"], key=lambda kind: (KINDS.index(kind) if kind in KINDS else len(KINDS), kind))
    found = {"all": total, **{kind: result["kinds"][kind] for kind in order}}
    cells = {kind: f"{row['closed'] * 100:.1f} / {row['recovered'] * 100:.1f}" for kind, row in found.items()}
    return cells | {name: f"{total[name] * 100:.1f}" for name in ("search", "all_found") if name in total}


def misses_of(form: ExamFormat, scores: Scores) -> list[dict[str, Any]]:
    return [{"session": score.session, **miss} for score in scores for miss in form.misses(score.answers)]


def print_misses(form: ExamFormat, scores: Scores) -> None:
    """Each miss with what was asked for, and whether the search found it."""
    for miss in misses_of(form, scores):
        if form is STATE:
            mark = "SHOULD NOT BE THERE" if miss["found"] else "LOST"
        else:
            mark = "found by search" if miss["recovered"] else "LOST"
        line = f", line {miss['line']}" if "line" in miss else ""
        name = " ".join(filter(None, (Path(miss["session"]).name, miss.get("id"))))
        said = [miss[key] for key in ("question",) if key in miss] + [repr(miss.get("gold") or miss.get("text"))]
        say("\n    ".join([f"{name} [{miss['kind']}{line}] {mark}", *said]))
    say()


@dataclass(frozen=True, slots=True)
class ExamOptions:
    paths: tuple[Path, ...]
    form: str | None
    only: str
    sessions: Path | None
    engines: tuple[str, ...]
    windows: tuple[int, ...]
    search: str
    summariser: str | None
    policy: str
    misses: bool
    markdown: bool
    processes: int


_FOLDER = click.Path(file_okay=False, exists=True, path_type=Path)
_FILE = click.Path(path_type=Path)


@click.command("exam")
@click.argument("paths", nargs=-1, type=_FILE, metavar="PATH...")
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), help="What PATH holds; bank and state are recognised."
)
@click.option("--only", metavar="ID,...", default="", help="Only these files or conversations, by name.")
@click.option("--sessions", type=_FOLDER, help="Folder with the recorded sessions that banks are about.")
@click.option("--engine", "engines", multiple=True, default=("compressor",), help="May be repeated. [compressor]")
@click.option("--window", "windows", multiple=True, type=click.IntRange(min=1_000), help="Tokens. May be repeated.")
@click.option(
    "--search", default="recall", show_default=True, help="What answers the recovery call: recall, unasked, plain."
)
@click.option("--summariser", metavar="MODEL", help="Let this model write summaries, and say what that cost.")
@click.option("--policy", type=click.Choice(POLICIES), default=MEMORY, show_default=True, help="How much folds keep.")
@click.option("--misses", is_flag=True, help="List what was missed.")
@click.option("--markdown", is_flag=True, help="Print one table of all engines and windows, for a page.")
@click.option("--processes", default=2, show_default=True, help="How many sessions run at once.")
@click.option("--make", "session", type=_FILE, metavar="SESSION", help="Write a bank for a session, by rule.")
@click.option("--out", type=click.Path(path_type=Path), help="Where --make writes it, instead of to the screen.")
@json_option
@pass_context
def command(context: CommandContext, /, as_json: bool, session: Path | None, out: Path | None, **given: Any) -> None:
    """Replay sessions into engines and measure what is still known.

    PATH is a file or a folder of them: question banks and state banks (what holds at a moment, by section) about
    recorded sessions, or with --format the public memory exams LoCoMo (locomo10/26.json) and BEAM (100K/1/). The window
    is 128,000 tokens unless given, 16,000 for locomo, 64,000 for beam.

    \b
    leporello exam banks/ --sessions sessions/
    leporello exam states/ --sessions sessions/ --misses
    leporello exam --format locomo locomo10/ --only 26,42 --engine compressor --engine newest
    leporello exam banks/ --sessions sessions/ --summariser gpt-4.1-mini

    Engines: compressor, lcm, and to compare whole, clear-tools, newest, cut-alike, first-chars, idf-sentences.
    Searches: recall, plain. With one engine and one window --json prints one report; with several engines an object of
    reports by engine, with several windows too by "engine@window". With --summariser sessions run one after another.
    """
    options = ExamOptions(**given)
    if session is not None:
        _make(session, options.sessions, out)
        return
    form, exams = _exams(options)
    summariser = _summariser(context.settings, options.summariser) if options.summariser else None
    runs = [
        ExamRun(engine, window, options.search, summariser, options.policy)
        for engine in dict.fromkeys(options.engines)
        for window in options.windows or (form.window,)
    ]
    # A summariser holds a connection, which stays in this process.
    scores = _run(runs, exams, 1 if summariser else options.processes)
    results = list(zip(runs, scores, strict=True))
    if as_json:
        _print_reports(form, results, options)
    elif options.markdown:
        for line in markdown_table(form, results):
            say(line)
    else:
        for run, scored in results:
            print_scores(form, run, scored)
            if options.misses:
                print_misses(form, scored)


def _print_reports(form: ExamFormat, results: Sequence[tuple[ExamRun, Scores]], options: ExamOptions) -> None:
    several = len(set(options.windows)) > 1
    reports = {
        f"{run.engine}@{run.window}" if several else run.engine: {
            **form.report(scores),
            **({"misses": misses_of(form, scores)} if options.misses else {}),
        }
        for run, scores in results
    }
    print_json(reports if len(reports) > 1 else next(iter(reports.values())))


def _exams(options: ExamOptions) -> tuple[ExamFormat, list[Exam]]:
    """What is asked, in the format that was named or that the files have."""
    if not options.paths:
        raise InputError("no PATH was given; `leporello exam --make SESSION` writes a question bank")
    absent = next((path for path in options.paths if not path.exists()), None)
    if absent is not None:
        raise InputError("there is no such file or folder", str(absent))
    forms = [FORMATS[options.form] if options.form else recognise(path) for path in options.paths]
    if len({form.name for form in forms}) > 1:
        raise InputError("question banks and state banks are scored differently; give one kind at a time")
    exams = [exam for path in options.paths for exam in forms[0].load(path, options.sessions or Path())]
    wanted = {name.strip() for name in options.only.split(",") if name.strip()}
    missing = wanted - {exam.id for exam in exams}
    if missing:
        raise InputError(f"--only names what is not there: {', '.join(sorted(missing))}")
    chosen = [exam for exam in exams if not wanted or exam.id in wanted]
    if not chosen:
        raise InputError(f"holds nothing of the format {forms[0].name}", str(options.paths[0]))
    return forms[0], chosen


def _summariser(settings: Settings, model: str) -> Summariser:
    """This model alone, at the provider that the settings name for it; its price is known by its name."""
    chosen = choose_model(settings, model)
    window = limits_of(settings, chosen.model, served_window=chosen.served_window).window
    ladder = [SummaryModel(chosen.provider, chosen.model, window)]
    # Hours of work are replayed in seconds: until the next fold a model that failed has rested long enough.
    hours = count(0.0, 3_600.0).__next__
    return ModelSummariser(ladder, TokenCounter.for_model(None), settings.compression.deadline, hours)


def _run(runs: Sequence[ExamRun], exams: Sequence[Exam], processes: int) -> list[Scores]:
    """For each run the scores of all sessions, in the order given."""
    pairs = [(run, exam) for run in runs for exam in exams]
    done: dict[int, SessionScore[Any]] = {}
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
    folder = folder or session.parent
    note(f"{len(bank.questions)} questions about {session.name} written to {out}. Sit the exam with:")
    note(f"leporello exam {shlex.quote(str(out))} --sessions {shlex.quote(str(folder))}")
    say(str(out))
