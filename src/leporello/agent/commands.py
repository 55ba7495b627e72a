"""Commands in the text: `/compress`, `/undo`, `/usage` and their like, the same for a terminal and a server.

A command is not a chat message: it is never stored, never sent to a model, and answers with plain text. A face adds
commands of its own (`more`): a terminal can begin another conversation, a server may not.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from leporello.agent.commands_context import draw, explain, window_use
from leporello.agent.commands_store import config, insights, pin, plugins, sessions, unpin, usage
from leporello.conversation import Conversation
from leporello.errors import Cancelled, InputError, LeporelloError, NotFound
from leporello.records import CompactionReport, Outcome

DRAWN_WIDTH = 76


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it does in one line, the function that does it, and what may stand behind its name."""

    help: str
    run: Callable[[Conversation, str], str]
    argument: str = ""


def parse(text: str) -> tuple[str, str] | None:
    """Name and argument when the text is a command; a path like /usr/bin is none."""
    stripped = text.strip()
    if not stripped.startswith("/") or "\n" in stripped:
        return None
    name, _, argument = stripped[1:].partition(" ")
    return (name, argument.strip()) if name.replace("-", "").isalpha() else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said; `error` when it is unknown or could not be done."""

    text: str
    error: LeporelloError | None = None


def run_command(talk: Conversation, text: str, more: Mapping[str, Command] | None = None) -> str | None:
    """The answer of a command, or None when the text is none. An unknown command says so; an error is its answer."""
    answer = answer_command(talk, text, more)
    return None if answer is None else answer.text


def answer_command(talk: Conversation, text: str, more: Mapping[str, Command] | None = None) -> Answer | None:
    """The same, and whether it went well."""
    found = parse(text)
    if found is None:
        return None
    name, argument = found
    known = {**COMMANDS, **(more or {})}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        if argument and not near:
            # "/tmp is full" is something to say, not a command somebody mistyped.
            return None
        said = unknown(name, known)
        return Answer(said, InputError(said))
    if name == "help":
        return Answer(help_text(known))
    try:
        return Answer(known[name].run(talk, argument))
    except Cancelled:
        raise
    except LeporelloError as error:
        return Answer(str(error), error)


def unknown(name: str, known: Mapping[str, object]) -> str:
    """What is said about a command that does not exist."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean /{near[0]}?" if near else ""
    return f"There is no command /{name}.{hint} Known: {', '.join('/' + name for name in sorted(known))}."


def help_text(known: Mapping[str, Command], columns: int = 0) -> str:
    """One line for each command; with a number of columns, long ones go on below their beginning."""
    heads = {name: f"/{name} {command.argument}".strip() for name, command in known.items()}
    width = max(len(head) for head in heads.values()) + 2
    lines = []
    for name, command in known.items():
        words = textwrap.wrap(command.help, columns - width) if columns > 2 * width else [command.help]
        lines.append(f"{heads[name]:{width}}" + f"\n{' ' * width}".join(words))
    return "\n".join(lines)


def describe_report(report: CompactionReport) -> str:
    """One line about an attempt, derived from its outcome alone."""
    if report.outcome is Outcome.COMMITTED:
        saved = 1 - report.tokens_after / max(1, report.tokens_before)
        line = (
            f"Folded {report.covered}: {report.tokens_before:,} → {report.tokens_after:,} tokens ({saved:.0%} less) "
            f"in {report.seconds:.1f} s, {report.summariser or 'model-free'}."
        )
        return "\n".join([line, *report.warnings])
    words = {
        Outcome.NOTHING_TO_DO: "Nothing to fold yet.",
        Outcome.NO_GAIN: "Not folded: it would not have helped.",
        Outcome.BLOCKED: "Folding is not possible now.",
        Outcome.FAILED: "Folding failed; nothing was changed.",
    }
    return " ".join([words[report.outcome], report.reason, *report.warnings]).strip()


def _compress(talk: Conversation, argument: str) -> str:
    return describe_report(talk.compact(argument))


def _undo(talk: Conversation, _: str) -> str:
    try:
        view = talk.undo()
    except NotFound as error:
        raise NotFound("There is no folding to take back: this conversation shows all its messages.") from error
    return f"The last folding is taken back; {len(view.lines)} messages are shown again."


def _context(talk: Conversation, argument: str) -> str:
    if argument in ("--explain", "explain"):
        return explain(talk)
    if argument:
        return f"/context has no {argument!r}: it takes --explain or nothing."
    return draw(window_use(talk), DRAWN_WIDTH)


def _search(talk: Conversation, argument: str) -> str:
    if not argument:
        return "Say what to look for: /search port of the staging server"
    windows = talk.search(argument, 1_500)
    return "\n\n".join(str(window) for window in windows) or "Nothing was found."


def _expand(talk: Conversation, argument: str) -> str:
    if not argument:
        return "Say what to open: /expand m12, /expand m10-m20 or /expand f3"
    id, _, page = argument.partition(" ")
    opened = talk.expand(id, int(page) if page.isdecimal() else 1)
    body = "\n\n".join(f"[{piece['id']}] {piece['role']}\n{piece['text']}" for piece in opened["messages"])
    return body + (f"\n\n(more: /expand {id} {opened['page'] + 1})" if "next" in opened else "")


COMMANDS: dict[str, Command] = {
    "help": Command("what can be said here", lambda _, __: help_text(COMMANDS)),
    "compress": Command("fold now; what is about the topic is kept in detail", _compress, "[topic]"),
    "undo": Command("take the last folding back", _undo),
    "context": Command("where the window goes; --explain: limits and sources", _context, "[--explain]"),
    "search": Command("search the whole conversation, folded parts included", _search, "WORDS"),
    "expand": Command("reopen a message, a span or a fold", _expand, "m12|m10-m20|f3"),
    "pin": Command("keep a message word for word; alone, show the pins", pin, "[m12 [note]]"),
    "unpin": Command("let a pinned message go", unpin, "m12"),
    "usage": Command("tokens, cache hits and cost of this conversation", usage),
    "insights": Command("the same for everything in the store", insights, "[days]"),
    "sessions": Command("the newest conversations", sessions, "[count]"),
    "plugins": Command("the context engines, and which one is in use", plugins),
    "config": Command("settings that are not the default, or one of them", config, "[key]"),
}
