"""The gateway as an ASGI application: routes, and what lives as long as the process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from leporello.agent.endpoints import choose_model
from leporello.background import JobQueue, ThreadQueue
from leporello.config import Settings
from leporello.dialects import DIALECTS, OPENAI_CHAT, dialect_of_path
from leporello.errors import LeporelloError
from leporello.gateway.api_errors import ApiError, RequestRefused
from leporello.gateway.auth import BrowserCheck, Keys, identify
from leporello.gateway.background import BackgroundWork, DeferredCompactions
from leporello.gateway.config import GatewayConfig
from leporello.gateway.connections import RequestsPerAddress
from leporello.gateway.dashboard.pages import dashboard
from leporello.gateway.metrics import Metrics
from leporello.gateway.proxy.conversations import ProxiedConversations
from leporello.gateway.proxy.endpoints import CountEndpoint, ModelEndpoint, ModelsEndpoint, Proxy
from leporello.gateway.proxy.rewrite import RequestRewriter, proxy_summariser
from leporello.gateway.proxy.upstream import MODELS_PATH, Upstreams
from leporello.gateway.sessions.openapi import document
from leporello.gateway.sessions.platforms import Platform, PlatformInbox
from leporello.gateway.sessions.routes import session_routes
from leporello.gateway.sessions.sessions import Chooser, Sessions
from leporello.plugins.host import PluginHost
from leporello.store import Store


@dataclass(slots=True)
class Gateway:
    """Everything one process of the gateway holds."""

    settings: Settings
    config: GatewayConfig
    keys: Keys
    store: Store
    queue: JobQueue = field(default_factory=ThreadQueue)
    """Where work waits that nobody waits for."""
    choose: Chooser = choose_model
    """Finds the model of an agent session."""
    platforms: Sequence[Platform] = ()
    """Chat services whose messages the agent answers."""
    metrics: Metrics = field(default_factory=Metrics)
    ready: bool = False

    def app(self) -> Starlette:
        """The application; its lifespan opens and closes what it needs."""
        upstreams = Upstreams(self.config)
        plugins = PluginHost(self.settings)
        folds = DeferredCompactions(self.store, self.settings, self.queue, plugins, self.choose)
        conversations = ProxiedConversations(
            self.store,
            self.settings,
            summariser=lambda: proxy_summariser(self.settings),
            plugins=plugins,
            later=folds.later,
            idle=self.config.session_idle,
        )
        proxy = Proxy(self.config, self.keys, RequestRewriter(conversations, self.settings), upstreams, self.metrics)

        sessions = Sessions(
            self.store,
            self.settings,
            self.choose,
            plugins=plugins,
            later=folds.later,
            idle=self.config.session_idle,
        )
        background = BackgroundWork(self.queue, folds, sessions, conversations, self.config.session_idle)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            tasks = [asyncio.create_task(sessions.watch()), asyncio.create_task(background.sweep())]
            tasks += [
                asyncio.create_task(platform.run(PlatformInbox(platform.name, sessions))) for platform in self.platforms
            ]
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

        return Starlette(
            routes=[
                *self._operation_routes(),
                *proxy_routes(proxy),
                *session_routes(sessions, proxy),
                *dashboard(self.config, self.keys, sessions, self.metrics),
            ],
            lifespan=lifespan,
            middleware=[Middleware(RequestsPerAddress, most=self.config.connections)],
            exception_handlers={404: not_found, 405: not_found, Exception: broken},
        )

    # -- operation

    def _operation_routes(self) -> list[BaseRoute]:
        return [
            Route("/healthz", self._health, methods=["GET"]),
            Route("/readyz", self._readiness, methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/openapi.json", self._document, methods=["GET"]),
        ]

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    def _readiness(self, _: Request) -> Response:
        if not self.ready:
            return JSONResponse({"status": "starting"}, 503)
        try:
            self.store.state.get(None, "gateway.ready")
        except LeporelloError:
            return JSONResponse({"status": "store unavailable"}, 503)
        return JSONResponse({"status": "ok", "time": int(time.time())})

    async def _document(self, _: Request) -> Response:
        return JSONResponse(document())

    async def _metrics(self, request: Request) -> Response:
        try:
            BrowserCheck(self.keys, self.config.origins).check(request.headers)
            identify(request.headers, self.keys)
        except RequestRefused as refused:
            return fault_response(refused.fault)
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")


def fault_response(fault: ApiError, request: Request | None = None) -> Response:
    """An error in the shape of the API that was asked."""
    path = request.url.path if request is not None else ""
    headers = {name.decode(): value.decode() for name, value in fault.headers()}
    return Response(fault.body(dialect_of_path(path)), fault.status, headers)


async def not_found(request: Request, error: Exception) -> Response:
    """A path or method that does not exist, in the shape of the API it looks like."""
    status = getattr(error, "status_code", 404)
    words = "There is no such path here." if status == 404 else "This path does not take that method."
    return fault_response(ApiError(status, "not_found" if status == 404 else "method_not_allowed", words), request)


async def broken(request: Request, _: Exception) -> Response:
    """An error nobody expected: the log has it, the client learns only that it is not its fault."""
    return fault_response(ApiError(500, "internal_error", "The gateway failed; its log says why."), request)


def proxy_routes(proxy: Proxy) -> list[BaseRoute]:
    """The paths of the model APIs."""
    dialects = list(DIALECTS.values())
    asked = [(dialect.api.path, ModelEndpoint(proxy, dialect, dialect.api.path)) for dialect in dialects]
    counted = [
        (dialect.api.count_path, CountEndpoint(proxy, dialect, dialect.api.count_path))
        for dialect in dialects
        if dialect.api.count_path
    ]
    models = ModelsEndpoint(proxy, OPENAI_CHAT, MODELS_PATH)
    return [
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in [*asked, *counted]),
        Route(MODELS_PATH, models, methods=["GET"]),
        Route(MODELS_PATH + "/{model:path}", models, methods=["GET"]),
    ]
