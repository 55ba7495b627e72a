"""`LocalServer`: the server process as seen from the program that started it.

    with LocalServer.start(ServerJob(model, window=8_192)) as server:
        client = OpenAI(base_url=server.url + "/v1", api_key=server.key)

It listens on a free port of the loopback address, behind a key that only this program knows, and in a session of its
own, so that Ctrl-C in the terminal does not reach it. It ends when its input is closed: by `close`, or by the system
when this program dies.
"""

from __future__ import annotations

import json
import secrets
import selectors
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from leporello.local.errors import LocalModelError

READY_SECONDS = 120.0
END_SECONDS = 3.0
ALIAS = "local"


@dataclass(frozen=True, slots=True)
class ServerJob:
    """What to serve. `runtime` is the folder of the server's package, empty when it is installed."""

    model: Path
    window: int
    runtime: str = ""


class LocalServer:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, key: str) -> None:
        self._process = process
        self.url = url
        """The root, without `/v1`. It speaks Chat Completions, Responses and Anthropic Messages."""
        self.key = key

    @classmethod
    def start(cls, job: ServerJob) -> LocalServer:
        """Start a server and wait until it answers; raises with the server's own words when it does not."""
        key = secrets.token_urlsafe(24)
        # The key goes through the pipe: arguments of a process can be read by everybody on the machine.
        order = {"model": str(job.model), "window": job.window, "runtime": job.runtime, "key": key, "alias": ALIAS}
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "leporello.local.serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )
            try:
                url = _ready(process, order)
            except BaseException as error:
                _end(process)
                if isinstance(error, _NotReady):
                    raise LocalModelError(f"The local model did not start: {error}{_last_words(said)}") from None
                raise
        return cls(process, url, key)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process; harmless when it has ended."""
        _end(self._process)

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _NotReady(Exception):
    """The process ended, or said nothing for too long."""


def _ready(process: subprocess.Popen[bytes], order: dict[str, object]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        raise _NotReady("its process ended at once.") from None
    deadline = time.monotonic() + READY_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(max(0.0, deadline - time.monotonic())):
            raise _NotReady(f"it was not ready within {READY_SECONDS:g} seconds.")
    line = process.stdout.readline()
    if not line:
        raise _NotReady("its process ended.")
    return str(json.loads(line)["url"])


def _last_words(said: IO[bytes]) -> str:
    said.seek(0)
    lines = [line.strip() for line in said.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f" Its last words: {lines[-1]}" if lines else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    for step in (process.terminate, process.kill):
        try:
            process.wait(END_SECONDS)
            return
        except subprocess.TimeoutExpired:
            step()
    process.wait()
