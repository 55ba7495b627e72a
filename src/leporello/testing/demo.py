"""`make demo`: a few hundred turns of a real agent in a small window. Nothing is called but this program itself."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

import leporello
from leporello.agent.commands import run_command
from leporello.config import Home
from leporello.messages import text_of
from leporello.models import model_facts
from leporello.models.facts import cost
from leporello.present.output import dim, note, print_table, progress, say, strong
from leporello.store import StoreOptions, open_store
from leporello.store.records import Insights, InsightsQuery, UsageTotals
from leporello.testing.demo_session import FIRST, FOLD, ID, RULES, SECOND, WORK, DemoAnswer, Meter, Moment, Play
from leporello.turns import validate
from leporello.usage import CanonicalUsage

TURNS = 300
MARK = ".leporello-demo"  # says that a folder is an earlier demo's and may be thrown away
PORT = 8484  # where `leporello serve` listens unless told otherwise
BAR = 24
SHOWN_SESSIONS = 3


def opening(play: Play) -> None:
    files = sum(1 for _ in (play.work / "src").rglob("*.py"))
    believed = play.agent.conversation.runtime.sizes.limits.window
    say(strong(f"Leporello: {play.count} turns in a small window"))
    say(
        f"An agent goes through this project's own source, {files} files in a copy. The user and the model are\n"
        "scripted; the loop, the tools, the store, the folds, the search and the bill are real. The agent\n"
        f"believes that the model holds {believed:,} tokens. It holds {play.served:,}.\n"
    )
    say(strong("  turn"))


def show_moment(told: Moment) -> None:
    report = told.report
    if told.kind != FOLD or report is None:
        say(f"  {told.turn:>4}  {strong(f'{told.kind:<9}')} {told.text}")
        return
    part = round(BAR * report.tokens_after / max(1, report.tokens_before))
    bar = "█" * part + "░" * (BAR - part)
    say(
        f"  {told.turn:>4}  {told.kind} {report.fold:<4} {told.text:<11} "
        f"{report.tokens_before:>7,} -> {report.tokens_after:>6,} tokens  {dim(bar)}"
    )


def ending(play: Play) -> None:
    for part in (_chain, _bill, _rules, _context, _answers, _onwards):
        part(play)


def _heading(text: str) -> None:
    say("\n" + strong(text))


def _chain(play: Play) -> None:
    sessions = play.store.sessions.all(ID)
    newest = play.newest
    _heading(f"The chain: one conversation, {newest:,} messages, {len(sessions)} sessions")
    rows: list[tuple[str, ...]] = []
    following = [session.first for session in sessions[1:]] + [newest + 1]
    for session, after in zip(sessions, following, strict=True):
        used = play.store.usage.session_totals(session.id)
        spent = (f"{used.calls:>5}", f"{used.usage.prompt_tokens:>13,}", f"{used.cache_hit_rate:>6.0%}")
        span = f"m{session.first}-m{after - 1}"
        rows.append((f"  {session.ordinal:>7}", span, *spent, session.end_reason or "(goes on)"))
    if len(rows) > 2 * SHOWN_SESSIONS:
        hidden = len(rows) - 2 * SHOWN_SESSIONS
        rows[SHOWN_SESSIONS:-SHOWN_SESSIONS] = [("", f"... {hidden} more ...", "", "", "", "")]
    print_table(rows, ("  session", "messages", "calls", "prompt tokens", "cached", "ended by"))


def _bill(play: Play) -> None:
    found = play.store.usage.insights(InsightsQuery(conversation=ID))
    _heading("The bill, by the vendor's prices and cache rules, simulated call by call")
    rows = [_bill_row(model, found.by_model[model]) for model in (FIRST, SECOND) if model in found.by_model]
    rows.append(_bill_row("together", found.totals))
    meters = play.never_folded()
    rows.append(_bill_row("never folded", whole_bill(meters, found)))
    print_table(rows, ("  model", "calls", "prompt tokens", "cached", "cost"))
    largest = max(meter.largest for meter in meters)
    say(dim(f"  Never folded, the largest request would have {largest:,} tokens."))


def whole_bill(meters: Sequence[Meter], found: Insights) -> UsageTotals:
    """The bill without folds: its own input, and the same output."""
    usage, dollars = CanonicalUsage(), 0.0
    for meter in meters:
        same = found.by_model.get(meter.model, UsageTotals()).usage
        used = replace(meter.total, output_tokens=same.output_tokens)
        usage += used
        dollars += cost(used, model_facts(meter.model)) or 0.0
    return UsageTotals(usage, sum(meter.calls for meter in meters), dollars)


def _bill_row(name: str, used: UsageTotals) -> tuple[str, ...]:
    spent = (f"{used.calls:>5}", f"{used.usage.prompt_tokens:>13,}", f"{used.cache_hit_rate:>6.1%}")
    return (f"  {name}", *spent, f"${used.cost:,.2f}")


def _rules(play: Play) -> None:
    shown = "\n".join(text_of(message) for message in play.agent.conversation.messages)
    alive = [rule for rule in RULES if rule in shown]
    folds = play.agent.conversation.runtime.log.compactions
    _heading(f"Rules of the user: {len(alive)} of {len(RULES)} word for word in the context after {folds} folds")
    for rule in RULES:
        say(f"  {'kept' if rule in alive else 'LOST'}  {rule}")


def _context(play: Play) -> None:
    conversation = play.agent.conversation
    state = "valid for every provider" if not validate(conversation.messages) else "NOT VALID"
    _heading(f"The window of {conversation.runtime.sizes.limits.window:,} tokens now; the list is {state}")
    for line in str(run_command(conversation, "/context")).splitlines():
        say(f"  {line}")


def _answers(play: Play) -> None:
    _heading("Three questions about turns that were folded long ago")
    for answer in play.answers:
        number = source_of(play, answer)
        fold = fold_of(play, number)
        say(f"  {strong(answer.question.text)}")
        found = answer.found_in.replace("\\n", "\n").replace('"', "\n").splitlines()
        line = next((line.strip() for line in found if answer.question.gold in line), "NOTHING")[:90]
        say(f"    {answer.tool:<10}  [m{number}], folded into {fold}: {line}")
        say(f"    the agent   {answer.said}  {dim('(right)') if answer.right else '(WRONG)'}")


def source_of(play: Play, answer: DemoAnswer) -> int:
    said = ((entry.number, text_of(entry.message)) for entry in play.store.log.iterate(ID))
    return next((number for number, text in said if re.search(answer.question.looks_like, text)), 0)


def fold_of(play: Play, number: int) -> str:
    """The newest fold that covers a message; empty when it is shown as it is."""
    covering = [fold.id for fold in play.store.views.folds(ID) if fold.covered.first <= number <= fold.covered.last]
    return covering[-1] if covering else ""


def _onwards(play: Play) -> None:
    program = Path(sys.executable).parent / "leporello"
    here = Path.cwd()
    name = program.relative_to(here) if program.is_relative_to(here) else Path("leporello")
    _heading("Everything is still there")
    say(f"  The store is {play.home.database}. Look around:")
    for words in (f"sessions show {ID}", 'sessions search "staging server"', "insights", "doctor"):
        say(f"    {name} --home {play.home.path} {words}")
    say("  Or see every fold and open it, in a browser:")
    say(f"    {name} --home {play.home.path} serve --store {play.store.url}")
    say(f"    then http://127.0.0.1:{PORT}/c/{ID}")


@click.command()
@click.option(
    "--turns", default=TURNS, show_default=True, type=click.IntRange(40, 2_000), help="Length of the session."
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the demo may work. [LEPORELLO_HOME if empty, else a temporary folder]",
)
def main(turns: int, folder: Path | None) -> None:
    """Play a long session in a small window, then show what became of it."""
    started = time.perf_counter()
    place = _fresh(folder or _place())
    note(f"Everything is written below {place}.")
    play = Play(place, Path(leporello.__file__).parent, turns)
    try:
        opening(play)
        with progress("turn") as line:

            def told(moment: Moment) -> None:
                line.close()
                show_moment(moment)

            play.run(told, lambda number: line.update(number, play.count))
        ending(play)
    finally:
        play.close()
        # What the scripted server refused says nothing about the real model of that name.
        play.home.limits_file.unlink(missing_ok=True)
    note(f"Took {time.perf_counter() - started:.1f} s.")


def _place() -> Path:
    """`LEPORELLO_HOME` when it is set and holds nothing but an earlier demo, else a folder for temporary files."""
    named = Home.named()
    own = Path(tempfile.gettempdir()) / "leporello-demo"
    if named is None:
        return own
    if not _may_use(named.path):
        note(f"{named.path} (LEPORELLO_HOME) holds something else: it is left alone.")
        return own
    return named.path


def _may_use(folder: Path) -> bool:
    """Whether a folder is empty, or an earlier demo's in which nobody has begun a conversation since."""
    if not folder.exists() or not any(folder.iterdir()):
        return True
    if not (folder / MARK).is_file() or folder.stat().st_uid != os.getuid():
        return False
    if not Home(folder).database.exists():
        return True
    with open_store(Home(folder).store_url, StoreOptions(read_only=True)) as store:
        return all(record.id == ID for record in store.conversations.page(limit=2).conversations)


def _fresh(folder: Path) -> Path:
    """The folder without what an earlier demo wrote there; anything else is left alone."""
    if not _may_use(folder):
        raise click.ClickException(f"{folder} is not a folder of an earlier demo. Name another one with --dir.")
    home = Home(folder)
    for path in (folder / WORK, home.outputs_dir):
        if path.is_dir():
            shutil.rmtree(path)
    database = [home.database.with_name(home.database.name + ending) for ending in ("", "-wal", "-shm")]
    for path in (*database, home.limits_file):
        path.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / MARK).touch()
    return folder.resolve()


if __name__ == "__main__":
    sys.exit(main())
