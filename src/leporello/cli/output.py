"""How commands speak: results on stdout (JSON when asked), everything else on stderr, colours only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click
import orjson

from leporello.config import colours_wanted

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """The `--json` flag; the function receives it as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(function)


def print_json(value: Any) -> None:
    """One JSON document on stdout, indented, in UTF-8; what JSON does not know is written as text."""
    text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    click.echo(text)


def say(text: str = "") -> None:
    """A result for a person, on stdout."""
    click.echo(text, color=None if colours_wanted() else False)


def note(text: str) -> None:
    """A remark beside the result, on stderr."""
    click.echo(text, err=True, color=None if colours_wanted() else False)


def warn(text: str) -> None:
    """Something the user should know about, on stderr."""
    note(click.style("warning: ", fg="yellow") + text)


def dim(text: str) -> str:
    """Text of lesser weight; plain where there are no colours."""
    return click.style(text, dim=True)


def strong(text: str) -> str:
    """Text that stands out; plain where there are no colours."""
    return click.style(text, bold=True)


def print_table(rows: Iterable[Sequence[str]], headings: Sequence[str] = ()) -> None:
    """Columns aligned by spaces; the last one is not padded."""
    table = [tuple(row) for row in rows]
    if headings:
        table.insert(0, tuple(headings))
    widths = [
        max((len(row[column]) for row in table if column < len(row)), default=0) for column in range(_breadth(table))
    ]
    for number, row in enumerate(table):
        cells = [cell.ljust(widths[column]) for column, cell in enumerate(row[:-1])] + list(row[-1:])
        line = "  ".join(cells).rstrip()
        say(strong(line) if headings and number == 0 else line)


def _breadth(table: Sequence[Sequence[str]]) -> int:
    return max((len(row) for row in table), default=0)


class Progress:
    """One line on stderr that is rewritten in place; silent when stderr is not a terminal."""

    def __init__(self, label: str, interval: float = 0.1) -> None:
        self._label = label
        self._interval = interval
        self._shown_at = 0.0
        self._visible = sys.stderr.isatty()
        self._drawn = False

    def update(self, done: int, total: int | None = None) -> None:
        """How far the work is; drawn at most every tenth of a second."""
        now = time.monotonic()
        if not self._visible or now - self._shown_at < self._interval:
            return
        self._shown_at = now
        self._drawn = True
        amount = f"{done:,} of {total:,}" if total else f"{done:,}"
        click.echo(f"\r\x1b[2K{self._label} {amount}", err=True, nl=False)

    def close(self) -> None:
        """Take the line away."""
        if self._drawn:
            click.echo("\r\x1b[2K", err=True, nl=False)


@contextmanager
def progress(label: str) -> Iterator[Progress]:
    """Show progress while the block runs."""
    line = Progress(label)
    try:
        yield line
    finally:
        line.close()
