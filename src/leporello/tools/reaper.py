"""Run as a program, without the package: `reaper.py MARK COMMAND...` runs a command and ends what hides from it.

Where there is no sandbox, a process that made a session of its own and emptied its environment is neither in the group
of its command nor marked. But it has a parent: the system gives orphans to the nearest process that asked for them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from types import FrameType

_TAKE_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
_DEFAULTS = (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that this program, or Python, treats otherwise than a command expects."""
MOST_SWEEPS = 50  # what is forking on and on is given up at some time


def main(mark: str, command: list[str]) -> None:
    """Run the command, end its hidden children, and end as it did."""
    ctypes.CDLL(None, use_errno=True).prctl(_TAKE_ORPHANS, 1, 0, 0, 0)
    sign = mark.encode()

    def sweep(*_: int | FrameType | None) -> None:
        for _again in range(MOST_SWEEPS):
            if not _end(_hidden(sign)):
                break

    # The group gets this signal when the command is stopped; the other one, which nobody can catch, follows.
    signal.signal(signal.SIGTERM, sweep)
    child = os.fork()
    if not child:
        for number in _DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    pid, status = 0, 0
    while pid != child:
        pid, status = os.waitpid(-1, 0)
    sweep()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _hidden(sign: bytes) -> list[int]:
    """Every process that descends from this one, is not in its group and does not carry the mark."""
    parents: dict[int, list[tuple[int, int, bytes]]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            state, parent, group = file.read().rpartition(b")")[2].split()[:3]
            parents.setdefault(int(parent), []).append((int(name), int(group), state))
    found, waiting = [], [os.getpid()]
    while waiting:
        for pid, its_group, its_state in parents.get(waiting.pop(), ()):
            waiting.append(pid)
            if its_group != os.getpgrp() and its_state not in (b"Z", b"X") and not _has(pid, sign):
                found.append(pid)
    return found


def _has(pid: int, sign: bytes) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return sign in file.read()
    return False


def _end(pids: list[int]) -> bool:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
