"""`leporello run`: sends one message to the agent and prints its work and its answer."""

from __future__ import annotations

import sys
from typing import Any

import click

from leporello.agent.agent import Agent
from leporello.agent.commands import COMMANDS, answer_command, parse_known, plugin_commands, title_of
from leporello.agent.endpoints import Chosen, choose_model, without_model
from leporello.agent.events import ENDINGS, AgentEvent, Compacted, Notice, TextDelta, ToolFinished, ToolStarted
from leporello.agent.session import open_agent
from leporello.chat.app import FILE_COMMANDS, end_conversation, newest_conversation
from leporello.chat.plain import PlainUi
from leporello.cli import ExitCode
from leporello.cli.context import (
    AgentOptions,
    CommandContext,
    agent_options,
    code_of,
    pass_context,
    read_text,
    utf8_text,
)
from leporello.cli.store_access import find
from leporello.config import Settings
from leporello.errors import ConfigError, LeporelloError, NoModel
from leporello.present.output import dim, json_option, json_text, note, warn
from leporello.present.records import ROUTINE, compaction_line, usage_line
from leporello.store import open_store


@click.command("run")
@click.argument("prompt", callback=utf8_text)
@agent_options
@json_option
@pass_context
def command(context: CommandContext, /, prompt: str, as_json: bool, **given: Any) -> ExitCode:
    """Send PROMPT to the agent and print the answer. PROMPT may be a command such as `/compress`; `-` reads stdin.

    --json prints one event a line. Without a terminal, tools that need approval are refused unless --yes is given.
    Exit codes: 0 answered, 1 the turn failed, 2 bad input (an unknown command, too), 3 or 4 when `/compress` folded
    nothing.
    """
    text = read_text("-").text if prompt == "-" else prompt
    if not text.strip():
        raise click.UsageError("PROMPT is empty: write what the agent should do.")
    options = AgentOptions(**given)
    settings = options.settings(context)
    person = sys.stdin.isatty() and sys.stderr.isatty()
    with open_store(settings.store_url) as store:
        id = None
        if options.resume is not None:
            id = find(store, options.resume).id
        elif options.go_on:
            id = newest_conversation(store, "Start one without --continue.")
        chosen = _chosen(settings, text, store.conversations.resolve(id).metadata.model if id is not None else "")
        ask = PlainUi(person).ask if person else None
        agent = open_agent(settings, chosen, store=store, id=id, workdir=options.workdir, ask=ask, background=False)
        if id is not None:
            store.conversations.reopen(agent.conversation.id)
        try:
            return _answer(agent, text, as_json)
        finally:
            end_conversation(agent, store, note, begun=id is None)


def _chosen(settings: Settings, prompt: str, recorded: str) -> Chosen:
    """The model that is set. A command calls none (`/compress` writes its summary by rule then), so it needs no key."""
    try:
        return choose_model(settings)
    except NoModel:
        known = {**COMMANDS, **FILE_COMMANDS}
        if (parse_known(prompt, known) or ("",))[0] not in known:
            raise
        return without_model(settings.model.default or recorded)


def _answer(agent: Agent, prompt: str, as_json: bool) -> ExitCode:
    more = {**plugin_commands(agent.conversation), **FILE_COMMANDS}
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
    def watch(event: AgentEvent) -> None:
        if not as_json:
            _print(event)
        elif not isinstance(event, TextDelta):
            click.echo(json_text(event.as_dict()))

    if not agent.conversation.runtime.log.view.last:
        agent.conversation.runtime.log.store.conversations.update(agent.conversation.id, title=title_of(prompt))
    try:
        ended = agent.turn(prompt, watch)
    except LeporelloError as error:
        agent.close_open_calls("Error: the turn ended before this call had a result")
        if as_json:
            click.echo(json_text({"event": "error", "text": str(error)}))
        note(f"leporello: {error}")
        return ExitCode.BAD_INPUT if isinstance(error, ConfigError) else ExitCode.FAILED
    if not as_json:
        click.echo()
        if ended.reason in ENDINGS:
            warn(ENDINGS[ended.reason])
        id = agent.conversation.id
        note(dim(f"{id}: {usage_line(agent.conversation.usage)}. Continue with: leporello run --resume {id} ..."))
    if ended.reason == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.OK if ended.reason in ("stop", "end_turn") else ExitCode.FAILED


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
