"""Slash commands: `/compress`, `/undo`, `/usage` and their like, the same for a terminal and a server."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from leporello.agent.commands_store import config, insights, pin, plugins, sessions, unpin, usage
from leporello.conversation import Conversation
from leporello.errors import Cancelled, InputError, LeporelloError, NotFound
from leporello.plugins.context import PluginCommandCall
from leporello.present.records import compaction_line
from leporello.present.window import draw, explain, window_use

DRAWN_WIDTH = 76
SURELY = 0.7
"""How much a word with more behind it must look like a command to be taken for one: `/bin is full` is a sentence."""
SEARCH_TOKENS = 1_500
SEARCH_SHOWN = 10
ALL = "--all"
ELSEWHERE = {
    "add": "Name a file in your message: @path/of/the/file (Tab completes it).",
    "approvals": "The setting is tools.approval; /config tools.approval shows it.",
    "doctor": "Outside of the chat: leporello doctor",
    "import": "Outside of the chat: leporello import",
    "init": "An AGENTS.md in the project's folder is read at the start of a conversation.",
    "login": "Outside of the chat, provider, model and key: leporello setup",
    "new": "A conversation begins where no id of an earlier one is given.",
    "memory": "Ask for it in your message: the agent saves what it should remember.",
    "permissions": "The setting is tools.approval; /config tools.approval shows it.",
    "setup": "Outside of the chat, provider, model and key: leporello setup",
    "version": "Outside of the chat: leporello --version",
}
"""Commands of other agents that are none here, and what does the same."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command: what it does in one line, the function that does it, and what may stand behind its name."""

    help: str
    run: Callable[[Conversation, str], str]
    argument: str = ""
    aliases: tuple[str, ...] = ()


def parse(text: str) -> tuple[str, str] | None:
    """Name and argument when the text is a command; a path like /usr/bin is none."""
    stripped = text.strip()
    if not stripped.startswith("/") or "\n" in stripped:
        return None
    name, _, argument = stripped[1:].partition(" ")
    return (name, argument.strip()) if name == "?" or name.replace("-", "").isalpha() else None


def aliases(known: Mapping[str, SlashCommand]) -> dict[str, str]:
    return {alias: name for name, command in known.items() for alias in command.aliases if alias not in known}


def parse_known(text: str, known: Mapping[str, SlashCommand]) -> tuple[str, str] | None:
    """Like `parse`, with the command's own name in place of an alias; an unknown name stays as it was typed."""
    found = parse(text)
    if found is None or found[0] in known:
        return found
    name, argument = found
    lower = name.lower()
    own = lower if lower in known else aliases(known).get(lower, name)
    return own, argument


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What a command said; `error` when it is unknown or could not be done."""

    text: str
    error: LeporelloError | None = None


def run_command(talk: Conversation, text: str, more: Mapping[str, SlashCommand] | None = None) -> str | None:
    """The answer of a command, or None when the text is none. An unknown command says so; an error is its answer."""
    answer = answer_command(talk, text, more)
    return None if answer is None else answer.text


def answer_command(
    talk: Conversation, text: str, more: Mapping[str, SlashCommand] | None = None
) -> CommandAnswer | None:
    """The same, and whether it went well."""
    known = {**COMMANDS, **(more or {})}
    found = parse_known(text, known)
    if found is None:
        return None
    name, argument = found
    if name not in known:
        if argument and not _nearest(name, known, SURELY) and name not in ELSEWHERE:
            # "/tmp is full" is something to say, not a command somebody mistyped.
            return None
        said = unknown(name, known)
        return CommandAnswer(said, InputError(said))
    if name == "help":
        return CommandAnswer(help_text(known))
    try:
        return CommandAnswer(known[name].run(talk, argument))
    except Cancelled:
        raise
    except LeporelloError as error:
        return CommandAnswer(str(error), error)


def unknown(name: str, known: Mapping[str, SlashCommand]) -> str:
    near = _nearest(name, known)
    hint = ELSEWHERE.get(name) or (f"Did you mean /{near}?" if near else "/help lists all commands.")
    return f"There is no command /{name}. {hint}"


def _nearest(name: str, known: Mapping[str, SlashCommand], likeness: float = 0.6) -> str:
    """The command whose name, or one of whose aliases, looks most like what was typed; empty when none does."""
    by_name = {**{name: name for name in known}, **aliases(known)}
    near = difflib.get_close_matches(name, by_name, n=1, cutoff=likeness)
    return by_name[near[0]] if near else ""


def help_text(known: Mapping[str, SlashCommand], columns: int = 0) -> str:
    """One line for each command; with a number of columns, long ones go on below their beginning."""
    heads = {name: f"/{name} {command.argument}".strip() for name, command in known.items()}
    width = max(len(head) for head in heads.values()) + 2
    others = aliases(known)
    lines = []
    for name, command in known.items():
        also = ", ".join(f"/{alias}" for alias in command.aliases if others.get(alias) == name)
        text = f"{command.help} (also {also})" if also else command.help
        words = textwrap.wrap(text, columns - width) if columns > 2 * width else [text]
        lines.append(f"{heads[name]:{width}}" + f"\n{' ' * width}".join(words))
    return "\n".join(lines)


def _compress(talk: Conversation, argument: str) -> str:
    report = talk.compact(argument)
    return compaction_line(report, talk.runtime.log.compactions)


def _undo(talk: Conversation, _: str) -> str:
    try:
        view = talk.undo()
    except NotFound as error:
        raise NotFound("There is no compaction to undo: this conversation shows all its messages.") from error
    return f"The last compaction is undone; {len(view.lines)} messages are shown again."


def _context(talk: Conversation, argument: str) -> str:
    if argument in ("--explain", "explain"):
        return explain(talk)
    if argument:
        return f"/context has no {argument!r}: it takes --explain or nothing."
    return draw(window_use(talk), DRAWN_WIDTH)


def _search(talk: Conversation, argument: str) -> str:
    """The best match comes last: it stands next to the prompt, and what scrolls away matters least."""
    option, _, rest = argument.partition(" ")
    words, shown = (rest.strip(), None) if option == ALL else (argument, SEARCH_SHOWN)
    if not words:
        return "Write what to look for: /search port of the staging server"
    windows = talk.search(words, SEARCH_TOKENS)
    if not windows:
        return "Nothing was found."
    lines = [str(window) for window in reversed(windows[:shown])]
    hints = ["best match last"] if len(lines) > 1 else []
    if len(windows) > len(lines):
        hints.append(f"{len(windows) - len(lines):,} more: /search {ALL} {words}")
    hints.append(f"/expand {windows[0].id} opens the whole message")
    return "\n\n".join([*lines, f"({' · '.join(hints)})"])


def _expand(talk: Conversation, argument: str) -> str:
    if not argument:
        return "Write what to open: /expand m12, /expand m10-m20 or /expand f3"
    id, _, page = argument.partition(" ")
    opened = talk.expand(id, int(page) if page.isdecimal() else 1)
    body = "\n\n".join(f"[{piece['id']}] {piece['role']}\n{piece['text']}" for piece in opened["messages"])
    return body + (f"\n\n(more: /expand {id} {opened['page'] + 1})" if "next" in opened else "")


COMMANDS: dict[str, SlashCommand] = {
    "help": SlashCommand("list the commands", lambda _, __: help_text(COMMANDS), aliases=("?", "commands")),
    "compress": SlashCommand(
        "fold older messages into a summary; the topic is kept in detail", _compress, "[topic]", ("compact",)
    ),
    "undo": SlashCommand("undo the last compaction", _undo),
    "context": SlashCommand(
        "where the window goes; --explain: limits and sources", _context, "[--explain]", ("status", "tokens")
    ),
    "search": SlashCommand("search the whole conversation, folded parts included", _search, "[--all] WORDS", ("find",)),
    "expand": SlashCommand("reopen a message, a span or a fold", _expand, "m12|m10-m20|f3"),
    "pin": SlashCommand("keep a message word for word; alone, show the pins", pin, "[m12 [note]]"),
    "unpin": SlashCommand("unpin a message", unpin, "m12"),
    "usage": SlashCommand("tokens, cache hits and cost of this conversation", usage, aliases=("cost", "stats")),
    "insights": SlashCommand("the same for everything in the store", insights, "[days]"),
    "sessions": SlashCommand("the newest conversations", sessions, "[count]", ("history",)),
    "plugins": SlashCommand("the context engines, and which one is in use", plugins),
    "config": SlashCommand("settings that are not the default, or one of them", config, "[key]", ("settings",)),
}


def plugin_commands(talk: Conversation) -> dict[str, SlashCommand]:
    """The commands that plugins bring into a conversation; names that the host uses stay the host's."""
    found: dict[str, SlashCommand] = {}
    for call in talk.runtime.plugins.extras.commands:
        about = call.command
        if about.name not in COMMANDS and about.name not in found:
            found[about.name] = SlashCommand(about.help, _run(call), about.argument)
    return found


def _run(call: PluginCommandCall) -> Callable[[Conversation, str], str]:
    return lambda _, text: call(text)
