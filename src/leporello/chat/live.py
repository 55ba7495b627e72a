"""The live area: the last lines of the screen, redrawn in place while something is going on.

What is finished is printed above it and never touched again, so it scrolls and copies like any other text. Only lines
that changed are written, in one go, so nothing flickers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

BEGIN_FRAME = "\x1b[?2026h"
END_FRAME = "\x1b[?2026l"
ERASE_BELOW = "\x1b[J"
ERASE_LINE = "\x1b[K"


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it is written, and how many columns it takes."""

    text: str
    cells: int


class LiveArea:
    """Owns the end of the screen while it is open. Threads may share it."""

    def __init__(self, write: Callable[[str], None], size: Callable[[], tuple[int, int]]) -> None:
        self._write = write
        self._size = size
        self._lock = threading.RLock()
        self._lines: list[Line] = []
        self._hidden = 0

    def update(self, lines: Sequence[Line]) -> None:
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

    def print(self, text: str, then: Sequence[Line] | None = None) -> None:
        """Print lines for good, above the area, which shows `then` in the same frame: nothing ever stands twice."""
        with self._lock:
            lines = self._lines if then is None or self._hidden else self._clipped(then)
            drawn = "\n".join(line.text + ERASE_LINE for line in lines)
            ended = text if text.endswith("\n") or not text else text + "\n"
            self._frame(self._back_to(0) + ended + drawn)
            self._lines = lines

    def clear(self) -> None:
        """Take the area away."""
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
        """Updates are drawn again."""
        with self._lock:
            self._hidden -= 1

    def _clipped(self, lines: Sequence[Line]) -> list[Line]:
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
