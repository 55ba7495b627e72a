"""A gateway in this process on a real socket, in front of the strict stub server, and clients of every kind for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from leporello.agent.endpoints import Chosen
from leporello.config import Home, load_settings
from leporello.gateway.auth import Keys
from leporello.gateway.background import JobQueue, open_queue
from leporello.gateway.config import GatewayConfig
from leporello.gateway.server import Gateway, listen, server_options
from leporello.providers.base import Provider
from leporello.store import Store, open_store
from leporello.store.records import UsageTotals
from leporello.testing.stub_server import Seen, Step, StubServer
from tests.support.strict_server import strict_server

STORE_URL: ContextVar[str] = ContextVar("STORE_URL", default="")
"""Another store than a file in the test's folder."""


@dataclass(slots=True)
class House:
    """What a test holds: the gateway's address, its upstream and its store."""

    url: str
    stub: StubServer
    store: Store
    gateway: Gateway

    @property
    def model_calls(self) -> list[Seen]:
        """Requests that reached the model's server, as they came."""
        return [seen for seen in self.stub.requests if seen.dialect is not None]


def recorded(house: House, conversation: str, calls: int) -> UsageTotals:
    """What a conversation used, once so many calls are written down: that happens while the client reads its answer."""
    totals = house.store.usage.totals(conversation)
    for _ in range(2_000):
        if totals.calls >= calls:
            break
        threading.Event().wait(0.01)
        totals = house.store.usage.totals(conversation)
    return totals


class _Server(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """None: it runs in a thread."""


@contextmanager
def running(app: Any, config: GatewayConfig) -> Iterator[str]:
    """An application on a free port of this machine."""
    listener = listen(config)
    server = _Server(server_options(app, config))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        threading.Event().wait(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
        assert not thread.is_alive()


@contextmanager
def opened(
    folder: Path,
    script: Iterable[Step] = (),
    *,
    window: int | None = None,
    flags: Mapping[str, object] | None = None,
    keys: Keys | None = None,
    upstream: str = "",
    provider: Provider | None = None,
    queue: JobQueue | None = None,
    **stub: Any,
) -> Iterator[House]:
    """A gateway over a stub that plays the script."""
    url = STORE_URL.get() or f"sqlite:///{folder}/gateway.db"
    with strict_server(script, **stub) as server, open_store(url) as store:
        entry: dict[str, Any] = {"base_url": upstream or server.url, "models": "*"}
        if window:
            entry["window"] = window
        given = {
            "gateway.port": 0,
            "gateway.rate": 100_000,
            "gateway.upstreams": {"stub": entry},
            **(flags or {}),
        }
        settings = load_settings(given, environ={}, home=Home(folder / "home"))
        config = GatewayConfig.read(settings)
        gateway = Gateway(settings, config, keys or Keys(), store, queue or open_queue(url))
        if provider is not None:
            gateway.choose = lambda _, model: Chosen(model or "gpt-4o", provider, "openai", "", window, small=True)
        with running(gateway.app(), config) as url:
            yield House(url, server, store, gateway)
