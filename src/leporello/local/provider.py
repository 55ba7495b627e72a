"""`LocalProvider`: the model on this machine behind the provider port; the first call starts its server process."""

from __future__ import annotations

import atexit
import json
import secrets
import selectors
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from leporello.dialects import DIALECTS, Dialect
from leporello.local.install import SMOLLM2, LocalModelError, ModelFile, find_runtime, is_installed
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.clients import ProviderChoice, make_provider
from leporello.providers.errors import ClientMissing
from leporello.providers.sdk import SdkProvider

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
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
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
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(READY_SECONDS):
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


NAME = "local"
"""What the model and its provider are called in settings and on the command line."""


class LocalProvider:
    """Starts the server when it is first asked, again when it has died, and ends it with the program."""

    def __init__(self, start: Callable[[], LocalServer], dialect: Dialect) -> None:
        self.name = NAME
        self._start = start
        self._dialect = dialect
        self._lock = threading.Lock()
        self._server: LocalServer | None = None
        self._provider: SdkProvider | None = None

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        return self._ready().complete(replace(request, model=ALIAS), on_text)

    def start(self) -> None:
        """Start the server now, so that the first call need not wait for it."""
        self._ready()

    def close(self) -> None:
        """End the server; the next call starts another."""
        with self._lock:
            self._stop()

    @property
    def server(self) -> LocalServer | None:
        return self._server

    def _ready(self) -> SdkProvider:
        with self._lock:
            if self._provider is not None and self._server is not None and self._server.running:
                return self._provider
            self._stop()
            self._server = self._start()
            atexit.register(self.close)
            base_url = f"{self._server.url}/v1"
            self._provider = make_provider(ProviderChoice(ALIAS, NAME, base_url, self._dialect.name, self._server.key))
            return self._provider

    def _stop(self) -> None:
        provider, self._provider = self._provider, None
        server, self._server = self._server, None
        if provider is not None:
            provider.close()
        if server is not None:
            server.close()
            atexit.unregister(self.close)


def local_provider(folder: Path, model: ModelFile = SMOLLM2) -> LocalProvider:
    """The provider of the installed model; raises when `leporello setup --local` was not run yet."""
    dialect = client_dialect()
    if not is_installed(folder, model):
        raise LocalModelError(
            "The local model is not here yet. Fetch it once (about 130 MB) with: leporello setup --local"
        )
    runtime = find_runtime(folder)
    job = ServerJob(folder / model.name, model.window, runtime or "")
    return LocalProvider(lambda: LocalServer.start(job), dialect)


def client_dialect() -> Dialect:
    """The dialect whose official client is installed; the server speaks them all."""
    for dialect in DIALECTS.values():
        if find_spec(dialect.api.vendor) is not None:
            return dialect
    raise ClientMissing(
        "Talking to a model needs one of the official clients. Install it with: pip install 'leporello[local]'"
    )
