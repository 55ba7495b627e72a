"""`leporello compress`: one manual compaction of a message list in a file. No store, no key, no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leporello.api import DEFAULT_WINDOW, Compressed, compress_within
from leporello.cli.exits import ExitCode
from leporello.cli.files import Document, read_document, write_atomically
from leporello.cli.frame import Frame, pass_frame
from leporello.cli.output import json_option, note, print_json, warn
from leporello.config import Settings
from leporello.limits import limits_of
from leporello.models import Limits, resolve_limits
from leporello.records import CompactionReport, Outcome

_CODES = {
    Outcome.COMMITTED: ExitCode.OK,
    Outcome.NOTHING_TO_DO: ExitCode.NOTHING_DONE,
    Outcome.NO_GAIN: ExitCode.NOTHING_DONE,
    Outcome.BLOCKED: ExitCode.BLOCKED,
    Outcome.FAILED: ExitCode.BLOCKED,
}


@click.command("compress")
@click.argument("source", metavar="FILE")
@click.option("--window", type=click.IntRange(min=1_000), help=f"The model's window in tokens. [{DEFAULT_WINDOW:,}]")
@click.option("--model", metavar="NAME", help="Count and fold for this model; its window unless --window is given.")
@click.option("--focus", metavar="TOPIC", default="", help="Keep what is about TOPIC in full detail.")
@click.option("--engine", metavar="NAME", default="compressor", show_default=True, help="Which engine folds.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the result here, not to stdout.")
@json_option
@pass_frame
def command(
    frame: Frame,
    source: str,
    window: int | None,
    model: str | None,
    focus: str,
    engine: str,
    out: Path | None,
    as_json: bool,
) -> ExitCode:
    """Fold the message list in FILE (`-` reads standard input) and print it in the same shape.

    FILE holds a JSON list of OpenAI-format messages, or an object with "messages" and optionally "tools" and "system".
    The report goes to stderr. Exit codes: 0 folded, 2 bad input, 3 nothing to do or no gain, 4 blocked or failed.
    """
    document = read_document(source)
    result = compress_within(
        document.messages,
        _limits(frame.settings, window, model),
        model=model,
        focus=focus,
        tools=document.tools,
        system=document.system,
        engine=engine,
    )
    _write(document.with_messages(result.messages), result, out, as_json)
    if not as_json:
        _tell(result.report, window, model, out)
    return _CODES[result.report.outcome]


def _limits(settings: Settings, window: int | None, model: str | None) -> Limits:
    """The window that was asked for, else the model's as every other command knows it."""
    if model and not window:
        return limits_of(settings, model)
    return resolve_limits(
        model,
        declared_window=window or DEFAULT_WINDOW,
        threshold=settings.compression.threshold,
        target_ratio=settings.compression.target_ratio,
        protect_last_n=settings.compression.protect_last_n,
        overrides=settings.model_overrides,
    )


def _write(document: Document, result: Compressed, out: Path | None, as_json: bool) -> None:
    if out is not None:
        write_atomically(out, document.encoded())
    if as_json:
        print_json(_as_json(result, with_messages=out is None))
    elif out is None:
        click.echo(document.encoded(), nl=False)


def _as_json(result: Compressed, *, with_messages: bool) -> dict[str, Any]:
    report = result.report
    answer: dict[str, Any] = {
        "outcome": report.outcome.value,
        "reason": report.reason,
        "before": {"messages": report.messages_before, "tokens": report.tokens_before},
        "after": {"messages": report.messages_after, "tokens": report.tokens_after},
        "engine": report.engine,
        "summariser": report.summariser,
        "focus": report.focus,
        "fold": report.fold or None,
        "covered": str(report.covered) if report.covered else None,
        "pruned": report.pruned,
        "sections": report.details.get("sections", {}),
        "above_aim": report.details.get("above_aim", False),
        "warnings": list(report.warnings),
        "seconds": round(report.seconds, 3),
    }
    if with_messages:
        answer["messages"] = result.messages
    return answer


def _tell(report: CompactionReport, window: int | None, model: str | None, out: Path | None) -> None:
    if window is None and model is None:
        note(f"No window or model was given: folding for {DEFAULT_WINDOW:,} tokens.")
    for text in report.warnings:
        warn(text)
    if not report.committed:
        note(f"{report.outcome.value}: {report.reason} The messages are unchanged.")
        return
    saved = 1 - report.tokens_after / max(1, report.tokens_before)
    note(
        f"committed: {report.messages_before:,} messages, {report.tokens_before:,} tokens"
        f" → {report.messages_after:,} messages, {report.tokens_after:,} tokens ({saved:.0%} less)."
    )
    kept = ", ".join(f"{count} in {name}" for name, count in report.details["sections"].items())
    note(f"folded {report.covered} ({report.summariser}); lines kept: {kept}.")
    if report.pruned:
        note(f"{report.pruned} tool outputs of the tail are shown as pointers.")
    if report.details["above_aim"]:
        note("The result is above the aim of half the threshold: what must stay leaves little to fold.")
    if out is not None:
        note(f"written to {out}")
