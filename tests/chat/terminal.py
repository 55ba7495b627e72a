"""A real terminal for the real program: a pseudo-terminal whose screen is kept by an emulator.

Waiting is always for text on the screen, never for time to pass.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pyte

PROGRAM = "import sys; from leporello.cli import main; sys.exit(main())"
PATIENCE = 60.0
"""Far more than anything needs; only a failing test waits so long."""
KEY = "test-key-that-must-not-be-shown"
PROMPT = "›"


def environment(home: Path, **more: str) -> dict[str, str]:
    """What the program gets to see: nothing of the person who runs the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "LEPORELLO_HOME": str(home),
        "HOME": str(home),
        "PYTHONWARNINGS": "default",
        **more,
    }


class Terminal:
    """The program on a screen of its own."""

    def __init__(
        self, arguments: list[str], *, env: dict[str, str], cwd: Path, columns: int = 100, rows: int = 40
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=20_000, ratio=0.5)
        self.stream = pyte.Stream(self.screen)
        self._text: str | None = None
        self.raw = ""
        """Everything the program wrote, control codes included."""
        self.child = pexpect.spawn(
            sys.executable,
            ["-c", PROGRAM, *arguments],
            env=env,
            cwd=str(cwd),
            dimensions=(rows, columns),
            encoding="utf-8",
            codec_errors="replace",
            timeout=PATIENCE,
        )
        self.child.delaybeforesend = None
        self.screen.write_process_input = self.child.send

    # -- seeing

    def read(self, seconds: float = 0.05) -> bool:
        """Take in what the program has written; False when it has ended."""
        try:
            text = self.child.read_nonblocking(65_536, seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += text
        self.stream.feed(text)
        self._text = None
        return True

    @property
    def display(self) -> str:
        """What stands on the screen now."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    @property
    def text(self) -> str:
        """The screen and everything that scrolled off it."""
        if self._text is None:
            old = [_drawn(line, self.screen.columns) for line in self.screen.history.top]
            self._text = "\n".join([*old, self.display])
        return self._text

    def wait(self, *wanted: str) -> None:
        """Wait until all texts have been shown."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            alive = self.read()
            if all(text in self.text for text in wanted):
                return
            if not alive:
                break
        raise AssertionError(f"never seen: {[t for t in wanted if t not in self.text]}\n--- screen\n{self.text}")

    def wait_count(self, wanted: str, count: int) -> None:
        """Wait until a text was shown so often."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            alive = self.read()
            if self.text.count(wanted) >= count:
                return
            if not alive:
                break
        raise AssertionError(f"{wanted!r} was not shown {count} times\n--- screen\n{self.text}")

    def wait_prompt(self) -> None:
        """Wait until the prompt stands at the end, empty, with the status line below it."""
        self._wait_lines(
            lambda lines: len(lines) >= 2 and lines[-2] == PROMPT and "opening" not in lines[-1], "the prompt"
        )

    def wait_question(self, title: str) -> None:
        """Wait until a question with this title waits for a key, whether this machine confines commands or not."""

        def asks(lines: list[str]) -> bool:
            asked = (line.replace(" (not confined)", "") for line in lines[:-1])
            return "y yes" in lines[-1] and any(title in line for line in asked)

        self._wait_lines(asks, title)

    def _wait_lines(self, seen: Callable[[list[str]], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            alive = self.read()
            lines = [line.strip() for line in self.display.splitlines() if line.strip()]
            if lines and seen(lines):
                return
            if not alive:
                break
        raise AssertionError(f"never seen: {what}\n--- screen\n{self.text}")

    # -- doing

    def say(self, text: str) -> None:
        """Type a line and send it, once the prompt is there."""
        self.wait_prompt()
        self.child.send(text)
        self.wait(text.splitlines()[-1][-40:])
        self.child.send("\r")

    def key(self, keys: str) -> None:
        """Press keys."""
        self.child.send(keys)

    def paste(self, text: str) -> None:
        """Paste, as terminals do."""
        self.child.send(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        self.read()
        self.screen.resize(rows, columns)
        self._text = None
        self.child.setwinsize(rows, columns)

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.child.send("\x03")

    def kill(self) -> None:
        """`kill -9`."""
        self.child.kill(signal.SIGKILL)
        while self.read():
            pass
        self.child.wait()

    def leave(self) -> int:
        """`/quit`, and the exit code."""
        self.say("/quit")
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; the exit code."""
        end = time.monotonic() + PATIENCE
        while self.read(0.2):
            assert time.monotonic() < end, f"it did not end\n--- screen\n{self.text}"
        self.child.wait()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -1)

    def close(self) -> None:
        """End the program, whatever it does."""
        # On a busy machine a killed child takes its time to end: it is waited for, without a limit of our own.
        if self.child.isalive():
            self.child.kill(signal.SIGKILL)
            self.child.wait()
        self.child.close()


def _drawn(line: dict[int, pyte.screens.Char], columns: int) -> str:
    return "".join(line[column].data for column in range(columns)).rstrip()
