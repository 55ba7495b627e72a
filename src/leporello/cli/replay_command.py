"""`leporello replay`: what recorded sessions cost, call by call, and what was still known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import click

from leporello.bench.bank import load_bank, session_of
from leporello.bench.bill import (
    CLIENT,
    COLUMNS,
    NEVER_COMPACTED,
    UNITS,
    WHOLE,
    BilledSession,
    RecordedFile,
    ReplayRun,
    bill_report,
    bill_session,
    cell,
    conditions,
    is_idle,
    over_window,
    recall_means,
    recorded,
    simulated,
)
from leporello.bench.make_bank import make_bank
from leporello.bench.replay import ReplaySetup, steps_of
from leporello.bench.report import report_page
from leporello.bench.run import STATE, recognise
from leporello.bench.states import StateExam, load_state
from leporello.caching import LAYOUTS
from leporello.cli import ExitCode
from leporello.cli.context import CommandContext, must_be_another, pass_context, write_atomically
from leporello.config.sources import SourceKind
from leporello.errors import InputError
from leporello.importers import load_session
from leporello.messages import role_of
from leporello.policy.decision import POLICIES
from leporello.present.output import (
    GAP,
    json_option,
    note,
    print_json,
    print_table,
    progress,
    say,
    say_paragraph,
    strong,
    terminal_width,
)
from leporello.present.text import cut_middle, safe

_FOLDER = click.Path(file_okay=False, exists=True, path_type=Path)
_SESSION = click.Path(dir_okay=False, path_type=Path)
COMPARED = (WHOLE, "claude-code", "codex", "deepagents", "masking", "sliding-window")
_NAME_WIDTH = 40
_BILLED = ("cost", "units", "hit_rate", "compactions", "cache_breaks", "waits")  # the first columns of its table
_TTL = "prompt_caching.cache_ttl"
_Row: TypeAlias = tuple[str, Mapping[str, Any], bool]  # its name, its figures, and whether it had nothing to compact


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    files: tuple[Path, ...]
    engines: tuple[str, ...]
    policies: tuple[str, ...]
    layout: str | None
    model: str | None
    window: int | None
    base: int | None
    tools: int
    pauses: bool
    banks: Path | None
    compare: bool

    def plain(self, flags: Mapping[str, object], home: Path) -> ReplaySetup:
        """What all runs share."""
        flags = {**flags, **({"prompt_caching.layout": self.layout} if self.layout else {})}
        return ReplaySetup(window=self.window, tools=self.tools, pauses=self.pauses, flags=flags, home=home)

    def runs(self, plain: ReplaySetup, policy_set: str) -> Iterator[tuple[str, ReplaySetup]]:
        beside = [name for name in POLICIES if name != policy_set] if self.compare else []
        policies = self.policies or ("", *beside)
        for engine in dict.fromkeys(self.engines):
            for policy in dict.fromkeys(policies):
                flags = {**plain.flags, "compression.policy": policy or policy_set}
                yield ", ".join(filter(None, (engine, policy))), replace(plain, engine=engine, flags=flags)
        for engine in (name for name in COMPARED if self.compare and name not in self.engines):
            yield engine, replace(plain, engine=engine)

    def fitted(self, setup: ReplaySetup, file: RecordedFile, ttl_set: bool) -> ReplaySetup:
        """The setup for one file: what is not given is as in the recording."""
        model = self.model or file.model
        if self.window is None and self.model is None:
            setup = replace(setup, window=file.session.window, window_source="recorded")
        base, warm = (file.base(model), file.warm) if self.base is None else (self.base, 0)
        # Whoever names a model asks what would have been, with our marks and not the client's.
        ttl = {_TTL: file.cache_ttl} if file.cache_ttl and self.model is None and not ttl_set else {}
        assumed = "" if self.model else file.model_assumed
        return replace(setup, model=model, model_assumed=assumed, base=base, warm=warm, flags={**setup.flags, **ttl})


@click.command("replay")
@click.argument("files", nargs=-1, required=True, type=_SESSION, metavar="FILE...")
@click.option("--engine", "engines", multiple=True, default=("compressor",), help="May be repeated. [compressor]")
@click.option("--policy", "policies", multiple=True, type=click.Choice(POLICIES), help="May be repeated.")
@click.option("--layout", type=click.Choice(list(LAYOUTS)), help="Where cache marks stand, instead of the setting.")
@click.option("--model", metavar="NAME", help="Whose prices and cache rules hold, instead of the recorded one's.")
@click.option("--window", type=click.IntRange(min=1_000), help="Tokens, instead of the recording's or the model's.")
@click.option("--base", type=click.IntRange(min=0), help="Tokens of system prompt and tools, instead of the recorded.")
@click.option("--tools", type=click.IntRange(min=0), default=0, help="Of them, tokens of tool schemas (18 stand-ins).")
@click.option("--pauses/--no-pauses", default=True, help="Whether caches run out in recorded pauses. [yes]")
@click.option(
    "--banks", type=_FOLDER, help="Folder with question and state banks; otherwise questions are made by rule."
)
@click.option("--compare", is_flag=True, help="Put all policies and other agents' rules beside it.")
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write a report to look at.")
@json_option
@pass_context
def command(context: CommandContext, /, as_json: bool, page: Path | None, **given: Any) -> ExitCode:
    """Replay recorded sessions call by call, and bill them by the vendors' cache rules.

    Each recorded answer is one call: its request is what Leporello would have sent at that point, with the recording's
    own times, so that caches run out as they would have. No model is asked. The same session replayed without
    compaction stands beside it, and what the usage in the file comes to where it holds any (Claude Code, Codex, pi,
    mini-swe-agent).

    \b
    leporello replay session.jsonl
    leporello replay session.jsonl --compare --html report.html
    leporello replay *.jsonl --model claude-sonnet-4-5 --window 200000 --base 20000 --banks banks/ --json

    Engines: compressor, lcm, and to compare whole, clear-tools, newest and others of `leporello exam`, and the
    published rules of claude-code, codex, deepagents, masking, sliding-window. With several runs --json prints an
    object of reports by name. Exit code 3: no file holds an answer of a model.
    """
    options = ReplayOptions(**given)
    for path in options.files:
        if page is not None:
            must_be_another(page, str(path), "A report can't replace its session; choose another name.")
    banks = sorted(options.banks.glob("*.json")) if options.banks else None
    files = _answered([_file(path, banks) for path in options.files])
    if not files:
        return ExitCode.NOTHING_DONE
    plain = options.plain(context.flags, Path(context.home.path))
    chosen = dict(options.runs(plain, context.settings.compression.policy))
    setups = {WHOLE: replace(plain, engine=WHOLE)} | chosen
    ttl_set = context.settings.source(_TTL).origin is not SourceKind.DEFAULT
    billed = {
        name: _bill(name, files, [options.fitted(setup, file, ttl_set) for file in files])
        for name, setup in setups.items()
    }
    runs = [ReplayRun(name, billed[name]) for name in chosen]
    without = ReplayRun(WHOLE, billed[WHOLE])
    if page is not None:
        write_atomically(page, report_page(runs, without, made_by_rule=banks is None).encode())
        note(f"The report was written to {page}")
    if as_json:
        reports = {run.name: bill_report(run.billed, without.billed) for run in runs}
        print_json(reports if len(reports) > 1 else next(iter(reports.values())))
    else:
        _print(runs, without, made_by_rule=banks is None)
    return ExitCode.OK


def _file(path: Path, banks: Sequence[Path] | None) -> RecordedFile:
    """A session with what is asked about it: by its banks, else made by rule where there is enough to ask about."""
    session = load_session(path)
    if banks is None:
        try:
            return RecordedFile(path.name, session, make_bank(path, path.name))
        except InputError:
            return RecordedFile(path.name, session)
    own = [file for file in banks if Path(session_of(file)).name == path.name]
    kinds = {file: recognise(file) for file in own}
    questions = [load_bank(file) for file in own if kinds[file] is not STATE]
    states = tuple(StateExam(load_state(file), path.parent) for file in own if kinds[file] is STATE)
    return RecordedFile(path.name, session, questions[0] if questions else None, states)


def _answered(files: Sequence[RecordedFile]) -> list[RecordedFile]:
    """Those with calls to replay; the others are named."""
    silent = [file for file in files if next(steps_of(file.session), None) is None]
    for file in silent:
        note(f"{safe(file.name)}: nothing to replay, no model answers in it.")
    return [file for file in files if file not in silent]


def _bill(name: str, files: Sequence[RecordedFile], setups: Sequence[ReplaySetup]) -> list[BilledSession]:
    total = sum(role_of(message) == "assistant" for file in files for message in file.session.messages)
    done = count(1)
    with progress(f"Calls replayed ({name}):") as line:
        return [
            bill_session(file, setup, lambda _: line.update(next(done), total))
            for file, setup in zip(files, setups, strict=True)
        ]


def _print(runs: Sequence[ReplayRun], without: ReplayRun, *, made_by_rule: bool) -> None:
    """One session: all ways of serving it in one table. Several: a table of sessions for each way."""
    reports = {run.name: bill_report(run.billed, without.billed) for run in (*runs, without)}
    main, several = reports[runs[0].name], len(without.billed) > 1
    for one, row in zip(runs[0].billed, main["sessions"], strict=True):
        say_paragraph(f"{one.name}: {conditions(one, row)}")
    say()
    shown = runs if any(run.name == WHOLE for run in runs) else [without, *runs]
    actual = main["total"].get("recorded")
    rows: list[_Row] = [] if several or actual is None else [(CLIENT, actual, False)]
    for run in shown:
        report = reports[run.name]
        if several:
            say(strong(run.label))
            of_all = {"session": "all", **report["total"]}
            _table([(row["session"], row, is_idle(run, row)) for row in (*report["sessions"], of_all)])
        else:
            rows.append((run.label, report["total"], is_idle(run, report["total"])))
    if rows:
        _table(rows)
    say_paragraph(UNITS)
    if "questions" in main["total"]:
        say_paragraph(recall_means(main["total"], made_by_rule))
    if any(is_idle(run, row) for run in shown for row in reports[run.name]["sessions"]):
        say_paragraph(NEVER_COMPACTED)
    for one, row in zip(runs[0].billed, main["sessions"], strict=True):
        _tell(ReplayRun(runs[0].name, [one]), row, f"{one.name}. " if several else "")
    if several:
        _tell(runs[0], main["total"], "All. ")


def _tell(run: ReplayRun, row: Mapping[str, Any], who: str) -> None:
    say()
    say_paragraph(f"{who}Simulated: {simulated(run, row)} {over_window(row)}".strip())
    if said := recorded(row):
        say_paragraph(f"Recorded: {said}")


def _table(rows: Sequence[_Row]) -> None:
    """One table; on a terminal that is too narrow for it the bill, and below it what was known."""
    columns = [key for key in COLUMNS if any(key in row for _, row, _ in rows)]
    table = [("", *(COLUMNS[key] for key in columns))]
    table += [(cut_middle(name, _NAME_WIDTH), *(cell(row, key, idle) for key in columns)) for name, row, idle in rows]
    room = terminal_width()
    whole = room is None or sum(max(map(len, column)) + len(GAP) for column in zip(*table, strict=True)) <= room
    parts = [columns] if whole else [columns[: len(_BILLED)], columns[len(_BILLED) :]]
    for part in parts:
        places = [0, *(columns.index(key) + 1 for key in part)]
        headings, *cells = [tuple(row[place] for place in places) for row in table]
        print_table(cells, headings, numbers=range(1, len(places)))
        say()
