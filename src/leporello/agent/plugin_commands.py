"""The slash commands of plugins, for every face that runs commands."""

from __future__ import annotations

from collections.abc import Callable

from leporello.agent.commands import COMMANDS, Command
from leporello.conversation import Conversation
from leporello.plugins.context import PluginCommandCall


def plugin_commands(talk: Conversation) -> dict[str, Command]:
    """The commands that plugins bring into a conversation; names that the host uses stay the host's."""
    found: dict[str, Command] = {}
    for call in talk.extras.commands:
        about = call.command
        if about.name not in COMMANDS and about.name not in found:
            found[about.name] = Command(about.help, _run(call), about.argument)
    return found


def _run(call: PluginCommandCall) -> Callable[[Conversation, str], str]:
    return lambda _, text: call(text)
