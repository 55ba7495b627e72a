"""The terminal user interface: rich for what is shown, prompt_toolkit for what is asked."""

from __future__ import annotations

import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prompt_toolkit import PromptSession
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth
from rich.text import Text

from leporello.chat.renderer import BlockStream, LiveArea, Renderer, joined, terminal_size
from leporello.chat.turn_view import TerminalTurn
from leporello.config import colours_wanted
from leporello.present.text import clean, one_line
from leporello.present.window import WindowPart, WindowUse, bar, headline, rows, share_of
from leporello.tools.approval import ApprovalAnswer, Decision
from leporello.tools.base import ApprovalRequest

KEYS = {"y": "yes", "n": "no", "a": "always", "e": "no, and say why"}


def ask_key(more: bool = False) -> str:
    """`y`, `n`, `a`, `e` or (when there is more to see) `v`. Enter and Escape are no; Ctrl-C interrupts."""
    bindings = KeyBindings()
    allowed = [*KEYS, *(["v"] if more else [])]

    for key in allowed:
        for typed in (key, key.upper()):
            bindings.add(typed, eager=True)(_exit_with(key))
    for refusal in ("enter", "escape"):
        bindings.add(refusal, eager=True)(_exit_with("n"))

    @bindings.add("<any>")
    def _ignore(_: KeyPressEvent) -> None:
        """Any other key is no answer."""

    shown = "  ".join(f"{key} {meaning}" for key, meaning in KEYS.items())
    session: PromptSession[str] = PromptSession(key_bindings=bindings, color_depth=depth(), erase_when_done=True)
    forget_typed(session.app.input)
    return session.prompt(f"  {shown}{'  v see all' if more else ''}  ")


def ask_line(message: str) -> str:
    """A line of text; empty when the person has nothing to say."""
    session: PromptSession[str] = PromptSession(color_depth=depth())
    try:
        return session.prompt(message)
    except EOFError:
        return ""


def depth() -> ColorDepth | None:
    """No colours when the user wants none; otherwise what the terminal can do."""
    return None if colours_wanted() else ColorDepth.DEPTH_1_BIT


def forget_typed(source: Input) -> None:
    """Throw away keys pressed before the question was on the screen: they can't be meant for it.

    Some may have been read together with the line before and wait for the next prompt.
    """
    clear_typeahead(source)
    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (termios.error, ValueError, OSError):
        return


def _exit_with(key: str) -> Callable[[KeyPressEvent], None]:
    def answer(event: KeyPressEvent) -> None:
        event.app.exit(result=key)

    return answer


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


class TerminalUi:
    """A terminal with colours, a live area and single-key questions."""

    def __init__(self) -> None:
        self._renderer = Renderer()
        self._area = LiveArea(_write, terminal_size)
        self._turn: TerminalTurn | None = None

    @property
    def width(self) -> int:
        return self._renderer.width

    def say(self, text: str) -> None:
        self._show(Text(f"\n{clean(text)}\n"))

    def note(self, text: str) -> None:
        self._show(Text(clean(text), style="dim"))

    def warn(self, text: str) -> None:
        self._show(Text(clean(text), style="yellow"))

    def error(self, text: str) -> None:
        self._show(Text(f"\n{clean(text)}\n", style="red"))

    def answer(self, text: str) -> None:
        blocks = BlockStream()
        blocks.feed(text)
        for block in blocks.end():
            self._area.print(joined(self._renderer.markdown(block)) + "\n")

    def window(self, use: WindowUse) -> None:
        """One bar for the whole window, then a line for each part."""
        width = self._renderer.width
        self._show(Text(f"\n{headline(use)}", style="bold"))
        drawn = Text()
        for part, cells in bar(use, min(width, 76)):
            block = "░" if part is WindowPart.FREE else "█"
            drawn.append((block if self._renderer.colours else LETTERS[part]) * cells, COLOURS[part])
        self._show(drawn)
        table = rows(use)
        names = max((len(part.value) for part, _, _ in table), default=0)
        for part, tokens, remark in table:
            line = Text(no_wrap=True, overflow="ellipsis")
            mark = ("░" if part is WindowPart.FREE else "█") if self._renderer.colours else LETTERS[part]
            line.append(f"{mark} ", COLOURS[part])
            line.append(f"{part.value:{names}} {tokens:>9,} {share_of(use, tokens)}")
            line.append(f"  {remark}" if remark else "", "dim")
            self._show(line)
        self._show(Text(""))

    @contextmanager
    def turn(self) -> Iterator[TerminalTurn]:
        """The view of one turn; keys typed meanwhile are not echoed and wait for the next prompt."""
        view = TerminalTurn(self._area, self._renderer)
        self._turn = view
        self._area.print("\n")
        try:
            with _no_echo(), view:
                yield view
        finally:
            self._turn = None

    @contextmanager
    def working(self, label: str) -> Iterator[None]:
        view = TerminalTurn(self._area, self._renderer, label)
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
        self._area.print(joined(self._renderer.paint(text)))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def _no_echo() -> Iterator[None]:
    """Keys pressed meanwhile are not echoed and stay in the queue; Ctrl-C still interrupts and keeps them."""
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
