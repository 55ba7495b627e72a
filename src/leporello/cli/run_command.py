"""`leporello run`: one message to the agent, its work and its answer; for people and for scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

from leporello.agent.agent import Agent
from leporello.agent.commands import COMMANDS, answer_command, parse_known, plugin_commands, recent, title_of
from leporello.agent.endpoints import choose_model
from leporello.agent.events import AgentEvent, Compacted, Notice, TextDelta, ToolFinished, ToolStarted
from leporello.agent.session import open_agent
from leporello.cli.context import CommandContext, agent_options, agent_settings, code_of, pass_context
from leporello.cli.exits import ExitCode
from leporello.cli.files import read_text
from leporello.cli.slash_commands import COMMANDS as CLI_COMMANDS
from leporello.cli.store_access import find
from leporello.errors import ConfigError, InputError, LeporelloError
from leporello.present.output import dim, json_option, json_text, note, warn
from leporello.present.records import ROUTINE, compaction_line, usage_line
from leporello.store import Store, open_store
from leporello.tools.approval import ApprovalAnswer, Decision
from leporello.tools.base import ApprovalRequest

PLATFORM = "cli"
"""Where these conversations come from, as those of `chat`; imported ones have names of their own."""
ENDED = "exit"


@click.command("run")
@click.argument("prompt")
@agent_options
@json_option
@pass_context
def command(
    context: CommandContext,
    prompt: str,
    model: str | None,
    go_on: bool,
    resume: str | None,
    workdir: Path | None,
    yes: bool,
    as_json: bool,
) -> ExitCode:
    """Send PROMPT to the agent and print the answer. PROMPT may be a command such as `/compress`; `-` reads stdin.

    --json prints one event a line. Without a terminal, tools that need approval are refused unless --yes is given.
    Exit codes: 0 answered, 1 the turn failed, 2 bad input (an unknown command, too), 3 or 4 when `/compress` folded
    nothing.
    """
    text = read_text("-").text if prompt == "-" else prompt
    if not text.strip():
        raise click.UsageError("PROMPT is empty: write what the agent should do.")
    settings = agent_settings(context, model, go_on, resume, yes)
    chosen = choose_model(settings)
    with open_store(settings.store_url) as store:
        id = _which(store, go_on, resume)
        agent = open_agent(settings, chosen, store=store, id=id, workdir=workdir, ask=_ask if _on_terminal() else None)
        if id is not None:
            store.conversations.reopen(agent.conversation.id)
        try:
            return _answer(agent, text, as_json)
        finally:
            _end(agent, store, begun=id is None)


def _end(agent: Agent, store: Store, *, begun: bool) -> None:
    """The conversation ends here, as when a chat is left; one that was begun here for nothing leaves no trace."""
    for job in agent.jobs.running():
        note(f"Stopped the background command {job.id}: {job.command}")
    agent.jobs.close()
    conversation = agent.conversation
    conversation.runtime.leave()
    conversation.close()
    if begun and not store.log.count(conversation.id):
        store.conversations.delete(conversation.id)
    else:
        store.conversations.end(conversation.id, ENDED)


def _answer(agent: Agent, prompt: str, as_json: bool) -> ExitCode:
    more = {**plugin_commands(agent.conversation), **CLI_COMMANDS}
    command = parse_known(prompt, {**COMMANDS, **more})
    if command is None:
        return _turn(agent, prompt, as_json)
    agent.measure()
    if command[0] == "compress":
        report = agent.conversation.compact(command[1])
        _say(compaction_line(report, agent.conversation.runtime.log.compactions), as_json, outcome=report.outcome.value)
        return code_of(report.outcome)
    answered = answer_command(agent.conversation, prompt, more)
    if answered is None:
        return _turn(agent, prompt, as_json)
    if answered.error is not None:
        if as_json:
            click.echo(json_text({"event": "error", "text": answered.text}))
        raise answered.error
    _say(answered.text, as_json)
    return ExitCode.OK


def _say(text: str, as_json: bool, **more: str) -> None:
    click.echo(json_text({"event": "command", "text": text, **more}) if as_json else text)


def _turn(agent: Agent, prompt: str, as_json: bool) -> ExitCode:
    watch = _print_json if as_json else _print
    if not agent.conversation.runtime.log.view.last:
        agent.conversation.runtime.log.store.conversations.update(agent.conversation.id, title=title_of(prompt))
    try:
        ended = agent.turn(prompt, watch)
    except LeporelloError as error:
        agent.close_open_calls("Error: the turn ended before this call had a result")
        if as_json:
            click.echo(orjson.dumps({"event": "error", "text": str(error)}).decode())
        note(f"leporello: {error}")
        return ExitCode.BAD_INPUT if isinstance(error, ConfigError) else ExitCode.FAILED
    if not as_json:
        click.echo()
        note(dim(_summary(agent)))
    if ended.reason == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.OK if ended.reason in ("stop", "end_turn") else ExitCode.FAILED


def _summary(agent: Agent) -> str:
    id = agent.conversation.id
    return f"{id}: {usage_line(agent.conversation.usage)}. Continue with: leporello run --resume {id} ..."


def _which(store: Store, go_on: bool, resume: str | None) -> str | None:
    if resume is not None:
        return find(store, resume).id
    if not go_on:
        return None
    newest = recent(store, 1, PLATFORM)
    if not newest:
        raise InputError("There is no conversation to continue yet. Start one without --continue.")
    return newest[0].id


def _print(event: AgentEvent) -> None:
    if isinstance(event, TextDelta):
        click.echo(event.text, nl=False)
    elif isinstance(event, ToolStarted):
        note(dim(f"→ {event.summary}"))
    elif isinstance(event, ToolFinished) and not event.ok:
        note(dim(f"  {event.name} failed"))
    elif isinstance(event, Compacted) and event.event.report.outcome not in ROUTINE:
        note(dim(compaction_line(event.event.report, event.event.compactions)))
    elif isinstance(event, Notice):
        warn(event.text)


def _print_json(event: AgentEvent) -> None:
    if not isinstance(event, TextDelta):
        click.echo(orjson.dumps(event.as_dict()).decode())


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(request: ApprovalRequest) -> ApprovalAnswer:
    note(f"{request.title}\n{request.detail()}")
    reply = click.prompt("Allow? [y]es, [a]lways, [n]o", default="n", err=True, show_default=False).strip().lower()
    chosen = {"y": Decision.YES, "yes": Decision.YES, "a": Decision.ALWAYS, "always": Decision.ALWAYS}
    return ApprovalAnswer(chosen.get(reply, Decision.NO))
