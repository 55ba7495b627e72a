"""Markdown as lines of a terminal: finished blocks of a stream, rich renderables at its width, and the live area."""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax

from leporello.config import colours_wanted
from leporello.present.text import clean

LIVE_LINES = 40
"""Source lines of an unfinished block that are looked at while it grows; the whole is printed when it ends."""

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")
"""Markdown as models write it. Raw HTML is text: it must be seen, not interpreted."""


class BlockStream:
    """Takes text in pieces and gives it back in whole top-level blocks."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str) -> None:
        self._rest += piece

    @property
    def rest(self) -> str:
        """The block that may still grow."""
        return self._rest

    def finished(self) -> list[str]:
        """Blocks that nothing can change any more; each is given once."""
        starts = block_starts(self._rest)
        if len(starts) < 2:
            return []
        lines = _lines(self._rest)
        blocks = ["".join(lines[a:b]) for a, b in pairwise([0, *starts[1:]])]
        self._rest = "".join(lines[starts[-1] :])
        return blocks

    def end(self) -> list[str]:
        blocks = self.finished()
        rest, self._rest = self._rest, ""
        return [*blocks, rest] if rest.strip() else blocks

    def preview(self) -> str:
        """The unfinished block, or its last lines when it is long."""
        lines = _lines(self._rest)
        if len(lines) <= LIVE_LINES:
            return self._rest
        tail = "".join(lines[-LIVE_LINES:])
        return f"{lines[0]}{tail}" if lines[0].lstrip().startswith(("```", "~~~")) else tail


def block_starts(text: str) -> list[int]:
    return [token.map[0] for token in _PARSER.parse(text) if token.level == 0 and token.nesting >= 0 and token.map]


def _lines(text: str) -> list[str]:
    """Lines with their ends, counted as the parser does: a line feed ends a line and nothing else."""
    pieces = text.split("\n")
    return [*(f"{piece}\n" for piece in pieces[:-1]), *pieces[-1:]]


CODE_THEME = "ansi_dark"


class _LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text
        text.justify = "left"
        text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield text


class _BareCode(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        syntax = Syntax(code, self.lexer_name, theme=CODE_THEME, word_wrap=True, background_color="default")
        yield Padding(syntax, (0, 0, 0, 2))


class ChatMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _BareCode,
        "code_block": _BareCode,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = _PARSER.parse(text)


BEGIN_FRAME = "\x1b[?2026h"
END_FRAME = "\x1b[?2026l"
ERASE_BELOW = "\x1b[J"
ERASE_LINE = "\x1b[K"


@dataclass(frozen=True, slots=True)
class ScreenLine:
    """A line as it is written, and how many columns it takes."""

    text: str
    cells: int


class LiveArea:
    """Owns the end of the screen while it is open. Threads may share it."""

    def __init__(self, write: Callable[[str], None], size: Callable[[], tuple[int, int]]) -> None:
        self._write = write
        self._size = size
        self._lock = threading.RLock()
        self._lines: list[ScreenLine] = []
        self._hidden = 0

    def update(self, lines: Sequence[ScreenLine]) -> None:
        """Show these lines; when there are more than the screen has rows, the last ones."""
        with self._lock:
            if self._hidden:
                return
            shown = self._clipped(lines)
            same = 0
            while same < min(len(shown), len(self._lines)) and shown[same] == self._lines[same]:
                same += 1
            if same == len(shown) == len(self._lines):
                return
            if same and same == len(shown):
                # Fewer lines than before: the cursor has to end behind the last one.
                same -= 1
            self._frame(self._back_to(same) + "\n".join(line.text + ERASE_LINE for line in shown[same:]))
            self._lines = shown

    def print(self, text: str, then: Sequence[ScreenLine] | None = None) -> None:
        """Print lines for good, above the area, which shows `then` in the same frame: nothing is shown twice."""
        with self._lock:
            lines = self._lines if then is None or self._hidden else self._clipped(then)
            drawn = "\n".join(line.text + ERASE_LINE for line in lines)
            ended = text if text.endswith("\n") or not text else text + "\n"
            self._frame(self._back_to(0) + ended + drawn)
            self._lines = lines

    def clear(self) -> None:
        with self._lock:
            if self._lines:
                self._frame(self._back_to(0))
                self._lines = []

    def hide(self) -> None:
        """Clear and stay away, so that something else can use the screen; `show` ends it."""
        with self._lock:
            self.clear()
            self._hidden += 1

    def show(self) -> None:
        with self._lock:
            self._hidden -= 1

    def _clipped(self, lines: Sequence[ScreenLine]) -> list[ScreenLine]:
        _, rows = self._size()
        return list(lines[-max(1, rows - 1) :])

    def _back_to(self, index: int) -> str:
        """From the end of the last line to the beginning of line `index`, and everything from there on erased."""
        if not self._lines:
            return ""
        if index >= len(self._lines):
            return "\n"
        columns, _ = self._size()
        # A terminal that became narrower has broken the lines: they take more rows now than when they were drawn.
        rows = sum(max(1, -(-line.cells // max(1, columns))) for line in self._lines[index:])
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return f"\r{up}{ERASE_BELOW}"

    def _frame(self, text: str) -> None:
        self._write(f"{BEGIN_FRAME}{text}{END_FRAME}")


LEAST_COLUMNS = 20
MOST_COLUMNS = 110  # prose wider than this is hard to read


def terminal_size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        size = shutil.get_terminal_size((80, 24))
    return max(1, size.columns), max(1, size.lines)


class Renderer:
    def __init__(self) -> None:
        self.colours = colours_wanted()
        self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False)
        self._system = COLOR_SYSTEMS.get(self._console.color_system or "standard", ColorSystem.STANDARD)

    @property
    def width(self) -> int:
        # The last column stays free: a full line makes some terminals begin another one.
        return max(LEAST_COLUMNS, min(MOST_COLUMNS, terminal_size()[0] - 1))

    def paint(self, renderable: RenderableType) -> list[ScreenLine]:
        """The lines with their control codes; blanks at line ends are left out."""
        width = self.width
        options = self._console.options.update(width=width, max_width=width, height=None)
        rows = self._console.render_lines(renderable, options, pad=False)
        return [self._line(row) for row in rows]

    def markdown(self, source: str) -> list[ScreenLine]:
        """One block of an answer, without blank lines around it."""
        lines = self.paint(ChatMarkdown(clean(source)))
        filled = [index for index, line in enumerate(lines) if line.cells]
        return lines[filled[0] : filled[-1] + 1] if filled else []

    def _line(self, row: list[Segment]) -> ScreenLine:
        segments = [segment for segment in row if not segment.control]
        while segments and not segments[-1].text.strip():
            segments.pop()
        if segments:
            last = segments[-1]
            segments[-1] = Segment(last.text.rstrip(), last.style)
        cells = sum(segment.cell_length for segment in segments)
        kept = segments if self.colours else list(Segment.remove_color(segments))
        drawn = (s.style.render(s.text, color_system=self._system) if s.style else s.text for s in kept)
        return ScreenLine("".join(drawn), cells)


def joined(lines: list[ScreenLine]) -> str:
    return "".join(f"{line.text}\n" for line in lines)
