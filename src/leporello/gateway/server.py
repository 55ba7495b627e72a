"""Running the gateway: one process, or several that share a socket and a store."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from leporello.background import open_queue
from leporello.config import Home, Settings, load_settings
from leporello.errors import InputError
from leporello.gateway.app import Gateway
from leporello.gateway.auth import Keys, check_address
from leporello.gateway.config import GatewayConfig
from leporello.gateway.connections import ConnectionLimits, most_connections
from leporello.gateway.protocol import protocol_class
from leporello.store import open_store

GRACE_SECONDS = 30
BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class Setup:
    """What a process needs to serve; small enough to be handed to another one."""

    home: str
    flags: Mapping[str, object] = field(default_factory=dict)
    workers: int = 1

    def settings(self) -> Settings:
        """The settings as this process sees them."""
        return load_settings(self.flags, home=Home(self.home))


def run(setup: Setup) -> None:
    """Serve until a signal comes."""
    settings = setup.settings()
    config = GatewayConfig.read(settings)
    check_address(config.host, Keys.load(settings.home.path))
    listener = listen(config)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"Leporello listens on http://{shown}:{port}\n")
    sys.stderr.flush()
    if setup.workers > 1:
        _supervise(setup, listener)
    else:
        serve(setup, listener)


def listen(config: GatewayConfig) -> socket.socket:
    """The socket that clients reach."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
    except OSError as error:
        reason = error.strerror or "it can't be used"
        raise InputError(f"Can't listen on {config.host}:{config.port}: {reason}. Choose another --port.") from None
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def serve(setup: Setup, listener: socket.socket) -> None:
    """Serve in this process."""
    settings = setup.settings()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    for name in ("httpx", "httpx2"):
        # The clients of the model libraries tell every request.
        logging.getLogger(name).setLevel(logging.WARNING)
    with open_store(settings.store_url) as store:
        config = GatewayConfig.read(settings)
        keys, queue = Keys.load(settings.home.path), open_queue(settings.store_url)
        gateway = Gateway(settings, config, keys, store, queue)
        uvicorn.Server(server_options(gateway.app(), config)).run(sockets=[listener])


def server_options(app: Starlette, config: GatewayConfig) -> uvicorn.Config:
    """How the HTTP server runs: quiet, without a name, patient with clients that are still reading when it stops."""
    limits = ConnectionLimits(config.connections, config.proxies, most_connections())
    return uvicorn.Config(
        app,
        http=protocol_class(config, limits),
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(config.proxies),
        forwarded_allow_ips=[str(network) for network in config.proxies],
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=30,
        backlog=BACKLOG,
    )


def _supervise(setup: Setup, listener: socket.socket) -> None:
    """Start the workers, start another for each that dies, and pass signals on."""
    context = multiprocessing.get_context("spawn")
    stopping = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for worker in workers:
            worker.terminate()

    workers = [context.Process(target=serve, args=(setup, listener)) for _ in range(setup.workers)]
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers) or not stopping:
        time.sleep(0.2)
        for place, worker in enumerate(workers):
            if not worker.is_alive() and not stopping:
                sys.stderr.write(f"A worker ended with code {worker.exitcode}; starting another.\n")
                time.sleep(1)
                workers[place] = context.Process(target=serve, args=(setup, listener))
                workers[place].start()
