"""The terminal user interface: rich for what is shown, prompt_toolkit for what is asked."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from rich.text import Text

from leporello.agent.commands_context import WindowPart, WindowUse, bar, headline, rows
from leporello.chat.blocks import BlockStream
from leporello.chat.clean import clean, one_line
from leporello.chat.live import LiveArea
from leporello.chat.painter import Painter, joined, terminal_size
from leporello.chat.question import ask_key, ask_line
from leporello.chat.turn_view import TerminalTurn
from leporello.tools.approval import ApprovalAnswer, Decision
from leporello.tools.base import ApprovalRequest

DETAIL_LINES = 24
"""Lines of a command or diff that are shown before the question; `v` shows the rest."""
COLOURS = {
    WindowPart.SYSTEM: "magenta",
    WindowPart.TOOLS: "blue",
    WindowPart.OVERHEAD: "red",
    WindowPart.RULES: "yellow",
    WindowPart.PINS: "bright_yellow",
    WindowPart.SUMMARY: "cyan",
    WindowPart.USER: "bright_green",
    WindowPart.ANSWERS: "green",
    WindowPart.CALLS: "bright_blue",
    WindowPart.RESULTS: "bright_magenta",
    WindowPart.TAIL: "white",
    WindowPart.FREE: "bright_black",
}
LETTERS = dict(zip(WindowPart, "SUORPYMAKET.", strict=True))
"""Without colours a bar is told apart by letters."""


class TerminalFace:
    """A terminal with colours, a live area and single-key questions."""

    def __init__(self) -> None:
        self._painter = Painter()
        self._area = LiveArea(_write, terminal_size)
        self._turn: TerminalTurn | None = None

    @property
    def width(self) -> int:
        """Columns that are painted on."""
        return self._painter.width

    def say(self, text: str) -> None:
        """The answer of a command, as it is."""
        self._show(Text(f"\n{clean(text)}\n"))

    def note(self, text: str) -> None:
        """Dim."""
        self._show(Text(clean(text), style="dim"))

    def warn(self, text: str) -> None:
        """Yellow."""
        self._show(Text(clean(text), style="yellow"))

    def error(self, text: str) -> None:
        """Red, with room around it."""
        self._show(Text(f"\n{clean(text)}\n", style="red"))

    def answer(self, text: str) -> None:
        """Markdown, block by block."""
        blocks = BlockStream()
        blocks.feed(text)
        for block in blocks.end():
            self._area.print(joined(self._painter.markdown(block)) + "\n")

    def window(self, use: WindowUse) -> None:
        """One bar for the whole window, then a line for each part."""
        width = self._painter.width
        self._show(Text(f"\n{headline(use)}", style="bold"))
        drawn = Text()
        for part, cells in bar(use, min(width, 76)):
            letter = "░" if part is WindowPart.FREE else "█"
            drawn.append((letter if self._painter.colours else LETTERS[part]) * cells, COLOURS[part])
        self._show(drawn)
        table = rows(use)
        names = max((len(part.value) for part, _, _ in table), default=0)
        for part, tokens, remark in table:
            line = Text(no_wrap=True, overflow="ellipsis")
            mark = ("░" if part is WindowPart.FREE else "█") if self._painter.colours else LETTERS[part]
            line.append(f"{mark} ", COLOURS[part])
            line.append(f"{part.value:{names}} {tokens:>9,} {tokens / max(1, use.window):>4.0%}")
            line.append(f"  {remark}" if remark else "", "dim")
            self._show(line)
        self._show(Text(""))

    @contextmanager
    def turn(self) -> Iterator[TerminalTurn]:
        """The view of one turn; keys typed meanwhile are not echoed and wait for the next prompt."""
        view = TerminalTurn(self._area, self._painter)
        self._turn = view
        self._area.print("\n")
        try:
            with _no_echo(), view:
                yield view
        finally:
            self._turn = None

    @contextmanager
    def working(self, label: str) -> Iterator[None]:
        """A spinner with the time it takes."""
        view = TerminalTurn(self._area, self._painter, label)
        with _no_echo(), view:
            yield

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """One key decides. What was typed before the question was seen does not count."""
        if self._turn is not None:
            self._turn.question(True)
        try:
            return self._asked(request)
        finally:
            if self._turn is not None:
                self._turn.question(False)

    def _asked(self, request: ApprovalRequest) -> ApprovalAnswer:
        detail = clean(request.detail()).rstrip().splitlines()
        first = one_line(request.title)
        self._show(Text(f"? {first}", style="bold yellow"))
        if not (len(detail) == 1 and detail[0].strip() in first):
            self._detail(detail[:DETAIL_LINES])
        hidden = len(detail) - DETAIL_LINES
        if hidden > 0:
            self._show(Text(f"  … {hidden:,} more lines: v shows them", style="dim"))
        while True:
            key = ask_key(hidden > 0)
            if key == "v":
                self._detail(detail[DETAIL_LINES:])
                hidden = 0
            elif key == "e":
                return ApprovalAnswer(Decision.NO, ask_line("Tell it why: "))
            else:
                return ApprovalAnswer({"y": Decision.YES, "a": Decision.ALWAYS}.get(key, Decision.NO))

    def _detail(self, lines: list[str]) -> None:
        for line in lines:
            style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            self._show(Text(f"  {line.expandtabs(4)}", style=style))

    def _show(self, text: Text) -> None:
        self._area.print(joined(self._painter.paint(text)))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def _no_echo() -> Iterator[None]:
    """Keys pressed meanwhile wait unseen; Ctrl-C still interrupts, and does not throw them away."""
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (termios.error, ValueError, OSError):
        yield
        return
    quiet = termios.tcgetattr(descriptor)
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    quiet[3] |= termios.NOFLSH
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
