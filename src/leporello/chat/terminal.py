"""The terminal user interface: rich for what is shown, prompt_toolkit for what is asked."""

from __future__ import annotations

import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from prompt_toolkit import PromptSession
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth
from rich.text import Text

from leporello.agent import events
from leporello.chat.renderer import BlockStream, LiveArea, Renderer, ScreenLine, joined, terminal_size
from leporello.chat.ui import fold_note, preview, short_outcome, write_now
from leporello.config import colours_wanted
from leporello.present.records import ROUTINE, compaction_line
from leporello.present.text import clean, cut, duration, one_line, short_count
from leporello.present.window import WindowPart, WindowUse, bar, headline, rows, share_of
from leporello.tools.approval import ApprovalAnswer, Decision
from leporello.tools.base import ApprovalRequest

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK = 0.1
REDRAW = 0.05
OUTPUT_LINES = 3
STOP_HINT = "Ctrl-C stops"


@dataclass(slots=True)
class _Running:
    """A call that has begun; `ended` when the next one has begun behind it."""

    event: events.ToolStarted
    began: float
    ended: float | None = None
    output: deque[str] = field(default_factory=lambda: deque(maxlen=OUTPUT_LINES))
    partial: str = ""
    waited: float = 0.0
    """Seconds a person needed to answer."""


class TerminalTurn:
    """Shows one turn. Use it as a context manager: the area is gone when it ends, whatever happened."""

    def __init__(self, area: LiveArea, renderer: Renderer, label: str = "Thinking") -> None:
        self._area = area
        self._renderer = renderer
        self._blocks = BlockStream()
        self._lock = threading.RLock()
        self._running: list[_Running] = []
        self._began = time.monotonic()
        self._step_began = self._began
        self._label = label
        self._drawn_at = 0.0
        self._asked_at: float | None = None
        self._output_tokens = 0
        self._stop = threading.Event()
        self._clock = threading.Thread(target=self._tick, name="leporello-spinner", daemon=True)

    def __enter__(self) -> TerminalTurn:
        self._clock.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._clock.join()
        with self._lock:
            self._end_text()
            self._area.clear()

    @property
    def uninterruptible(self) -> bool:
        """While a person is asked, Ctrl-C is the answer."""
        return self._asked_at is not None

    def __call__(self, event: events.AgentEvent) -> None:
        with self._lock:
            self._take(event)

    # -- events

    def _take(self, event: events.AgentEvent) -> None:
        if isinstance(event, events.TextDelta):
            self._label = "Writing"
            self._blocks.feed(event.text)
            if time.monotonic() - self._drawn_at >= REDRAW:
                self._draw()
            return
        if isinstance(event, events.ToolOutput):
            self._watch_output(event.text)
            return
        self._end_text()
        if isinstance(event, events.ToolStarted):
            self._start(event)
        elif isinstance(event, events.ToolFinished):
            self._finish(event)
        elif isinstance(event, events.Compacting):
            self._begin("Folding the conversation")
        elif isinstance(event, events.Compacted):
            self._compacted(event)
        elif isinstance(event, events.Notice):
            self._print(Text(f"{one_line(event.text)}\n", style="yellow"))
        elif isinstance(event, events.CallFinished):
            self._output_tokens += event.usage.output_tokens
            self._begin("Thinking")
        elif isinstance(event, events.TurnEnded) and event.reason == "interrupted":
            self._print(Text("Stopped. Write something else, or `go on`.\n", style="dim"))
        self._draw()

    def _begin(self, label: str) -> None:
        self._label = label
        self._step_began = time.monotonic()

    def _start(self, event: events.ToolStarted) -> None:
        now = time.monotonic()
        for running in self._running:
            running.ended = running.ended or now
        self._running.append(_Running(event, now))

    def _watch_output(self, text: str) -> None:
        if not self._running:
            return
        running = self._running[-1]
        lines = (running.partial + clean(text)).split("\n")
        running.partial = lines.pop()[-2_000:]
        running.output.extend(line for line in lines if line.strip())

    def _finish(self, event: events.ToolFinished) -> None:
        mine = next((running for running in self._running if running.event.id == event.id), None)
        if mine is not None:
            self._running.remove(mine)
        waited = mine.waited if mine else 0.0
        target = mine.event.summary.removeprefix(event.name).removeprefix(": ") if mine else ""
        self._area.print(joined(self._tool_lines(event, target, max(0.0, event.seconds - waited))))
        if not self._running:
            self._begin("Thinking")

    def _compacted(self, event: events.Compacted) -> None:
        report = event.event.report
        if report.outcome not in ROUTINE:
            style = "cyan" if report.committed else "yellow"
            said = compaction_line(report, event.event.compactions)
            self._print(Text(f"{clean(said)}\n", style=style))
        self._begin("Thinking")

    # -- drawing

    def question(self, begins: bool) -> None:
        """A person is being asked, or has answered: the area makes room, and the waiting does not count."""
        with self._lock:
            if begins:
                self._end_text()
                self._area.hide()
                self._asked_at = time.monotonic()
                return
            self._area.show()
            if self._running and self._asked_at is not None:
                self._running[-1].waited += time.monotonic() - self._asked_at
            self._asked_at = None

    def _print(self, text: Text) -> None:
        self._area.print(joined(self._renderer.paint(text)))

    def _end_text(self) -> None:
        finished = self._painted(self._blocks.end())
        if finished:
            self._area.print(finished, self._live())

    def _painted(self, blocks: list[str]) -> str:
        painted = (self._renderer.markdown(block) for block in blocks)
        return "".join(joined(lines) + "\n" for lines in painted if lines)

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        finished = self._painted(self._blocks.finished())
        if finished:
            self._area.print(finished, self._live())
        else:
            self._area.update(self._live())

    def _live(self) -> list[ScreenLine]:
        lines: list[ScreenLine] = []
        if self._blocks.rest.strip():
            _, rows = terminal_size()
            lines += self._renderer.markdown(self._blocks.preview())[-max(1, rows - 6) :]
            lines.append(ScreenLine("", 0))
        for running in self._running:
            lines += self._running_lines(running)
        if not self._running or all(running.ended for running in self._running):
            lines += self._renderer.paint(self._spinner())
        return lines

    def _spinner(self) -> Text:
        now = time.monotonic()
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{_frame(now)} {self._label} ", "cyan")
        extra = f" · {short_count(self._output_tokens)} tokens" if self._output_tokens else ""
        text.append(f"{duration(now - self._step_began)}{extra} · {STOP_HINT}", "dim")
        return text

    def _running_lines(self, running: _Running) -> list[ScreenLine]:
        now = time.monotonic()
        text = Text(no_wrap=True, overflow="ellipsis")
        name = running.event.name
        target = one_line(running.event.summary.removeprefix(name).removeprefix(": "))
        took = duration((running.ended or now) - running.began - running.waited)
        text.append("• " if running.ended else f"{_frame(now)} ", "cyan")
        text.append(name, "bold")
        text.append(f" {cut(target, max(4, self._renderer.width - len(name) - len(took) - 20))}")
        text.append(f" · {took}" + ("" if running.ended else f" · {STOP_HINT}"), "dim")
        lines = self._renderer.paint(text)
        if not running.ended:
            shown = [*running.output, running.partial] if running.partial.strip() else list(running.output)
            for line in shown[-OUTPUT_LINES:]:
                lines += self._renderer.paint(_output_line(line))
        return lines

    def _tool_lines(self, event: events.ToolFinished, target: str, seconds: float) -> list[ScreenLine]:
        found = preview(event)
        took = duration(seconds)
        outcome = short_outcome(event.outcome)
        end = f" · {took}"
        room = self._renderer.width - len(event.name) - len(end) - 4
        outcome = cut(outcome, max(12, room // 2))
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append("✓ " if event.ok else "✗ ", "green" if event.ok else "red")
        text.append(event.name, "bold")
        text.append(f" {cut(one_line(target), max(4, room - len(outcome) - 4))}")
        if outcome:
            text.append(f" · {outcome}", "dim" if event.ok else "red")
        text.append(end, "dim")
        note = fold_note(event, found)
        if note and not found.lines:
            text.append(f" · {note}", "dim")
        lines = self._renderer.paint(text)
        if found.lines:
            body = [_output_line(line) for line in found.lines]
            if note:
                body.insert(0 if found.at_start else len(body), _output_line(note))
            for line in body:
                lines += self._renderer.paint(line)
        return [*lines, ScreenLine("", 0)]

    def _tick(self) -> None:
        while not self._stop.wait(TICK):
            with self._lock:
                self._draw()


def _frame(now: float) -> str:
    return FRAMES[int(now / TICK) % len(FRAMES)]


def _output_line(line: str) -> Text:
    return Text(f"  │ {line.expandtabs(4)}", style="dim", no_wrap=True, overflow="ellipsis")


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


DETAIL_LINES = 24  # lines of a command or diff that are shown before the question; `v` shows the rest
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
LETTERS = dict(zip(WindowPart, "SUORPYMAKET.", strict=True))  # without colours a bar is told apart by letters


class TerminalUi:
    """A terminal with colours, a live area and single-key questions."""

    def __init__(self) -> None:
        self._renderer = Renderer()
        self._area = LiveArea(write_now, terminal_size)
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
        for told in use.outlook:
            self._show(Text(told, style="dim"))
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
