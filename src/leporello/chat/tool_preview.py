"""Which lines of a tool's output a chat shows. Used by both user interfaces: it needs no extra package."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.agent.events import ToolFinished
from leporello.present.numbers import plural
from leporello.present.text import clean, one_line

PREVIEW_LINES = 4
_QUIET = ("read_file", "todo", "memory", "lcm_grep", "lcm_describe", "lcm_expand")
"""Their output is for the model; the line says enough."""
_FROM_THE_END = ("terminal", "jobs")
"""What a command says last tells most."""


@dataclass(frozen=True, slots=True)
class Preview:
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


def short_outcome(outcome: str) -> str:
    """How a call ended, in the fewest words."""
    text = one_line(outcome).removeprefix("Error: ").partition(";")[0]
    return "not allowed" if " was not allowed: " in text else text
