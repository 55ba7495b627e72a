"""Slash commands: `/compress`, `/undo`, `/usage` and their like, the same for a terminal and a server."""

from __future__ import annotations

import difflib
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from msgspec import Struct

from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.errors import Cancelled, InputError, LeporelloError, NotFound
from leporello.ledger import user_text
from leporello.ledger.user_text import one_line
from leporello.messages import text_of
from leporello.plugins.context import PluginCommand
from leporello.plugins.host import PLUGIN_MARKS
from leporello.present.records import compaction_line, cost_text, undo_line, usage_line
from leporello.present.text import moment, percent, plural
from leporello.present.window import draw, explain, window_use
from leporello.redact import redact
from leporello.store import Store
from leporello.store.records import ConversationFilter, ConversationRecord, InsightsQuery

DRAWN_WIDTH = 76
ROOT_FOLDERS = frozenset(
    "Applications Library Users Volumes app apps bin boot data dev etc home lib lib64 media mnt nix opt private proc "
    "root run sbin srv sys tmp usr var workspace workspaces".split()
)
"""A sentence may begin with one of them: `/tmp is full` is said to the model. Any other unknown name is a mistake."""
SEARCH_TOKENS = 1_500
SEARCH_SHOWN = 10
ALL = "--all"
SHOWN_CHARS = 60
TITLE_CHARS = 40
ID_CHARS = 20
LINE_CHARS = 78  # a row of a list fits on a terminal of the usual width; the beginning of an id is enough to resume by
LISTED = 10
DAYS = 30
MOST_LOOKED_AT = 200
_SECONDS_PER_DAY = 86_400
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


class CommandAnswer(Struct, frozen=True):
    """What a command said; `error` when it is unknown or could not be done."""

    text: str
    error: LeporelloError | None = None


def run_command(conversation: Conversation, text: str, more: Mapping[str, SlashCommand] | None = None) -> str | None:
    """The answer of a command, or None when the text is none. An unknown command says so; an error is its answer."""
    answer = answer_command(conversation, text, more)
    return None if answer is None else answer.text


def answer_command(
    conversation: Conversation, text: str, more: Mapping[str, SlashCommand] | None = None
) -> CommandAnswer | None:
    """The same, and whether it went well."""
    known = {**COMMANDS, **(more or {})}
    found = parse_known(text, known)
    if found is None:
        return None
    name, argument = found
    if name not in known:
        if argument and name in ROOT_FOLDERS:
            return None
        said = unknown(name, known) + (" To say it to the model, put a word before it." if argument else "")
        return CommandAnswer(said, InputError(said))
    if name == "help":
        return CommandAnswer(help_text(known))
    try:
        return CommandAnswer(known[name].run(conversation, argument))
    except Cancelled:
        raise
    except LeporelloError as error:
        return CommandAnswer(str(error), error)


def unknown(name: str, known: Mapping[str, SlashCommand]) -> str:
    near = _nearest(name, known)
    hint = ELSEWHERE.get(name) or (f"Did you mean /{near}?" if near else "/help lists all commands.")
    return f"There is no command /{name}. {hint}"


def _nearest(name: str, known: Mapping[str, SlashCommand]) -> str:
    """The command whose name, or one of whose aliases, looks most like what was typed; empty when none does."""
    by_name = {**{name: name for name in known}, **aliases(known)}
    near = difflib.get_close_matches(name, by_name, n=1)
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


def _compress(conversation: Conversation, argument: str) -> str:
    report = conversation.compact(argument)
    return compaction_line(report, conversation.runtime.log.compactions)


def _undo(conversation: Conversation, _: str) -> str:
    before = conversation.runtime.log.view
    try:
        view = conversation.undo()
    except NotFound as error:
        raise NotFound("There is no compaction to undo: this conversation shows all its messages.") from error
    return undo_line(before, view)


def _context(conversation: Conversation, argument: str) -> str:
    if argument in ("--explain", "explain"):
        return explain(conversation)
    if argument:
        return f"/context has no {argument!r}: it takes --explain or nothing."
    return draw(window_use(conversation), DRAWN_WIDTH)


def _search(conversation: Conversation, argument: str) -> str:
    """The best match comes last: it stands next to the prompt, and what scrolls away matters least."""
    option, _, rest = argument.partition(" ")
    words, shown = (rest.strip(), None) if option == ALL else (argument, SEARCH_SHOWN)
    if not words:
        return "Write what to look for: /search port of the staging server"
    windows = conversation.search(words, SEARCH_TOKENS)
    if not windows:
        return "Nothing was found."
    lines = [str(window) for window in reversed(windows[:shown])]
    hints = ["best match last"] if len(lines) > 1 else []
    if len(windows) > len(lines):
        hints.append(f"{len(windows) - len(lines):,} more: /search {ALL} {words}")
    hints.append(f"/expand {windows[0].id} opens the whole message")
    return "\n\n".join([*lines, f"({' · '.join(hints)})"])


def _expand(conversation: Conversation, argument: str) -> str:
    if not argument:
        return "Write what to open: /expand m12, /expand m10-m20 or /expand f3"
    id, _, page = argument.partition(" ")
    opened = conversation.expand(id, int(page) if page.isdecimal() else 1)
    body = "\n\n".join(f"[{piece['id']}] {piece['role']}\n{piece['text']}" for piece in opened["messages"])
    return body + (f"\n\n(more: /expand {id} {opened['page'] + 1})" if "next" in opened else "")


def _usage(conversation: Conversation, _: str) -> str:
    return f"{usage_line(conversation.usage)}, folded {plural(conversation.runtime.log.compactions, 'time')}"


def _insights(conversation: Conversation, argument: str) -> str:
    days = int(argument) if argument.isdecimal() and int(argument) else DAYS
    found = conversation.runtime.log.store.usage.insights(InsightsQuery(since=time.time() - days * _SECONDS_PER_DAY))
    lines = [
        f"Last {plural(days, 'day')}: {plural(found.conversations, 'conversation')}, "
        f"{plural(found.messages, 'message')}",
        usage_line(found.totals),
    ]
    models = sorted(found.by_model.items(), key=lambda item: -item[1].usage.total_tokens)
    for name, totals in models[:LISTED]:
        tokens = totals.usage.total_tokens
        lines.append(f"  {one_line(name or '(no name)', 28):28} {tokens:>12,} tokens, cost {cost_text(totals)}")
    tools = sorted(found.by_tool.items(), key=lambda item: -item[1].calls)
    if tools:
        lines.append("tools: " + ", ".join(f"{name} {use.calls:,}" for name, use in tools[:LISTED]))
    folds = found.compactions
    done = folds.attempts.get("committed", 0)
    if done:
        saved = 1 - folds.tokens_after / max(1, folds.tokens_before)
        lines.append(f"folded {plural(done, 'time')}, {percent(saved)} smaller on average, {folds.undone:,} undone")
    return "\n".join(lines)


def _pin(conversation: Conversation, argument: str) -> str:
    if not argument:
        pins = conversation.pins.all()
        if not pins:
            return "Nothing is pinned. Pin a message by its id: /pin m12"
        return "\n".join(f"m{held.number}  {held.note or _opening(conversation, held.number)}" for held in pins)
    id, _, note = argument.partition(" ")
    size = conversation.pins.add(id, note.strip())
    later = "" if _is_shown(conversation, id) else " It is folded now; from the next folding on it is shown again."
    return f"Pinned {id} ({size:,} tokens).{later}"


def _unpin(conversation: Conversation, argument: str) -> str:
    if not argument:
        return "Name a message: /unpin m12"
    return f"{argument} is no longer pinned." if conversation.pins.remove(argument) else f"{argument} was not pinned."


def _is_shown(conversation: Conversation, id: str) -> bool:
    shown = conversation.runtime.log.view.lines
    return any(f"m{line.number}" == id.strip("[]").lower() for line in shown if not line.shortened)


def _opening(conversation: Conversation, number: int) -> str:
    return one_line(text_of(conversation.runtime.log.store.log.message(conversation.id, number).message), SHOWN_CHARS)


def sessions(conversation: Conversation, argument: str) -> str:
    """The newest conversations, numbered for `/resume`."""
    count = int(argument) if argument.isdecimal() and int(argument) else LISTED
    records = recent(conversation.runtime.log.store, count)
    if not records:
        return "There are no conversations yet."
    wide = min(ID_CHARS, max(len(record.id) for record in records))
    lines = [f"  #  {'id':{wide}}  {'active':16}  {'messages':>8}  title"]
    for place, record in enumerate(records, 1):
        here = "*" if record.id == conversation.id else " "
        about = title_of(record.metadata.title) or first_words(conversation.runtime.log.store, record)
        active = moment(record.updated_at)
        row = f"{here}{place:>2}  {one_line(record.id, wide):{wide}}  {active:16}  {record.messages:>8,}  "
        lines.append(row + one_line(about, max(8, LINE_CHARS - len(row))))
    return "\n".join(lines)


def recent(store: Store, count: int, platform: str | None = None) -> list[ConversationRecord]:
    """Conversations with at least one message, newest activity first; all, or those of one platform."""
    newest = islice(store.conversations.each(ConversationFilter(platform=platform), 50), MOST_LOOKED_AT + count)
    return list(islice((record for record in newest if record.messages), count))


def first_words(store: Store, record: ConversationRecord) -> str:
    """The beginning of the first message, secrets masked."""
    return title_of(text_of(store.log.message(record.id, 1).message)) if record.messages else ""


def title_of(text: str) -> str:
    """A few words to know a conversation by: the user's own, secrets masked."""
    return user_text.title_of(text, most=TITLE_CHARS)


def _plugins(conversation: Conversation, _: str) -> str:
    listed = conversation.runtime.plugins.host.listing()
    width = max(len(line.name) for line in listed)
    lines = []
    for line in listed:
        mark = PLUGIN_MARKS.get(line.status, " ")
        about = line.why or line.description or line.where
        lines.append(f"{mark} {line.name:{width}}  {line.status:9}  {one_line(about, 50)}".rstrip())
    return "\n".join([*lines, *conversation.runtime.plugins.troubles])


def _config(conversation: Conversation, argument: str) -> str:
    settings = conversation.runtime.settings
    if argument:
        return _setting(settings, argument)
    changed = [key for key in settings if settings.source(key).origin.value != "default"]
    lines = [_setting(settings, key) for key in changed] or ["All settings are the defaults."]
    return "\n".join([*lines, f"home: {settings.home.path}", "All of them: leporello config"])


def _setting(settings: Settings, key: str) -> str:
    # A value that looks like nothing may still be a secret beside its name.
    opening = f'{key}: "'
    masked = redact(f'{opening}{settings.get(key)}"')[len(opening) : -1]
    return f"{key} = {masked}  ({settings.source(key)})"


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
    "pin": SlashCommand("keep a message word for word; alone, show the pins", _pin, "[m12 [note]]"),
    "unpin": SlashCommand("unpin a message", _unpin, "m12"),
    "usage": SlashCommand("tokens, cache hits and cost of this conversation", _usage, aliases=("cost", "stats")),
    "insights": SlashCommand("the same for everything in the store", _insights, "[days]"),
    "sessions": SlashCommand("the newest conversations", sessions, "[count]", ("history",)),
    "plugins": SlashCommand("the context engines, and which one is in use", _plugins),
    "config": SlashCommand("settings that are not the default, or one of them", _config, "[key]", ("settings",)),
}


def plugin_commands(conversation: Conversation) -> dict[str, SlashCommand]:
    """The commands that plugins bring into a conversation; names that the host uses stay the host's."""
    found: dict[str, SlashCommand] = {}
    for command in conversation.runtime.plugins.extras.commands:
        if command.name not in COMMANDS:
            found.setdefault(command.name, SlashCommand(command.help, _run(command), command.argument))
    return found


def _run(command: PluginCommand) -> Callable[[Conversation, str], str]:
    return lambda _, text: command(text)
