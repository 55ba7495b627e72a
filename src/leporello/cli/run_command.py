"""`leporello run`: one message to the agent, its work and its answer; for people and for scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

from leporello.agent.agent import Agent
from leporello.agent.commands import describe_report, parse, run_command
from leporello.agent.events import AgentEvent, Compacted, Notice, TextDelta, ToolFinished, ToolStarted
from leporello.agent.plugin_commands import plugin_commands
from leporello.agent.session import choose_model, open_agent
from leporello.cli.exits import ExitCode
from leporello.cli.frame import Frame, pass_frame
from leporello.cli.output import dim, json_option, note, warn
from leporello.cli.slash_commands import COMMANDS
from leporello.errors import InputError, LeporelloError
from leporello.records import Outcome
from leporello.store import open_store
from leporello.store.base import Store
from leporello.tools.approval import Answer, Decision
from leporello.tools.base import ApprovalRequest

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_ROUTINE = (Outcome.NOTHING_TO_DO, Outcome.NO_GAIN)
"""Automatic attempts that found nothing to do are no news for a person."""


@click.command("run")
@click.argument("prompt")
@click.option("--model", metavar="NAME", help="The model, instead of model.default.")
@click.option("--continue", "go_on", is_flag=True, help="Go on with the newest conversation.")
@click.option("--resume", metavar="ID", help="Go on with this conversation (any id of its chain).")
@click.option(
    "--dir", "workdir", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where tools work."
)
@click.option("--yes", is_flag=True, help="Approve everything the tools want to do.")
@json_option
@pass_frame
def command(
    frame: Frame,
    prompt: str,
    model: str | None,
    go_on: bool,
    resume: str | None,
    workdir: Path | None,
    yes: bool,
    as_json: bool,
) -> ExitCode:
    """Send PROMPT to the agent and print the answer. PROMPT may be a command such as `/compress`.

    --json prints one event a line. Without a terminal, tools that need approval are refused unless --yes is given.
    """
    if go_on and resume is not None:
        raise click.UsageError("--continue and --resume name two conversations; give one of them.")
    settings = frame.settings_with({"model.default": model, "tools.approval": "auto" if yes else None})
    chosen = choose_model(settings)
    with open_store(settings.store_url) as store:
        id = _which(store, go_on, resume)
        agent = open_agent(settings, chosen, store=store, id=id, workdir=workdir, ask=_ask if _on_terminal() else None)
        try:
            return _answer(agent, prompt, as_json)
        finally:
            agent.talk.leave()


def _answer(agent: Agent, prompt: str, as_json: bool) -> ExitCode:
    if parse(prompt):
        agent.measure()
    answered = run_command(agent.talk, prompt, {**plugin_commands(agent.talk), **COMMANDS})
    if answered is not None:
        click.echo(orjson.dumps({"event": "command", "text": answered}).decode() if as_json else answered)
        return ExitCode.OK
    return _turn(agent, prompt, as_json)


def _turn(agent: Agent, prompt: str, as_json: bool) -> ExitCode:
    watch = _print_json if as_json else _print
    try:
        ended = agent.turn(prompt, watch)
    except LeporelloError as error:
        agent.close_open_calls("Error: the turn ended before this call had a result")
        if as_json:
            click.echo(orjson.dumps({"event": "error", "text": str(error)}).decode())
        note(f"leporello: {error}")
        return ExitCode.FAILED
    if not as_json:
        click.echo()
        note(dim(_summary(agent)))
    if ended.reason == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.OK if ended.reason in ("stop", "end_turn") else ExitCode.FAILED


def _summary(agent: Agent) -> str:
    totals = agent.talk.usage
    price = f", ${totals.cost:.4f}" if totals.calls > totals.unpriced_calls else ""
    return (
        f"{agent.talk.id}: {totals.calls} calls, {totals.usage.prompt_tokens:,} prompt tokens "
        f"({totals.cache_hit_rate:.0%} cached), {totals.usage.output_tokens:,} output tokens{price}. "
        f"Go on with: leporello run --resume {agent.talk.id} ..."
    )


def _which(store: Store, go_on: bool, resume: str | None) -> str | None:
    if resume is not None:
        return store.conversations.resolve(resume).id
    if not go_on:
        return None
    newest = store.conversations.page(limit=1).conversations
    if not newest:
        raise InputError("there is no conversation to go on with yet")
    return newest[0].id


def _print(event: AgentEvent) -> None:
    if isinstance(event, TextDelta):
        click.echo(event.text, nl=False)
    elif isinstance(event, ToolStarted):
        note(dim(f"→ {event.summary}"))
    elif isinstance(event, ToolFinished) and not event.ok:
        note(dim(f"  {event.name} failed"))
    elif isinstance(event, Compacted) and event.event.report.outcome not in _ROUTINE:
        note(dim(describe_report(event.event.report)))
    elif isinstance(event, Notice):
        warn(event.text)


def _print_json(event: AgentEvent) -> None:
    if not isinstance(event, TextDelta):
        click.echo(orjson.dumps(event.as_dict()).decode())


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(request: ApprovalRequest) -> Answer:
    note(f"{request.title}\n{request.detail()}")
    reply = click.prompt("Allow? [y]es, [a]lways, [n]o", default="n", err=True, show_default=False).strip().lower()
    chosen = {"y": Decision.YES, "yes": Decision.YES, "a": Decision.ALWAYS, "always": Decision.ALWAYS}
    return Answer(chosen.get(reply, Decision.NO))
