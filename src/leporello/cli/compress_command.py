"""`leporello compress`: one manual compaction of a message list in a file. No store, no API key, no network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leporello.agent.endpoints import own_window
from leporello.api import DEFAULT_WINDOW, Compressed, CompressInput, compress_within
from leporello.cli import ExitCode
from leporello.cli.context import CommandContext, code_of, pass_context
from leporello.cli.files import MessageFile, encoding_option, must_be_another, read_document, write_atomically
from leporello.config import Settings, fold_key
from leporello.engines.lcm import read_settings
from leporello.events import CompactionReport, Outcome
from leporello.models import Limits, resolve_limits
from leporello.models.limits import limits_of
from leporello.present.output import json_option, note, print_json, warn
from leporello.present.text import plural

_NOT_FOLDED = {
    Outcome.NOTHING_TO_DO: "Nothing to fold.",
    Outcome.NO_GAIN: "Not folded, because it would not help.",
    Outcome.BLOCKED: "It can't be folded.",
    Outcome.FAILED: "Folding failed.",
}


@dataclass(frozen=True, slots=True)
class CompressOptions:
    """The options of the command."""

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

    It folds at once, also what would still fit the window: the window tells how much may be left. FILE holds a JSON
    list of OpenAI-format messages, one message a line, or an object with "messages" and optionally "tools" and
    "system". A summary of an earlier run is taken over when it bears this home's signature; lines of any other are
    marked as unverified. The report goes to stderr. --out writes the whole file or nothing; it replaces another file,
    but FILE itself only with --force. Exit codes: 0 folded, 2 bad input, 3 nothing to do or no gain, 4 blocked or
    failed.
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
            note(f"FILE was {document.remark}; what is written is UTF-8.")
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
        note(f"{_why_not(report)} The messages are unchanged.")
        return
    saved = 1 - report.tokens_after / max(1, report.tokens_before)
    note(
        f"Folded: {plural(report.messages_before, 'message')} of {report.tokens_before:,} tokens became "
        f"{plural(report.messages_after, 'message')} of {report.tokens_after:,} tokens ({saved:.0%} less)."
    )
    model = report.summariser.partition(":")[2]
    how = f"by {model}" if model else "without a model"
    kept = ", ".join(f"{count} in {name}" for name, count in report.details["sections"].items())
    note(f"A summary, written {how}, stands for {report.covered}. Lines in it: {kept}.")
    if report.details["unverified"]:
        lines = plural(report.details["unverified"], "line")
        note(f"{lines} of it came from an earlier summary without this home's signature: marked as unverified.")
    if report.pruned:
        is_shown = "is shown as a pointer" if report.pruned == 1 else "are shown as pointers"
        note(f"{plural(report.pruned, 'long tool output')} behind it {is_shown}.")
    if report.details["above_aim"]:
        note("That is above the target: what must stay and the summary of the rest need this much.")
    if out is not None:
        note(f"Written to {out}.")


def _why_not(report: CompactionReport) -> str:
    """Why nothing was folded, in a sentence; the reason of the engine where it says more."""
    if report.outcome is Outcome.NOTHING_TO_DO and not report.messages_before:
        return "Nothing to fold: the list is empty."
    return f"{_NOT_FOLDED[report.outcome]} {report.reason}"
