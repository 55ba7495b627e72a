"""Workers as they run in production: processes of `leporello serve`, a model's server before which they stand, and
clients that try again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from leporello.testing.stub_server import Fail, Say, Seen, Step, StubServer
from leporello.usage import CanonicalUsage
from tests.support.strict_server import strict_server

MODEL = "gpt-4o"
SUMMARIES = "gpt-4o-mini"
PATIENCE = 240.0
"""Nothing waits for ever; no test depends on how long anything takes."""


def until(holds: Callable[[], Any], what: str) -> Any:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"never happened: {what}")


def newest(seen: Seen) -> str:
    """The newest words of the user in a request to the model."""
    said = [item for item in seen.body["messages"] if item["role"] == "user"]
    content = said[-1]["content"]
    return str(content if isinstance(content, str) else content[-1]["text"])


class Model:
    """The model behind the workers: repeats what was said, and can be held."""

    def __init__(self) -> None:
        self.filler = " It is noted in the book of this house." * 6
        self.asked: list[str] = []
        self.held = threading.Event()
        """Set: answers wait until it is cleared."""
        self.summarising = threading.Event()
        """Set while a summary is being asked for and held."""
        self.hold_summaries = threading.Event()

    def script(self) -> Iterator[Step]:
        while True:
            yield self.answer

    def answer(self, seen: Seen) -> Step:
        if seen.body["model"] == SUMMARIES:
            return self._summary()
        said = newest(seen)
        self.asked.append(said)
        while self.held.is_set():
            time.sleep(0.01)
        usage = CanonicalUsage(len(seen.raw) // 4, 40, 0, 0, 0)
        return Say(f"You said: {said[:60]}.{self.filler}", usage=usage)

    def _summary(self) -> Step:
        while self.hold_summaries.is_set():
            self.summarising.set()
            time.sleep(0.01)
        self.summarising.clear()
        return Fail(500, {"error": {"message": "no summaries today", "type": "server_error"}})


class Worker:
    """One process of `leporello serve`."""

    def __init__(self, home: Path, store: str, model: str, window: int, flags: Mapping[str, object]) -> None:
        settings = {
            "model.default": MODEL,
            "model.base_url": f"{model}/v1",
            "model.context_length": window,
            "gateway.rate": 100_000,
            "gateway.upstreams": json.dumps({"stub": {"base_url": model, "models": "*", "window": window}}),
            "agent.tools": "todo",
            **flags,
        }
        sets = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        home.mkdir(parents=True, exist_ok=True)
        self._output = (home / "worker.log").open("ab")
        self._log = home / "worker.log"
        self._from = self._log.stat().st_size
        self._process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-c",
                    "import sys; from leporello.cli import main; sys.exit(main())",
                    "--home",
                    str(home),
                    *sets,
                ),
                *("serve", "--store", store, "--port", "0"),
            ],
            env={**os.environ, "OPENAI_API_KEY": "key-of-the-stub"},
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        self.url = until(self._address, "the worker listens").group(1)
        until(self._ready, "the worker is ready")

    def _address(self) -> re.Match[str] | None:
        assert self._process.poll() is None, self.said
        return re.search(r"listens on (http://\S+)", self.said)

    @property
    def said(self) -> str:
        """What it wrote so far."""
        return self._log.read_bytes()[self._from :].decode("utf-8", "replace")

    def _ready(self) -> bool:
        with suppress(httpx2.HTTPError):
            return bool(httpx2.get(self.url + "/readyz", timeout=5).status_code == 200)
        return False

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """`kill -9`, of the process and of all that it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()

    def stop(self) -> int:
        """SIGTERM; the code it ended with."""
        self._process.terminate()
        code = self._process.wait(PATIENCE)
        self._output.close()
        return code


class Plant:
    """Some workers on one store."""

    def __init__(self, folder: Path, store: str, model: Model, stub: StubServer, window: int) -> None:
        self.folder = folder
        self.store = store
        self.model = model
        self.stub = stub
        self.window = window
        self.flags: dict[str, object] = {}
        self.workers: list[Worker] = []

    def start(self) -> Worker:
        home = self.folder / f"home-{len(self.workers)}"
        worker = Worker(home, self.store, self.stub.url, self.window, self.flags)
        self.workers.append(worker)
        return worker

    def replace(self, place: int) -> Worker:
        """A new worker where one was killed."""
        home = self.folder / f"home-{place}"
        self.workers[place] = Worker(home, self.store, self.stub.url, self.window, self.flags)
        return self.workers[place]


@contextmanager
def plant(
    folder: Path, store: str, workers: int = 2, window: int = 128_000, flags: Mapping[str, object] | None = None
) -> Iterator[Plant]:
    """Workers that stand before a model."""
    model = Model()
    with strict_server(model.script()) as stub:
        made = Plant(folder, store, model, stub, window)
        made.flags.update(flags or {})
        try:
            for _ in range(workers):
                made.start()
            yield made
        finally:
            model.held.clear()
            model.hold_summaries.clear()
            for worker in made.workers:
                with suppress(ProcessLookupError):
                    worker.kill()


class Talker:
    """A client of agent sessions that does not care which worker it speaks to, and tries again until it is answered."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant

    def begin(self) -> str:
        reply = self.ask("POST", "/api/conversations", 0, {})
        return str(reply["id"])

    def say(self, id: str, text: str, key: str, place: int, wait: bool = True) -> dict[str, Any]:
        """Send a message until it is taken, to one worker after the other."""
        body = {"text": text, "id": key, "wait": wait}
        return self.ask("POST", f"/api/conversations/{id}/messages", place, body)

    def ask(self, method: str, path: str, place: int, body: Any = None) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            url = self.plant.workers[place % len(self.plant.workers)].url
            place += 1
            try:
                reply = httpx2.request(method, url + path, json=body, timeout=60)
            except httpx2.TransportError:
                time.sleep(0.05)
                continue
            if reply.is_success:
                answer: dict[str, Any] = reply.json()
                return answer
            assert reply.status_code == 503, reply.text
            assert int(reply.headers["retry-after"]) > 0
            time.sleep(0.2)
        raise AssertionError(f"{path} was never answered")
