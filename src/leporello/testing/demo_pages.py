"""The demo's printed pages: what happens while it runs, and what is there at the end.

Every number is read back from the store or from the agent's own state.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from leporello.agent.commands import run_command
from leporello.cli.output import dim, print_table, say, strong
from leporello.messages import text_of
from leporello.models import model_facts
from leporello.models.facts import cost
from leporello.store.records import Insights, InsightsQuery, SessionRecord, UsageTotals
from leporello.testing.bill import Meter
from leporello.testing.demo_play import FIRST, FOLD, ID, SECOND, Answer, Moment, Play
from leporello.testing.demo_work import RULES
from leporello.turns import validate
from leporello.usage import CanonicalUsage

BAR = 24
PORT = 8484
"""Where `leporello serve` listens unless told otherwise."""
SHOWN_SESSIONS = 3


def opening(play: Play) -> None:
    """What is going to happen."""
    files = sum(1 for _ in (play.work / "src").rglob("*.py"))
    say(strong(f"Leporello: {play.count} turns in a small window"))
    say(
        f"An agent goes through this project's own source, {files} files in a copy. The user and the model are\n"
        "scripted; the loop, the tools, the store, the folds, the search and the bill are real. The agent\n"
        f"believes that the model holds {play.agent.talk.limits.window:,} tokens. It holds {play.served:,}.\n"
    )
    say(strong("  turn"))


def moment(told: Moment) -> None:
    """One line for a moment, as it comes."""
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
    """Everything there is to see when it is over."""
    _chain(play)
    _bill(play)
    _rules(play)
    _context(play)
    _answers(play)
    _onwards(play)


def _heading(text: str) -> None:
    say("\n" + strong(text))


def _chain(play: Play) -> None:
    sessions = play.store.conversations.sessions(ID)
    newest = play.agent.talk.view.last
    _heading(f"The chain: one conversation, {newest:,} messages, {len(sessions)} sessions")
    rows = list(_session_rows(play, sessions, newest))
    if len(rows) > 2 * SHOWN_SESSIONS:
        hidden = len(rows) - 2 * SHOWN_SESSIONS
        rows[SHOWN_SESSIONS:-SHOWN_SESSIONS] = [("", f"... {hidden} more ...", "", "", "", "")]
    print_table(rows, ("  session", "messages", "calls", "prompt tokens", "cached", "ended by"))


def _session_rows(play: Play, sessions: list[SessionRecord], newest: int) -> Iterator[tuple[str, ...]]:
    following = [session.first for session in sessions[1:]] + [newest + 1]
    for session, after in zip(sessions, following, strict=True):
        used = play.store.usage.session_totals(session.id)
        yield (
            f"  {session.ordinal:>7}",
            f"m{session.first}-m{after - 1}",
            f"{used.calls:>5}",
            f"{used.usage.prompt_tokens:>13,}",
            f"{used.cache_hit_rate:>6.0%}",
            session.end_reason or "(goes on)",
        )


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
    return (
        f"  {name}",
        f"{used.calls:>5}",
        f"{used.usage.prompt_tokens:>13,}",
        f"{used.cache_hit_rate:>6.1%}",
        f"${used.cost:,.2f}",
    )


def _rules(play: Play) -> None:
    shown = "\n".join(text_of(message) for message in play.agent.talk.messages)
    alive = [rule for rule in RULES if rule in shown]
    folds = play.agent.talk.compressions
    _heading(f"Rules of the user: {len(alive)} of {len(RULES)} word for word in the context after {folds} folds")
    for rule in RULES:
        say(f"  {'kept' if rule in alive else 'LOST'}  {rule}")


def _context(play: Play) -> None:
    conversation = play.agent.talk
    state = "valid for every provider" if not validate(conversation.messages) else "NOT VALID"
    _heading(f"The window of {conversation.limits.window:,} tokens now; the list is {state}")
    for line in str(run_command(conversation, "/context")).splitlines():
        say(f"  {line}")


def _answers(play: Play) -> None:
    _heading("Three questions about turns that were folded long ago")
    for answer in play.answers:
        number = source_of(play, answer)
        fold = fold_of(play, number)
        say(f"  {strong(answer.question.text)}")
        say(f"    {answer.tool:<10}  [m{number}], folded into {fold}: {_line_with(answer)}")
        say(f"    the agent   {answer.said}  {dim('(right)') if answer.right else '(WRONG)'}")


def source_of(play: Play, answer: Answer) -> int:
    """The number of the message in which the answer was first given."""
    for entry in play.store.log.iterate(ID):
        if re.search(answer.question.looks_like, text_of(entry.message)):
            return entry.number
    return 0


def fold_of(play: Play, number: int) -> str:
    """The newest fold that covers a message; empty when it is shown as it is."""
    covering = [fold.id for fold in play.store.views.folds(ID) if fold.covered.first <= number <= fold.covered.last]
    return covering[-1] if covering else ""


def _line_with(answer: Answer) -> str:
    found = answer.found_in.replace("\\n", "\n").replace('"', "\n")
    return next((line.strip() for line in found.splitlines() if answer.question.gold in line), "NOTHING")[:90]


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
