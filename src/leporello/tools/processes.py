"""Runs one shell command: streams its output, complete on disk, keeps its time, and leaves no process behind."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from msgspec import Struct

from leporello.cancel import CancelToken
from leporello.tools.base import SavedOutput
from leporello.tools.budget import adopt_output, save_output
from leporello.tools.confine import CAREFUL, Confinement, bash, set_aside
from leporello.tools.sandbox import binary_kind

VARIABLE = "LEPORELLO_COMMAND"  # every process of a command inherits it, also one that made a session of its own
# Reads a line; at the end of input instead, nobody is left to stop the group, so it does. Some shells don't know
# `kill -TERM -- -1`.
_WATCH = r"""
read -r word && exit 0
kill -s TERM -- "-$1"; sleep 2; kill -s KILL -- "-$1"
for file in $(grep -lsa -- "$2" /proc/[0-9]*/environ); do
  number=${file#/proc/}; kill -KILL "${number%/environ}"
done
"""


class Guard:
    """Ends a group when this program dies without having done so; `release` calls it off."""

    def __init__(self, group: int, mark: str) -> None:
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "guard", str(group), f"{VARIABLE}={mark}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            start_new_session=True,
        )

    def release(self) -> None:
        if self._watcher.returncode is None:
            self._watcher.communicate(b"done\n")


def stop_marked(mark: str) -> bool:
    """End every process that a command with this mark has left in groups of their own; whether there was any."""
    wanted = f"{VARIABLE}={mark}".encode()
    found = False
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in entry.read_bytes():
                os.kill(int(entry.parent.name), signal.SIGKILL)
                found = True
    return found


IN_MEMORY = 1_048_576  # bytes kept in memory before an output goes to a file; above every threshold of the budget
EDGE = 65_536  # bytes of the beginning and of the end that stay in memory after that
TERM_SECONDS = 2.0  # how long processes may take to end after a polite signal, before the other one
_TICK = 0.1
_IDLE_AFTER_EXIT = 0.3
_LONGEST_AFTER_EXIT = 2.0
_CHUNK = 65_536
_REAPER = str(Path(__file__).with_name("reaper.py"))
# Colours, pagers and password prompts are of no use to a model, and the last two would hang.
_QUIET = ("TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0")


class Captured(Struct, frozen=True):
    size: int
    head: bytes
    tail: bytes
    """Empty when `head` is everything."""
    saved: SavedOutput | None = None
    trouble: str = ""
    """Why the whole output could not be kept, if so."""

    @property
    def whole(self) -> bool:
        """Whether `head` is the complete output."""
        return len(self.head) == self.size

    @property
    def tail_text(self) -> str:
        return (self.tail or self.head)[-EDGE:].decode("utf-8", "replace")

    @property
    def kind(self) -> str:
        """What it is when it is no text; empty for text."""
        return binary_kind(self.head)


class Capture:
    """Takes an output as it comes: in memory while it is small, then in a file, with both edges at hand."""

    def __init__(self, folder: Path, call_id: str, in_memory: int = IN_MEMORY) -> None:
        self._folder = folder
        self._call_id = call_id
        self._in_memory = in_memory
        self._head = bytearray()  # all of it until it is too large, then its beginning
        self._tail = bytearray()
        self._spilled = False
        self._spool: BinaryIO | None = None
        self._spool_path = folder / f".spool-{secrets.token_hex(8)}"
        self._digest = hashlib.blake2b(digest_size=16)
        self._lines = 0
        self._size = 0
        self._trouble = ""

    def write(self, data: bytes) -> None:
        """Take the next bytes; trouble with the disk is remembered, not raised, so that the process can go on."""
        self._size += len(data)
        self._lines += data.count(b"\n")
        self._digest.update(data)
        if self._spilled:
            self._spill(data, data)
            return
        self._head += data
        if self._size > self._in_memory:
            everything = bytes(self._head)
            del self._head[EDGE:]
            self._spilled = True
            self._open_spool()
            self._spill(everything, everything[EDGE:])

    def finish(self, *, save: bool = False) -> Captured:
        """Close the capture. `save` keeps a file even of an output that fits in memory."""
        head = bytes(self._head)
        saved = None
        try:
            if self._spool is not None:
                self._spool.flush()
                os.fsync(self._spool.fileno())
                self._spool.close()
                digest = self._digest.hexdigest()
                saved = adopt_output(self._folder, self._call_id, self._spool_path, digest, self._lines)
            elif head and not self._spilled and (save or binary_kind(head) or not _is_utf8(head)):
                saved = save_output(self._folder, self._call_id, head)
        except OSError as error:
            self._give_up(error)
        # Only the last EDGE bytes of the tail are sure to be without a gap.
        return Captured(self._size, head, bytes(self._tail[-EDGE:]), saved, self._trouble)

    def _open_spool(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._spool = open(self._spool_path, "xb", opener=partial(os.open, mode=0o600))  # noqa: SIM115 - `finish` closes it
        except OSError as error:
            self._trouble = str(error)

    def _spill(self, data: bytes, tail: bytes) -> None:
        self._tail += tail[-EDGE:]
        if len(self._tail) > 2 * EDGE:
            del self._tail[:-EDGE]
        if self._spool is not None:
            try:
                self._spool.write(data)
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """The disk is full or gone: part of an output under the name of a whole one would be a lie, so it goes."""
        self._trouble = str(error)
        spool, self._spool = self._spool, None
        with contextlib.suppress(OSError):
            if spool is not None:
                spool.close()
        with contextlib.suppress(OSError):
            self._spool_path.unlink()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class Stop(StrEnum):
    NOT = ""
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    TOO_MUCH = "too much output"


class Ended(Struct, frozen=True):
    code: int
    """Exit code; negative for a signal."""
    stop: Stop = Stop.NOT
    stopped_others: bool = False
    """Processes it had left running were stopped too."""
    set_aside: tuple[Path, ...] = ()
    """Files it made that other programs would have obeyed."""


class ShellCommand(Struct, frozen=True):
    line: str
    folder: Path
    env: Mapping[str, str] | None = None
    seconds: float = 120.0
    most_bytes: int = 1 << 30
    confinement: Confinement | None = None

    @property
    def confined(self) -> bool:
        return self.confinement is not None and not self.confinement.why_not


class RunningCommand:
    """A command that was started in a process group of its own, and the guard that ends it if this program can't."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str, absent: Sequence[Path] = ()) -> None:
        self.process = process
        self._absent = absent
        self.set_aside: tuple[Path, ...] = ()
        self._mark = mark
        self._guard = Guard(process.pid, mark)

    def stop(self) -> bool:
        """End everything that is left of it, politely first; whether anything was."""
        in_group = stop_group(self.process.pid)
        return self.finish() or in_group

    def finish(self) -> bool:
        """End what has left its group; the number of a group that ended long ago may be another's by now."""
        others = stop_marked(self._mark)
        self._guard.release()
        self.set_aside += tuple(set_aside(self._absent))
        return others


def start(command: ShellCommand, output: int | BinaryIO) -> RunningCommand:
    """Start a command; it gets no input."""
    mark = secrets.token_hex(12)
    shell = [bash() or "/bin/sh", "-c", command.line]
    if command.confined and command.confinement is not None:
        shell = command.confinement.wrap(shell, command.folder)
    elif sys.platform == "linux" and sys.executable:
        shell = [sys.executable, "-I", "-S", _REAPER, f"{VARIABLE}={mark}", *shell]
    process = subprocess.Popen(
        ["/usr/bin/env", *_QUIET, *CAREFUL, f"{VARIABLE}={mark}", *shell],
        cwd=command.folder,
        env=None if command.env is None else dict(command.env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    return RunningCommand(process, mark, command.confinement.absent if command.confinement else ())


def run(command: ShellCommand, cancel: CancelToken, take: Callable[[bytes], None]) -> Ended:
    """Run a command to its end, giving its output to `take` as it comes."""
    running = start(command, subprocess.PIPE)
    process = running.process
    try:
        stop = _pump(process, command, cancel, take)
    finally:
        # Whatever happened, nothing of what the command started stays behind.
        others = running.stop()
        if process.stdout is not None:
            _drain(process.stdout, take)
            process.stdout.close()
        code = process.wait()
    # In a sandbox the system itself ends what is left with the command; whoever is seen then is on the way out.
    left = others and stop is Stop.NOT and not command.confined
    return Ended(code, stop, stopped_others=left, set_aside=running.set_aside)


def _pump(
    process: subprocess.Popen[bytes], command: ShellCommand, cancel: CancelToken, take: Callable[[bytes], None]
) -> Stop:
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    deadline = time.monotonic() + command.seconds
    taken = 0
    exited = last_data = 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if cancel.cancelled:
                return Stop.CANCELLED
            if now >= deadline and process.poll() is None:
                return Stop.TIMEOUT
            if selector.select(_TICK):
                data = os.read(process.stdout.fileno(), _CHUNK)
                if not data:
                    return _wait_for_exit(process, deadline, cancel)
                take(data)
                taken += len(data)
                last_data = now
            if taken > command.most_bytes:
                return Stop.TOO_MUCH
            if process.poll() is not None:
                # The shell is gone but something it started still holds the pipe: wait a little, not for ever.
                exited = exited or now
                if now - max(exited, last_data) > _IDLE_AFTER_EXIT or now - exited > _LONGEST_AFTER_EXIT:
                    return Stop.NOT


def _wait_for_exit(process: subprocess.Popen[bytes], deadline: float, cancel: CancelToken) -> Stop:
    """The output ended before the command did: it may have closed it and work on."""
    while process.poll() is None:
        if cancel.wait(min(_TICK, max(0.0, deadline - time.monotonic()))):
            return Stop.CANCELLED
        if time.monotonic() >= deadline:
            return Stop.TIMEOUT
    return Stop.NOT


def _drain(pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
    """What was written in the last moment."""
    until = time.monotonic() + _IDLE_AFTER_EXIT
    with contextlib.suppress(BlockingIOError):
        while time.monotonic() < until:
            data = os.read(pipe.fileno(), _CHUNK)
            if not data:
                return
            take(data)


def stop_group(group: int) -> bool:
    """End every process of a group, politely first; returns whether there was any."""
    if not group_alive(group):
        return False
    until = time.monotonic() + TERM_SECONDS
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
        while group_alive(group):
            if time.monotonic() >= until:
                os.killpg(group, signal.SIGKILL)
                break
            time.sleep(0.02)
    return True


def group_alive(group: int) -> bool:
    """Whether any process of the group still runs. The dead that nobody has fetched yet don't count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    processes = Path("/proc")
    if not (processes / "self" / "stat").exists():
        return True
    return any(_runs_in(entry, group) for entry in processes.iterdir() if entry.name.isdigit())


def _runs_in(entry: Path, group: int) -> bool:
    try:
        # The second field is the program's name in brackets and may hold anything; the rest follows the last one.
        fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return False
    return len(fields) > 2 and fields[0] not in ("Z", "X") and int(fields[2]) == group


def exit_text(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
