"""`leporello compress`: one manual compaction of a message list in a file. No store, no API key, no network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any

import click

from leporello.agent.endpoints import own_window
from leporello.api import DEFAULT_WINDOW, Compressed, CompressInput, compress_within
from leporello.cli import ExitCode
from leporello.cli.context import (
    CommandContext,
    code_of,
    encoding_option,
    must_be_another,
    pass_context,
    read_text,
    source_name,
    write_atomically,
)
from leporello.config import Settings, fold_key
from leporello.engines.lcm import read_settings
from leporello.errors import InputError
from leporello.events import CompactionReport, Outcome
from leporello.importers import load_sessions
from leporello.importers.openai_json import OPENAI
from leporello.messages import Message, encode_json, parse_json
from leporello.models import Limits, resolve_limits
from leporello.models.limits import limits_of
from leporello.present.output import json_option, note, print_json, warn
from leporello.present.records import pointers_line
from leporello.present.text import percent, plural
from leporello.turns import check_roles

_JSON_NAMES = {str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}
_NOT_FOLDED = {
    Outcome.NOTHING_TO_DO: "Nothing to fold.",
    Outcome.NO_GAIN: "Not folded, because it would not help.",
    Outcome.BLOCKED: "It can't be folded.",
    Outcome.FAILED: "Folding failed.",
}


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A message list as it came: bare, or inside an object whose other fields are kept."""

    messages: list[Message]
    wrapper: dict[str, Any] | None = None
    epilogue: tuple[Message, ...] = ()
    """Closing records of a trajectory (role `exit`): no part of the conversation, kept behind it."""
    in_lines: bool = False
    """Whether each message stands on a line of its own (JSON lines)."""
    remark: str = ""
    """What should be said about how it was read; mostly nothing."""
    recorded: bool = False
    """Whether an agent recorded it in a form of its own; it is written as a list of messages."""

    @property
    def tools(self) -> list[dict[str, Any]]:
        tools = (self.wrapper or {}).get("tools")
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    @property
    def system(self) -> str:
        system = (self.wrapper or {}).get("system")
        return system if isinstance(system, str) else ""

    def with_messages(self, messages: list[Message]) -> MessageFile:
        wrapper = None if self.wrapper is None else {**self.wrapper, "messages": [*messages, *self.epilogue]}
        return replace(self, messages=messages, wrapper=wrapper)

    def encoded(self) -> bytes:
        """JSON in the shape of the input."""
        if self.in_lines:
            return b"".join(encode_json(message) + b"\n" for message in self.messages)
        return encode_json(self.messages if self.wrapper is None else self.wrapper) + b"\n"


def read_document(source: str, encoding: str | None = None) -> MessageFile:
    """A message list from a file or `-` for standard input, or what an agent recorded in a file.

    An error names the place.
    """
    decoded = read_text(source, encoding)
    try:
        return replace(_document(decoded.text, source_name(source)), remark=decoded.remark)
    except InputError:
        recorded = None if source == "-" else _recorded(source, encoding)
        if recorded is None:
            raise
        return recorded


def _recorded(source: str, encoding: str | None) -> MessageFile | None:
    """The messages of a recording, when the file is one."""
    try:
        sessions = load_sessions(source, encoding)
    except InputError:
        # What is said of it as a list of messages tells more.
        return None
    main = [session for session in sessions if session.kind == "main"]
    if not main or main[0].format == OPENAI.name:
        return None
    if len(main) > 1:
        raise InputError(
            f"holds {len(main)} recorded sessions, and one is compacted at a time. `leporello import` takes them all "
            "into the store",
            source,
        )
    (session,) = main
    wrapper = {"messages": session.messages, "tools": session.tools} if session.tools else None
    remark = f"read as a recording of {session.format}"
    if len(sessions) > 1:
        remark += f"; of {len(sessions)} threads in it only the main one is read"
    return MessageFile(session.messages, wrapper, remark="; ".join([remark, *session.notes]), recorded=True)


def _document(text: str, name: str) -> MessageFile:
    value, in_lines = _parse(text, name)
    if in_lines:
        document = MessageFile(value, in_lines=True)
    elif isinstance(value, dict):
        messages = value.get("messages")
        if not isinstance(messages, list):
            raise InputError('has no "messages" list; expected a list of messages or {"messages": [...]}', name)
        stop = len(messages)
        while stop and isinstance(messages[stop - 1], dict) and messages[stop - 1].get("role") == "exit":
            stop -= 1
        document = MessageFile(messages[:stop], value, tuple(messages[stop:]))
    elif isinstance(value, list):
        document = MessageFile(value)
    else:
        raise InputError(f"contains {_JSON_NAMES[type(value)]}, expected a list of messages", name)
    # People see messages numbered as in reports: m1 is the first.
    check_roles(document.messages, lambda index: f"{name}: m{index + 1}")
    return document


def _parse(text: str, name: str) -> tuple[Any, bool]:
    """The JSON value of a file, or the messages of its lines; and which of the two."""
    if not text.strip():
        raise InputError("is empty", name)
    try:
        value = loads(text)
    except JSONDecodeError as error:
        lines = _json_lines(text)
        if lines is None:
            where = f"{name}: line {error.lineno}, column {error.colno}"
            raise InputError(f"is not JSON: {error.msg}", where) from error
    except RecursionError as error:
        raise InputError("is nested too deeply", name) from error
    else:
        if not (isinstance(value, dict) and "messages" not in value and isinstance(value.get("role"), str)):
            return value, False
        lines = [value]
    if not all(isinstance(line.get("role"), str) for line in lines):
        raise InputError("contains JSON lines that are not messages, nor what a known agent records", name)
    return lines, True


def _json_lines(text: str) -> list[dict[str, Any]] | None:
    """The objects of a file with one on each line; None when it is no such file."""
    lines = [parse_json(line) for line in text.split("\n") if line.strip()]
    objects = [line for line in lines if isinstance(line, dict)]
    return objects if len(objects) == len(lines) > 1 else None


@dataclass(frozen=True, slots=True)
class CompressOptions:
    source: str
    window: int | None
    model: str | None
    focus: str
    engine: str
    out: Path | None
    force: bool
    encoding: str | None
    as_json: bool


@click.command("compress")
@click.argument("source", metavar="FILE")
@click.option("--window", type=click.IntRange(min=1_000), help=f"The model's window in tokens. [{DEFAULT_WINDOW:,}]")
@click.option("--model", metavar="NAME", help="Count and fold for this model; its window unless --window is given.")
@click.option("--focus", metavar="TOPIC", default="", help="Keep what is about TOPIC in full detail.")
@click.option("--engine", metavar="NAME", default="compressor", show_default=True, help="Which engine folds.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the result here, not to stdout.")
@click.option("--force", is_flag=True, help="Let --out replace FILE itself: what is folded is then gone from it.")
@encoding_option
@json_option
@pass_context
def command(context: CommandContext, /, **given: Any) -> ExitCode:
    """Fold the message list in FILE (`-` reads standard input) and print it in the same shape.

    It folds at once, also what would still fit the window: the window tells how much may be left, not
    compression.policy. FILE holds a JSON
    list of OpenAI-format messages, one message a line, an object with "messages" and optionally "tools" and "system",
    or a session that an agent recorded (Claude Code, Codex, pi and others), which is printed as a list. A summary of an
    earlier run is taken over when it bears this home's signature; lines of any other are marked as unverified. The
    report goes to stderr. --out writes the whole file or nothing; it replaces another file, but FILE itself only with
    --force. Exit codes: 0 folded, 2 bad input, 3 nothing to do or no gain, 4 blocked or failed.
    """
    options = CompressOptions(**given)
    if options.out is not None and not options.force:
        remedy = "--force replaces it, and what is folded is then gone; another name keeps it."
        must_be_another(options.out, options.source, remedy)
    document = read_document(options.source, options.encoding)
    limits = _limits(context.settings, options)
    key = fold_key(context.home)
    if key is None:
        path = context.home.fold_key_file
        warn(f"{path} can't be written: the summary is not signed, and the next run won't vouch for it.")
    lcm, warnings = (
        read_settings(context.settings.free_sections.get("lcm", {})) if options.engine == "lcm" else (None, [])
    )
    for text in warnings:
        warn(text)
    result = compress_within(
        document.messages,
        limits,
        CompressInput(
            model=options.model,
            focus=options.focus,
            tools=document.tools,
            system=document.system,
            engine=options.engine,
            key=key,
            lcm=lcm,
        ),
    )
    _write(document.with_messages(result.messages), result, limits, options)
    if not options.as_json:
        if document.remark:
            written = "the messages are written as a list" if document.recorded else "what is written is UTF-8"
            note(f"FILE was {document.remark}; {written}.")
        if options.window is None:
            note(
                f"Folding for a window of {limits.window:,} tokens ({limits.sources['window']})."
                if options.model
                else f"No window or model was given: folding for an assumed {limits.window:,} tokens."
            )
        _tell(result.report, options.out)
    return code_of(result.report.outcome)


def _limits(settings: Settings, options: CompressOptions) -> Limits:
    """The window that was asked for, else the model's as every other command knows it."""
    if options.model and not options.window:
        return limits_of(settings, options.model, served_window=own_window(options.model))
    return resolve_limits(
        options.model,
        declared_window=options.window or DEFAULT_WINDOW,
        threshold=settings.compression.threshold,
        target_ratio=settings.compression.target_ratio,
        protect_last_n=settings.compression.protect_last_n,
        overrides=settings.get("models"),
    )


def _write(document: MessageFile, result: Compressed, limits: Limits, options: CompressOptions) -> None:
    out = options.out
    if out is not None:
        write_atomically(out, document.encoded())
    if options.as_json:
        print_json(_as_json(result, limits, document.remark, with_messages=out is None))
    elif out is None:
        click.echo(document.encoded(), nl=False)


def _as_json(result: Compressed, limits: Limits, remark: str, *, with_messages: bool) -> dict[str, Any]:
    report = result.report
    answer: dict[str, Any] = {
        "outcome": report.outcome.value,
        "reason": report.reason,
        "before": {"messages": report.messages_before, "tokens": report.tokens_before},
        "after": {"messages": report.messages_after, "tokens": report.tokens_after},
        "window": {"value": limits.window, "source": limits.sources["window"]},
        "engine": report.engine,
        "summariser": report.summariser,
        "focus": report.focus,
        "fold": report.fold or None,
        "covered": str(report.covered) if report.covered else None,
        "pruned": report.pruned,
        "sections": report.details.get("sections", {}),
        "above_aim": report.details.get("above_aim", False),
        "unverified": report.details.get("unverified", 0),
        "warnings": [*report.warnings, *([f"FILE was {remark}"] if remark else ())],
        "seconds": round(report.seconds, 3),
    }
    if with_messages:
        answer["messages"] = result.messages
    return answer


def _tell(report: CompactionReport, out: Path | None) -> None:
    for text in report.warnings:
        warn(text)
    if not report.committed:
        empty = report.outcome is Outcome.NOTHING_TO_DO and not report.messages_before
        why = "Nothing to fold: the list is empty." if empty else f"{_NOT_FOLDED[report.outcome]} {report.reason}"
        note(f"{why} The messages are unchanged.")
        return
    saved = 1 - report.tokens_after / max(1, report.tokens_before)
    note(
        f"Folded: {plural(report.messages_before, 'message')} of {report.tokens_before:,} tokens became "
        f"{plural(report.messages_after, 'message')} of {report.tokens_after:,} tokens ({percent(saved)} less)."
    )
    model = report.summariser.partition(":")[2]
    how = f"by {model}" if model else "without a model"
    kept = ", ".join(f"{count} in {name}" for name, count in report.details["sections"].items())
    note(f"A summary, written {how}, stands for {report.covered}. Lines in it: {kept}.")
    if report.details["unverified"]:
        lines = plural(report.details["unverified"], "line")
        note(f"{lines} of it came from an earlier summary without this home's signature: marked as unverified.")
    if pointers := pointers_line(report):
        note(pointers)
    if report.details["above_aim"]:
        note("That is above the target: what must stay and the summary of the rest need this much.")
    if out is not None:
        note(f"Written to {out}.")
