"""`LocalProvider`: the model on this machine behind the provider port; the first call starts its server process."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from leporello.dialects import Dialect
from leporello.local.errors import LocalModelError
from leporello.local.install import is_installed
from leporello.local.model_file import SMOLLM2, ModelFile
from leporello.local.runtime import find_runtime
from leporello.local.server import ALIAS, LocalServer, ServerJob
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.clients import ProviderChoice, make_provider
from leporello.providers.sdk import SdkProvider

NAME = "local"
"""What the model and its provider are called in settings and on the command line."""
_CLIENTS = {"openai": Dialect.OPENAI_CHAT, "anthropic": Dialect.ANTHROPIC}


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
        """Run one request to its end; `on_text` sees the text while it streams."""
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
        """The server, once there is one."""
        return self._server

    def _ready(self) -> SdkProvider:
        with self._lock:
            if self._provider is not None and self._server is not None and self._server.running:
                return self._provider
            self._stop()
            self._server = self._start()
            atexit.register(self.close)
            root = self._server.url
            base_url = root if self._dialect is Dialect.ANTHROPIC else f"{root}/v1"
            self._provider = make_provider(ProviderChoice(ALIAS, NAME, base_url, self._dialect.value, self._server.key))
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
    for package, dialect in _CLIENTS.items():
        if find_spec(package) is not None:
            return dialect
    raise LocalModelError(
        "Talking to a model needs one of the official clients. Install it with: pip install 'leporello[local]'"
    )
