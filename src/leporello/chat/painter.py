"""`Painter`: rich renderables as the lines a terminal gets, at the width it has now."""

from __future__ import annotations

import io
import os
import shutil
import sys

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console, RenderableType
from rich.segment import Segment

from leporello.chat.clean import clean
from leporello.chat.live import Line
from leporello.chat.markdown import ChatMarkdown
from leporello.config import colours_wanted

LEAST_COLUMNS = 20
MOST_COLUMNS = 110
"""Prose wider than this is hard to read."""


def terminal_size() -> tuple[int, int]:
    """Columns and rows now."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        size = shutil.get_terminal_size((80, 24))
    return max(1, size.columns), max(1, size.lines)


class Painter:
    """Renders without printing."""

    def __init__(self) -> None:
        self.colours = colours_wanted()
        self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False)
        self._system = COLOR_SYSTEMS.get(self._console.color_system or "standard", ColorSystem.STANDARD)

    @property
    def width(self) -> int:
        """Columns that are painted on."""
        # The last column stays free: a full line makes some terminals begin another one.
        return max(LEAST_COLUMNS, min(MOST_COLUMNS, terminal_size()[0] - 1))

    def paint(self, renderable: RenderableType) -> list[Line]:
        """The lines with their control codes; blanks at line ends are left out."""
        width = self.width
        options = self._console.options.update(width=width, max_width=width, height=None)
        rows = self._console.render_lines(renderable, options, pad=False)
        return [self._line(row) for row in rows]

    def markdown(self, source: str) -> list[Line]:
        """One block of an answer, without blank lines around it."""
        lines = self.paint(ChatMarkdown(clean(source)))
        while lines and not lines[0].cells:
            lines.pop(0)
        while lines and not lines[-1].cells:
            lines.pop()
        return lines

    def _line(self, row: list[Segment]) -> Line:
        segments = [segment for segment in row if not segment.control]
        while segments and not segments[-1].text.strip():
            segments.pop()
        if segments:
            last = segments[-1]
            segments[-1] = Segment(last.text.rstrip(), last.style)
        cells = sum(segment.cell_length for segment in segments)
        kept = segments if self.colours else list(Segment.remove_color(segments))
        drawn = (s.style.render(s.text, color_system=self._system) if s.style else s.text for s in kept)
        return Line("".join(drawn), cells)


def joined(lines: list[Line]) -> str:
    """Lines as one text, each ended."""
    return "".join(f"{line.text}\n" for line in lines)
