"""The gateway as one process: its routes, what lives as long as it does, and several of them that share a socket."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from leporello.agent.endpoints import choose_model
from leporello.config import Home, Settings, load_settings
from leporello.dialects import dialect_of_path
from leporello.errors import InputError, LeporelloError, StoreUnreachable
from leporello.gateway.api_errors import ApiError, RequestRefused
from leporello.gateway.auth import BrowserCheck, Keys, check_address, identify
from leporello.gateway.background import BackgroundWork, DeferredCompactions, JobQueue, ThreadQueue, open_queue
from leporello.gateway.config import GatewayConfig
from leporello.gateway.dashboard.pages import dashboard
from leporello.gateway.limits import ConnectionLimits, RequestsPerAddress, SingleHeaders, most_connections
from leporello.gateway.metrics import Metrics
from leporello.gateway.protocol import protocol_class
from leporello.gateway.proxy.conversations import ProxiedConversations
from leporello.gateway.proxy.endpoints import Proxy, proxy_routes
from leporello.gateway.proxy.rewrite import RequestRewriter, proxy_summariser
from leporello.gateway.proxy.upstream import Upstreams
from leporello.gateway.sessions.openapi import document
from leporello.gateway.sessions.platforms import Platform, PlatformInbox
from leporello.gateway.sessions.routes import session_routes
from leporello.gateway.sessions.sessions import Chooser, Sessions
from leporello.plugins.host import PluginHost
from leporello.store import Store, StoreOptions, open_store

GRACE_SECONDS = 30
STORE_SECONDS = 6.0
"""How long a request waits for a connection, or for a lock; with the check of a connection it is below ten."""
READY_SECONDS = 3.0
BACKLOG = 2048


@dataclass(slots=True)
class Gateway:
    """Everything one process of the gateway holds."""

    settings: Settings
    config: GatewayConfig
    keys: Keys
    store: Store
    queue: JobQueue = field(default_factory=ThreadQueue)
    """Where background jobs wait."""
    choose: Chooser = choose_model
    """Finds the model of an agent session."""
    platforms: Sequence[Platform] = ()
    """Chat services whose messages the agent answers."""
    metrics: Metrics = field(default_factory=Metrics)
    ready: bool = False
    _probe: asyncio.Future[bool] | None = None
    _prober: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "leporello-ready"))

    def app(self) -> Starlette:
        """The ASGI application; its lifespan opens and closes what it needs."""
        plugins = PluginHost(self.settings)
        deferred = DeferredCompactions(self.store, self.settings, self.queue, plugins, self.choose)
        idle = self.config.session_idle
        conversations = ProxiedConversations(
            self.store,
            self.settings,
            summariser=lambda: proxy_summariser(self.settings),
            plugins=plugins,
            later=deferred.later,
            idle=idle,
        )
        sessions = Sessions(self.store, self.settings, self.choose, plugins=plugins, later=deferred.later, idle=idle)
        upstreams = Upstreams(self.config)
        proxy = Proxy(self.config, self.keys, RequestRewriter(conversations, self.settings), upstreams, self.metrics)
        sessions.budget = proxy.budget  # what one of them has reserved counts for the other
        background = BackgroundWork(self.queue, deferred, sessions, conversations, idle)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            chats = [platform.run(PlatformInbox(platform.name, sessions)) for platform in self.platforms]
            lasting = (sessions.watch(), background.sweep(), proxy.renew(), *chats)
            tasks = [asyncio.create_task(work) for work in lasting]
            async with upstreams, self.queue.serving(background.handlers):
                self.ready = True
                yield
                self.ready = False
                background.stop()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await sessions.close()
                await proxy.drain()
                self._prober.shutdown(wait=False)

        return Starlette(
            routes=[
                Route("/healthz", self._health, methods=["GET"]),
                Route("/readyz", self._readiness, methods=["GET"]),
                Route("/metrics", self._metrics, methods=["GET"]),
                Route("/openapi.json", self._document, methods=["GET"]),
                *proxy_routes(proxy),
                *session_routes(sessions, proxy),
                *dashboard(self.config, self.keys, sessions, self.metrics),
            ],
            lifespan=lifespan,
            middleware=[
                Middleware(RequestsPerAddress, most=self.config.connections),
                Middleware(SingleHeaders),
            ],
            exception_handlers={404: not_found, 405: not_found, Exception: broken},
        )

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _readiness(self, _: Request) -> Response:
        if not self.ready:
            return JSONResponse({"status": "starting"}, 503)
        if self._probe is None or self._probe.done():
            # On a thread of its own: those of the requests may all be waiting for the database.
            self._probe = asyncio.get_running_loop().run_in_executor(self._prober, self._store_answers)
        await asyncio.wait({self._probe}, timeout=READY_SECONDS)
        if not self._probe.done() or not self._probe.result():
            return JSONResponse({"status": "store unavailable"}, 503)
        return JSONResponse({"status": "ok", "time": int(time.time())})

    def _store_answers(self) -> bool:
        try:
            self.store.state.get(None, "gateway.ready")
        except LeporelloError:
            return False
        return True

    async def _document(self, _: Request) -> Response:
        return JSONResponse(document())

    async def _metrics(self, request: Request) -> Response:
        try:
            BrowserCheck(self.keys, self.config.origins).check(request.headers)
            identify(request.headers, self.keys)
        except RequestRefused as refused:
            return refused.error.response()
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")


async def not_found(request: Request, error: Exception) -> Response:
    """A path or method that does not exist, in the shape of the API it looks like."""
    found = ApiError(404, "not_found", "There is no such path here.")
    if getattr(error, "status_code", 404) != 404:
        found = ApiError(405, "method_not_allowed", "This path does not take that method.")
    reply = found.response(dialect_of_path(request.url.path))
    if found.status == 405:
        reply.headers["allow"] = ", ".join(sorted(_methods(request)))
    return reply


def _methods(request: Request) -> set[str]:
    """All methods of a path: each may be a route of its own."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    return {
        name for route in routes if route.matches(request.scope)[0] is not Match.NONE for name in route.methods or ()
    }


async def broken(request: Request, _: Exception) -> Response:
    """An error nobody expected: the log has it, the client learns only that it is not its fault."""
    error = ApiError(500, "internal_error", "The gateway failed; its log says why.")
    return error.response(dialect_of_path(request.url.path))


# -- running it


@dataclass(frozen=True, slots=True)
class Setup:
    """What a process needs to serve; small enough to be handed to another one."""

    home: str
    flags: Mapping[str, object] = field(default_factory=dict)
    workers: int = 1

    def settings(self) -> Settings:
        return load_settings(self.flags, home=Home(self.home))


def run(setup: Setup) -> None:
    """Serve until a signal comes. A store that can't be opened is an error before anything listens."""
    settings = setup.settings()
    config = GatewayConfig.read(settings)
    check_address(config.host, Keys.load(settings.home.path))
    with open_when_there(settings.store_url) as store:
        listener = listen(config)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        sys.stderr.write(f"Leporello listens on http://{shown}:{port}\n")
        sys.stderr.flush()
        if setup.workers == 1:
            serve(settings, store, listener)
            return
    _supervise(setup, listener)


def open_when_there(url: str) -> Store:
    """The store, as soon as its server is there: after a power cut it may come up last."""
    said = ""
    while True:
        try:
            return open_store(url, StoreOptions(wait_seconds=STORE_SECONDS, answer_seconds=STORE_SECONDS))
        except StoreUnreachable as error:
            if str(error) != said:
                said = str(error)
                sys.stderr.write(f"{said}\nWaiting for it.\n")
                sys.stderr.flush()
            time.sleep(1)


def listen(config: GatewayConfig) -> socket.socket:
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


def serve(settings: Settings, store: Store, listener: socket.socket) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    for name in ("httpx", "httpx2"):
        # The clients of the model libraries tell every request.
        logging.getLogger(name).setLevel(logging.WARNING)
    config = GatewayConfig.read(settings)
    gateway = Gateway(settings, config, Keys.load(settings.home.path), store, open_queue(settings.store_url))
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


def _worker(setup: Setup, listener: socket.socket) -> None:
    settings = setup.settings()
    with open_when_there(settings.store_url) as store:
        serve(settings, store, listener)


def _supervise(setup: Setup, listener: socket.socket) -> None:
    """Start the workers, start another for each that dies, and pass signals on."""
    context = multiprocessing.get_context("spawn")
    stopping = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for worker in workers:
            worker.terminate()

    workers = [context.Process(target=_worker, args=(setup, listener)) for _ in range(setup.workers)]
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
                workers[place] = context.Process(target=_worker, args=(setup, listener))
                workers[place].start()
