"""`leporello chat`: the agent in the terminal. Imports nothing heavy: the prompt stands before the rest is loaded."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from leporello.chat.repl import chat_on_terminal, chat_plainly
from leporello.chat.ui import ChatOptions
from leporello.cli import ExitCode
from leporello.cli.context import WAYS, AgentOptions, CommandContext, agent_options, pass_context
from leporello.config import can_redraw
from leporello.errors import NoModel, how_to_install
from leporello.present.output import note

_EXTRA = ("prompt_toolkit", "rich")
_UNIX = "termios"


@click.command("chat")
@agent_options
@click.option("--plain", is_flag=True, help="No colours, no redrawing: lines in, lines out.")
@pass_context
def command(context: CommandContext, /, plain: bool, **given: Any) -> ExitCode:
    """Talk to the agent. It works with files and commands, asks before it changes anything, and never overflows.

    Input and output may be pipes: then each line is a message, and answers come as plain text.
    """
    agent = AgentOptions(**given)
    settings = agent.settings(context)
    if not settings.model.default:
        note(f"No model is set yet.\n\n{WAYS}")
        return ExitCode.BAD_INPUT
    folder = (agent.workdir or Path.cwd()).resolve()
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty() and can_redraw() and find_spec(_UNIX) is not None
    if not plain and on_terminal and not all(find_spec(package) for package in _EXTRA):
        note(f"The full view needs: {how_to_install('chat')}. Continuing in plain mode.")
        plain = True
    options = ChatOptions(settings, folder, agent.resume, agent.go_on, plain or not on_terminal)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that can't show a letter shows a question mark; the conversation goes on.
            stream.reconfigure(errors="replace")
    if hasattr(sys.stdin, "reconfigure"):
        # What can't be read is refused: in some locales it would come through as half characters.
        sys.stdin.reconfigure(errors="strict")
    try:
        ok = chat_plainly(options) if options.plain else chat_on_terminal(options)
    except NoModel as error:
        note(f"{error}\n\n{WAYS}")
        return ExitCode.BAD_INPUT
    return ExitCode.OK if ok else ExitCode.FAILED
