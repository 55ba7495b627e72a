"""Output of commands: results on stdout (JSON when asked), everything else on stderr, colours only on a terminal.

Lists of conversations are here too: they must come at once, without what other records need.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click
import orjson

from leporello.config import colours_wanted
from leporello.present.text import as_json, breadth, cut, cut_middle, escaped, iso, moment, short

if TYPE_CHECKING:  # the list needs a store, other output does not
    from leporello.store.records import ConversationRecord

GAP = "  "
LEAST_COLUMN = 12  # the least width of a column that is cut


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def print_json(value: Any) -> None:
    """One JSON document on stdout, indented, in UTF-8; what JSON does not know is written as text."""
    click.echo(json_text(value, indent=True))


def json_text(value: Any, indent: bool = False) -> str:
    """JSON without control characters, half surrogate pairs and NaN: any reader takes it, no terminal acts on it."""
    options = orjson.OPT_NON_STR_KEYS | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        text = orjson.dumps(value, default=str, option=options).decode()
    except TypeError:
        # Half of a surrogate pair, or a number beyond 64 bits: rare, and the standard library knows how to write them.
        try:
            text = json.dumps(value, default=str, allow_nan=False)
        except ValueError:
            text = json.dumps(_finite(value), default=str)
    return escaped(text, as_json)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


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
    return click.style(text, dim=True)


def strong(text: str) -> str:
    return click.style(text, bold=True)


def terminal_width() -> int | None:
    """Columns of the terminal that results go to; None when they go to a file or a program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def say_paragraph(text: str) -> None:
    """Prose, in lines as wide as the terminal; one line for a file or a program."""
    room = terminal_width()
    lines = click.wrap_text(text, max(40, room)) if room else text
    say(lines)


def print_table(
    rows: Iterable[Sequence[str]],
    headings: Sequence[str] = (),
    numbers: Collection[int] = frozenset(),
    shrinking: Sequence[int] = (),
) -> None:
    """Columns aligned by spaces, those of `numbers` to the right; the last one is not padded.

    On a terminal that is too narrow, the columns of `shrinking` are cut, the first of them first.
    """
    table = [tuple(row) for row in rows]
    if headings:
        table.insert(0, tuple(headings))
    room = terminal_width()
    if room is not None and shrinking:
        table = fitted(table, room, shrinking)
    widths = _widths(table)
    for place, row in enumerate(table):
        cells = []
        for column, cell in enumerate(row):
            blanks = " " * (widths[column] - breadth(cell))
            cells.append(blanks + cell if column in numbers else cell + blanks)
        line = GAP.join(cells).rstrip()
        say(strong(line) if headings and place == 0 else line)


def fitted(table: list[tuple[str, ...]], room: int, shrinking: Sequence[int]) -> list[tuple[str, ...]]:
    """The table within so many columns, as far as cutting the columns of `shrinking` to their least goes."""
    widths = _widths(table)
    missing = sum(widths) + len(GAP) * (len(widths) - 1) - room
    for column in shrinking:
        given = max(0, min(missing, widths[column] - LEAST_COLUMN))
        widths[column] -= given
        missing -= given
    return [tuple(cut(cell, widths[column]) for column, cell in enumerate(row)) for row in table]


def _widths(table: list[tuple[str, ...]]) -> list[int]:
    columns = max((len(row) for row in table), default=0)
    return [max((breadth(row[column]) for row in table if column < len(row)), default=0) for column in range(columns)]


class Progress:
    """One line on stderr that is rewritten in place; silent when stderr is not a terminal."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._shown_at = 0.0
        self._visible = sys.stderr.isatty()
        self._drawn = False

    def update(self, done: int, total: int | None = None) -> None:
        """How far the work is; drawn at most every tenth of a second."""
        now = time.monotonic()
        if not self._visible or now - self._shown_at < 0.1:
            return
        self._shown_at = now
        self._drawn = True
        amount = f"{done:,} of {total:,}" if total else f"{done:,}"
        click.echo(f"\r\x1b[2K{self._label} {amount}", err=True, nl=False)

    def close(self) -> None:
        if self._drawn:
            click.echo("\r\x1b[2K", err=True, nl=False)


def progress(label: str) -> closing[Progress]:
    return closing(Progress(label))


# -- conversations as a list, as wide as the terminal

ID_WIDTH = 60
TITLE_WIDTH = 80
_ID_ON_TERMINAL = 22  # beginning and end tell ids apart, and the title needs the room
_WIDE = 110  # a terminal of so many columns has room for platform and model in the list


def conversation_json(record: ConversationRecord) -> dict[str, Any]:
    metadata = record.metadata
    return {
        "id": record.id,
        "title": metadata.title,
        "kind": record.kind.value,
        "platform": metadata.platform,
        "model": metadata.model,
        "owner": metadata.owner,
        "open": record.open,
        "end_reason": record.tip.end_reason,
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "messages": record.messages,
        "sessions": record.tip.ordinal,
        "tip": record.tip.id,
        "generation": record.generation,
        "folds": record.compactions,
        "custom": dict(metadata.custom),
    }


def print_list(records: tuple[ConversationRecord, ...], *, wide: bool = False) -> None:
    """The columns that there is room for; `wide`, or not on a terminal: all of them, and ids in full."""
    width = None if wide else terminal_width()
    whole = width is None or width >= _WIDE
    rows = [_list_row(record, whole, ID_WIDTH if width is None else _ID_ON_TERMINAL) for record in records]
    about = ("platform", "model") if whole else ()
    headings = ("id", "active", "messages", "folds", "state", *about, "title")
    title = len(headings) - 1
    print_table(rows, headings, numbers=(2, 3), shrinking=() if wide else (title, 6, 5) if whole else (title,))


def _list_row(record: ConversationRecord, whole: bool, id_letters: int) -> tuple[str, ...]:
    metadata = record.metadata
    about = (short(metadata.platform, 16), short(metadata.model, 28)) if whole else ()
    return (
        cut_middle(short(record.id, ID_WIDTH), id_letters),
        moment(record.updated_at),
        f"{record.messages:,}",
        f"{record.compactions:,}",
        "open" if record.open else "ended",
        *about,
        short(metadata.title, TITLE_WIDTH),
    )
