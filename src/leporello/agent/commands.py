"""Commands in the text: `/compress`, `/undo`, `/usage` and their like, the same for a terminal and a server.

A command is not a chat message: it is never stored, never sent to a model, and answers with plain text.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from leporello.conversation import Conversation
from leporello.errors import LeporelloError
from leporello.records import CompactionReport, Outcome


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it does in one line, and the function that does it."""

    help: str
    run: Callable[[Conversation, str], str]


def parse(text: str) -> tuple[str, str] | None:
    """Name and argument when the text is a command; a path like /usr/bin is none."""
    stripped = text.strip()
    if not stripped.startswith("/") or "\n" in stripped:
        return None
    name, _, argument = stripped[1:].partition(" ")
    return (name, argument.strip()) if name.replace("-", "").isalpha() else None


def run_command(talk: Conversation, text: str, more: Mapping[str, Command] | None = None) -> str | None:
    """The answer of a command, or None when the text is none. An unknown command says so; an error is its answer."""
    found = parse(text)
    if found is None:
        return None
    name, argument = found
    known = {**COMMANDS, **(more or {})}
    if name not in known:
        if argument and not difflib.get_close_matches(name, known, n=1):
            # "/tmp is full" is something to say, not a command somebody mistyped.
            return None
        return f"There is no command /{name}. Known: {', '.join('/' + name for name in sorted(known))}."
    try:
        return known[name].run(talk, argument)
    except LeporelloError as error:
        return str(error)


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
    view = talk.undo()
    return f"The last folding is taken back; {len(view.lines)} messages are shown again."


def _usage(talk: Conversation, _: str) -> str:
    totals = talk.usage
    used = totals.usage
    price = f"${totals.cost:.4f}" if totals.calls > totals.unpriced_calls else "unknown"
    return (
        f"{totals.calls} calls · {used.prompt_tokens:,} prompt tokens ({totals.cache_hit_rate:.0%} from the cache) · "
        f"{used.output_tokens:,} output tokens · cost {price} · folded {talk.compressions} times"
    )


def _context(talk: Conversation, argument: str) -> str:
    limits = talk.limits
    if argument.strip() == "--explain":
        return "\n".join(f"{name:20} {value:>10,}  {why}" for name, value, why in limits.explain())
    used = talk.counter.messages(talk.messages)
    fixed = talk.engine.system_tokens + talk.engine.tool_tokens
    rows = [
        ("system", talk.engine.system_tokens),
        ("tools", talk.engine.tool_tokens),
        ("folded", sum(talk.counter.message(line.message) for line in talk.view.lines if line.fold)),
        ("messages", sum(talk.counter.message(line.message) for line in talk.view.lines if not line.fold)),
        ("free", max(0, limits.window - used - fixed)),
    ]
    width = 40
    return "\n".join(
        f"{name:9} {tokens:>9,}  {'█' * round(width * tokens / max(1, limits.window))}" for name, tokens in rows
    )


def _search(talk: Conversation, argument: str) -> str:
    if not argument:
        return "Say what to look for: /search port of the staging server"
    windows = talk.search(argument, 1_500)
    return "\n\n".join(str(window) for window in windows) or "Nothing was found."


def _expand(talk: Conversation, argument: str) -> str:
    id, _, page = argument.partition(" ")
    opened = talk.expand(id, int(page) if page.isdecimal() else 1)
    body = "\n\n".join(f"[{piece['id']}] {piece['role']}\n{piece['text']}" for piece in opened["messages"])
    return body + (f"\n\n(more: /expand {id} {opened['page'] + 1})" if "next" in opened else "")


def _help(_: Conversation, __: str) -> str:
    return "\n".join(f"/{name:10} {command.help}" for name, command in COMMANDS.items())


COMMANDS: dict[str, Command] = {
    "help": Command("what can be said here", _help),
    "compress": Command("fold now; with a topic, keep what is about it in detail", _compress),
    "undo": Command("take the last folding back", _undo),
    "usage": Command("tokens, cache hits and cost so far", _usage),
    "context": Command("where the window goes; --explain shows the limits and their sources", _context),
    "search": Command("search the whole conversation, folded parts included", _search),
    "expand": Command("reopen m12, m10-m20 or f3", _expand),
}
