"""The plain user interface: no control codes, no redrawing. For pipes, scripts, screen readers and dumb terminals.

Answers go to stdout as they stream, raw Markdown and nothing else; all remarks go to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from leporello.agent import events
from leporello.chat.ui import preview, short_outcome, write_now
from leporello.present.records import ROUTINE, compaction_line
from leporello.present.text import clean, duration, one_line
from leporello.present.window import WindowUse, draw
from leporello.tools.approval import ApprovalAnswer, Decision
from leporello.tools.base import ApprovalRequest

WIDTH = 76
_ANSWERS = {"y": Decision.YES, "yes": Decision.YES, "a": Decision.ALWAYS, "always": Decision.ALWAYS}


class PlainTurn:
    def __init__(self) -> None:
        self._targets: dict[str, str] = {}
        self._open_line = False
        self.uninterruptible = False

    def __call__(self, event: events.AgentEvent) -> None:
        if isinstance(event, events.TextDelta):
            text = clean(event.text)
            write_now(text)
            self._open_line = not text.endswith("\n")
            return
        self.end_line()
        if isinstance(event, events.ToolStarted):
            self._targets[event.id] = one_line(event.summary)
        elif isinstance(event, events.ToolFinished):
            ending = [short_outcome(event.outcome) or ("ok" if event.ok else "failed"), duration(event.seconds)]
            if preview(event).hidden:
                ending.append(f"/expand {event.message}")
            _err(f"[{self._targets.pop(event.id, event.name)}: {', '.join(ending)}]")
        elif isinstance(event, events.Compacted) and event.event.report.outcome not in ROUTINE:
            _err(compaction_line(event.event.report, event.event.compactions))
        elif isinstance(event, events.Notice):
            _err(event.text)
        elif isinstance(event, events.TurnEnded) and event.reason == "interrupted":
            _err("Stopped.")

    def end_line(self) -> None:
        if self._open_line:
            write_now("\n")
            self._open_line = False


class PlainUi:
    """Everything as lines. `interactive` says whether a person can be asked."""

    def __init__(self, interactive: bool) -> None:
        self._interactive = interactive
        self._turn: PlainTurn | None = None
        self.width = WIDTH

    def say(self, text: str) -> None:
        """To stdout: it is what was asked for."""
        write_now(clean(text) + "\n")

    def note(self, text: str) -> None:
        """To stderr: everything else, an earlier answer too, which is not new."""
        _err(text)

    warn = error = answer = note

    def window(self, use: WindowUse) -> None:
        self.say(draw(use, WIDTH))

    @contextmanager
    def turn(self) -> Iterator[PlainTurn]:
        self._turn = PlainTurn()
        try:
            yield self._turn
        finally:
            self._turn.end_line()
            self._turn = None

    @contextmanager
    def working(self, label: str) -> Iterator[None]:
        _err(f"{label} ...")
        yield

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """One line is read; with nobody there it is a refusal."""
        if not self._interactive:
            raise EOFError
        if self._turn is not None:
            self._turn.end_line()
            self._turn.uninterruptible = True
        try:
            _err(f"{request.title}\n{request.detail()}\nAllow? y(es), n(o), a(lways): ", end="")
            reply = sys.stdin.readline()
            if not reply:
                raise EOFError
            return ApprovalAnswer(_ANSWERS.get(reply.strip().lower(), Decision.NO))
        finally:
            if self._turn is not None:
                self._turn.uninterruptible = False


def _err(text: str, end: str = "\n") -> None:
    sys.stderr.write(clean(text) + end)
    sys.stderr.flush()
