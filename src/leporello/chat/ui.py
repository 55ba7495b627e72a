"""What both user interfaces share: their port, options and status line, and what is shown of a tool's output.

Loaded before the prompt: it imports nothing heavy.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from leporello.config import Settings
from leporello.present.text import bar, clean, one_line, plural, short_count
from leporello.usage import money

if TYPE_CHECKING:  # the prompt must stand before any of these is loaded
    from leporello.agent.events import AgentEvent, ToolFinished
    from leporello.present.window import WindowUse
    from leporello.tools.approval import ApprovalAnswer
    from leporello.tools.base import ApprovalRequest

GAUGE = 10
PREVIEW_LINES = 4
_QUIET = ("read_file", "todo", "memory", "lcm_grep", "lcm_describe", "lcm_expand")
"""Their output is for the model; the line says enough."""
_FROM_THE_END = ("terminal", "jobs")  # the last lines of their output say most


class ChatOptions(Struct, frozen=True):
    settings: Settings
    workdir: Path
    resume: str | None = None
    """Any id of a conversation's chain."""
    go_on: bool = False
    """Resume the newest conversation."""
    plain: bool = False

    @property
    def model(self) -> str:
        return str(self.settings.model.default or "")


class TurnView(Protocol):
    """Shows one turn as it happens."""

    @property
    def uninterruptible(self) -> bool:
        """Whether the work at this moment can't be cancelled softly: a person is asked something."""

    def __call__(self, event: AgentEvent) -> None:
        """Something happened."""


class Ui(Protocol):
    """A user interface: shows texts and turns, and asks for approval."""

    @property
    def width(self) -> int:
        """Columns there are for text."""

    def say(self, text: str) -> None:
        """The answer of a command."""

    def note(self, text: str) -> None:
        """A remark."""

    def warn(self, text: str) -> None:
        """Something the user should know."""

    def error(self, text: str) -> None:
        """Something went wrong."""

    def answer(self, text: str) -> None:
        """An answer of the model from earlier, shown again."""

    def window(self, use: WindowUse) -> None:
        """The picture of `/context`."""

    def turn(self) -> AbstractContextManager[TurnView]:
        """The view of one turn."""

    def working(self, label: str) -> AbstractContextManager[None]:
        """Shows that something is going on, and for how long."""

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Asks a person for consent; Ctrl-C raises `KeyboardInterrupt`."""


# -- the status line


class ChatStatus(Struct, frozen=True):
    model: str
    used: int = 0
    window: int = 0
    cost: float | None = None
    hit_rate: float | None = None
    folds: int = 0
    warning: str = ""
    """Something that is wrong and stays so; it comes right behind the model."""
    assumed: bool = False
    """Whether the window is a guess."""
    note: str = ""
    """Stands in for the numbers while there are none."""
    outlook: tuple[str, ...] = ()
    """What the policy says about the next compaction, and what compactions saved."""

    @property
    def share(self) -> float:
        """How full the window is, 0 to 1."""
        return min(1.0, self.used / self.window) if self.window else 0.0


def gauge(share: float) -> str:
    return bar(share, GAUGE).ljust(GAUGE, "░")


def parts(status: ChatStatus) -> list[str]:
    """The line in pieces, the most important first."""
    pieces = [status.model or "no model"]
    if status.note:
        return [*pieces, status.note]
    if status.warning:
        pieces.append(f"! {status.warning}")
    if status.window:
        used = f"{short_count(status.used)}/{short_count(status.window)}{' assumed' if status.assumed else ''}"
        pieces.append(f"{gauge(status.share)} {status.share:.0%} {used}")
    if status.cost is not None:
        pieces.append(money(status.cost))
    if status.hit_rate is not None:
        pieces.append(f"cache {status.hit_rate:.0%}")
    if status.folds:
        pieces.append(f"folded {status.folds}×")
    return [*pieces, *status.outlook]


def status_line(status: ChatStatus, width: int) -> str:
    """As many pieces as fit; the model's name gives way first, then pieces from the right."""
    pieces = parts(status)
    line = " · ".join(pieces)
    if len(line) > width and len(pieces[0]) > 12:
        spare = max(12, len(pieces[0]) - (len(line) - width))
        pieces[0] = pieces[0][: spare - 1] + "…" if spare < len(pieces[0]) else pieces[0]
    while len(pieces) > 1 and len(" · ".join(pieces)) > width:
        pieces.pop()
    if len(pieces) == 1 and status.window:
        # Too narrow for the gauge: how full the window is still stands there in figures.
        figure = f" {status.share:.0%}"
        return pieces[0][: max(0, width - len(figure))] + figure
    return " · ".join(pieces)[:width]


# -- the output of a tool


class Preview(Struct, frozen=True):
    """The lines of an output that are shown, and how many are not."""

    lines: tuple[str, ...]
    hidden: int
    at_start: bool
    """Whether the hidden lines stand before the shown ones."""


def preview(event: ToolFinished) -> Preview:
    lines = [line.rstrip() for line in clean(event.output).strip("\n").splitlines()]
    if event.name in _QUIET and event.ok:
        return Preview((), len(lines), False)
    if not event.ok and lines and one_line(lines[0]) == one_line(event.outcome):
        lines = lines[1:]
    if lines == ["(no output)"]:
        lines = []
    if len(lines) <= PREVIEW_LINES + 1:
        return Preview(tuple(lines), 0, False)
    at_start = event.name in _FROM_THE_END
    shown = lines[-PREVIEW_LINES:] if at_start else lines[:PREVIEW_LINES]
    return Preview(tuple(shown), len(lines) - len(shown), at_start)


def fold_note(event: ToolFinished, found: Preview) -> str:
    """How to open what is not shown; empty when all is."""
    if not found.hidden:
        return ""
    if not found.lines:
        return f"{plural(found.hidden, 'line')} · /expand {event.message}"
    return f"… {found.hidden:,} more lines · /expand {event.message}"


def write_now(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def short_outcome(outcome: str) -> str:
    """How a call ended, in the fewest words."""
    text = one_line(outcome).removeprefix("Error: ").partition(";")[0]
    return "not allowed" if " was not allowed: " in text else text
