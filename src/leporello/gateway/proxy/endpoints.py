"""The endpoints of the proxy: requests are rewritten, sent, recovered when too long, and answers relayed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import aiohttp
from starlette.types import Receive, Scope, Send
from yarl import URL

from leporello.dialects import Dialect, dialect_of_headers
from leporello.errors import LeporelloError
from leporello.gateway.api_errors import ApiError, RequestRefused, refuse
from leporello.gateway.auth import BrowserCheck, Client, Keys, identify
from leporello.gateway.config import GatewayConfig, Upstream
from leporello.gateway.limits import Gate, read_body
from leporello.gateway.metrics import Metrics, RequestLog, log
from leporello.gateway.proxy.recall.tool_loop import ToolLoop
from leporello.gateway.proxy.relay import ClientGone, Outlet, relay_stream, relay_whole
from leporello.gateway.proxy.request import WireRequest, read_request
from leporello.gateway.proxy.rewrite import Action, RequestRewriter, Rewrite
from leporello.gateway.proxy.streams import Tally
from leporello.gateway.proxy.upstream import Upstreams, read_reply, sent_headers, upstream_url, verdict_on
from leporello.providers.errors import classify
from leporello.usage import CanonicalUsage

P = ParamSpec("P")
R = TypeVar("R")

NAME_HEADER = "x-leporello-conversation"
LARGE = 128 * 1024
"""Bytes from which on a body is read beside the event loop: others are served meanwhile."""
STORE_FAULT = ApiError(503, "store_unavailable", "The gateway can't store the conversation now. Try again later.", 2)


class Proxy:
    """What all routes of the proxy share."""

    def __init__(
        self, config: GatewayConfig, keys: Keys, planner: RequestRewriter, upstreams: Upstreams, metrics: Metrics
    ) -> None:
        self.config = config
        self.keys = keys
        self.browsers = BrowserCheck(keys, config.origins)
        self.planner = planner
        self.upstreams = upstreams
        self.metrics = metrics
        self.gate = Gate(config.rate, config.streams, time.monotonic)
        self.threads = ThreadPoolExecutor(8, "leporello-gateway")
        self._afterwards: set[asyncio.Task[None]] = set()

    async def thread(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run blocking work beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: work(*args, **kwargs))

    def afterwards(self, plan: Rewrite, *usages: CanonicalUsage | None) -> None:
        """Count an answer (one usage for each call it took) and fold if due, while the client reads."""
        counted = [usage for usage in usages if usage is not None]
        for usage in counted:
            self.metrics.count_usage(usage)
        if plan.live is None:
            return
        task = asyncio.create_task(self._settle(plan, counted))
        self._afterwards.add(task)
        task.add_done_callback(self._afterwards.discard)

    async def _settle(self, plan: Rewrite, usages: list[CanonicalUsage]) -> None:
        try:
            await self.thread(self.planner.settle, plan, usages)
        except LeporelloError as error:
            # The answer has gone out; that its figures could not be stored is for the log.
            log.error('{"problem": "settle", "kind": "%s"}', type(error).__name__)

    async def drain(self) -> None:
        """Wait for what is still to be written."""
        while self._afterwards:
            await asyncio.gather(*self._afterwards)
        self.threads.shutdown(wait=True)


class ProxyEndpoint:
    """Serves one path of one dialect; subclasses say how."""

    def __init__(self, proxy: Proxy, dialect: Dialect, path: str) -> None:
        self.proxy = proxy
        self.dialect = dialect
        self.path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, and stop when the client is gone."""
        outlet = Outlet(send, self.proxy.config.idle_timeout)
        with RequestLog(self.path, self.proxy.metrics) as entry:
            try:
                await self._watched(scope, receive, outlet, entry)
            except RequestRefused as refused:
                entry.problem = refused.fault.code
                await outlet.fail(refused.fault, self.dialect)
            except LeporelloError as error:
                entry.problem = type(error).__name__
                await outlet.fail(STORE_FAULT, self.dialect)
            except (ClientGone, ConnectionError, TimeoutError):
                entry.problem = "client_gone"
            entry.status = outlet.status or 499

    async def _watched(self, scope: Scope, receive: Receive, outlet: Outlet, entry: RequestLog) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.proxy.browsers.check(headers)
        client = identify(headers, self.proxy.keys)
        entry.key = client.key.name
        with self.proxy.gate.passing(client):
            data = b""
            if scope["method"] == "POST":
                config = self.proxy.config
                encoding = headers.get("content-encoding", "").strip().lower()
                data = await read_body(receive, config.max_body, config.body_timeout, encoding)
            model = str(scope.get("path_params", {}).get("model", "")).strip("/")
            call = ProxyCall(headers, client, data, scope.get("query_string", b""), model)
            work = asyncio.create_task(self.serve(call, outlet, entry))
            gone = asyncio.create_task(_disconnected(receive))
            try:
                await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    work.cancel()
                    raise ClientGone
                await work
            finally:
                gone.cancel()
                work.cancel()
                await asyncio.gather(work, gone, return_exceptions=True)

    async def serve(self, call: ProxyCall, outlet: Outlet, entry: RequestLog) -> None:
        """Answer one request."""
        raise NotImplementedError

    def _upstream(self, model: str, dialect: Dialect) -> Upstream:
        found = self.proxy.config.upstream(model, dialect)
        if found is None:
            raise refuse(404, "model_not_found", "No upstream of this gateway serves that model.")
        return found


@dataclass(frozen=True, slots=True)
class ProxyCall:
    """One request as it arrived."""

    headers: dict[str, str]
    client: Client
    data: bytes
    query: bytes
    model: str
    """The model that the path names."""


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class ModelEndpoint(ProxyEndpoint):
    """`chat/completions`, `responses` and `messages`."""

    async def _understood(self, call: ProxyCall) -> WireRequest:
        if len(call.data) < LARGE:
            return read_request(self.dialect, call.data)
        return await self.proxy.thread(read_request, self.dialect, call.data)

    async def serve(self, call: ProxyCall, outlet: Outlet, entry: RequestLog) -> None:
        """Plan, send, recover, relay."""
        request = await self._understood(call)
        upstream = self._upstream(request.model, self.dialect)
        began = time.perf_counter()
        plan = await self.proxy.thread(
            self.proxy.planner.plan, request, call.client, upstream, call.headers.get(NAME_HEADER, "")
        )
        self.proxy.metrics.planning.observe(time.perf_counter() - began)
        headers = sent_headers(call.headers, call.client, upstream, self.dialect.api.bearer)
        url = upstream_url(upstream, self.path, call.query)
        while True:
            entry.done, entry.conversation = plan.done.value, plan.conversation
            attempt = self._recalled if plan.offered else self._attempt
            again = await attempt(plan, url, headers, outlet)
            if again is None:
                return
            plan = again

    async def _attempt(self, plan: Rewrite, url: URL, headers: dict[str, str], outlet: Outlet) -> Rewrite | None:
        """Send a plan and relay what comes; another plan when this one was refused and can be mended."""
        async with self.proxy.upstreams.call("POST", url, headers, plan.body) as response:
            if response.status >= 400:
                return await self._refused(plan, response, outlet)
            about = headers_about(plan)
            if response.content_type == "text/event-stream":
                tally = Tally(plan.request.dialect)
                try:
                    await relay_stream(outlet, response, plan.request.dialect, about, tally)
                finally:
                    # A client may hang up as soon as it has read the last event: the answer was given all the same.
                    if tally.ended and tally.error is None:
                        self.proxy.afterwards(plan, tally.usage)
                if tally.error is not None and not outlet.started:
                    return await self._refused_in_stream(plan, tally.error, outlet)
            else:
                usage = await relay_whole(outlet, response, plan.request.dialect, about)
                self.proxy.afterwards(plan, usage)
        return None

    async def _recalled(self, plan: Rewrite, url: URL, headers: dict[str, str], outlet: Outlet) -> Rewrite | None:
        """The same where the model can ask for its past: the answer may take several calls."""
        exchange = ToolLoop(self.proxy, plan, url, headers, outlet)
        try:
            async with self.proxy.upstreams.call("POST", url, headers, plan.body) as response:
                if response.status >= 400:
                    return await self._refused(plan, response, outlet)
                error = await exchange.first(response, headers_about(plan))
                if error is not None:
                    return await self._refused_in_stream(plan, error, outlet)
            await exchange.rest()
        finally:
            # Whatever became of the answer: what was counted was paid for.
            if exchange.rounds:
                self.proxy.afterwards(plan, *exchange.usages)
            self.proxy.metrics.recalls.inc(exchange.recalls)
        return None

    async def _refused(self, plan: Rewrite, response: aiohttp.ClientResponse, outlet: Outlet) -> Rewrite | None:
        body = await read_reply(response)
        mended = await self.proxy.thread(self.proxy.planner.recover, plan, verdict_on(response, body))
        if mended is not None:
            return mended
        await outlet.whole(response, body, plan.request.dialect, headers_about(plan))
        return None

    async def _refused_in_stream(self, plan: Rewrite, error: object, outlet: Outlet) -> Rewrite | None:
        """An error that came first inside a stream that began well."""
        verdict = classify(None, error, now=time.time())
        mended = await self.proxy.thread(self.proxy.planner.recover, plan, verdict)
        if mended is None:
            await outlet.release()
        return mended


def headers_about(plan: Rewrite) -> list[tuple[bytes, bytes]]:
    """What was done to a request, for the client."""
    found = [(b"x-leporello", plan.done.value.encode())]
    if plan.conversation:
        found.append((NAME_HEADER.encode(), plan.conversation.encode()))
    return found


class CountEndpoint(ModelEndpoint):
    """`messages/count_tokens`: how large the request would be, known folds included."""

    async def serve(self, call: ProxyCall, outlet: Outlet, entry: RequestLog) -> None:
        """Count what would be sent; nothing is stored."""
        request = await self._understood(call)
        upstream = self._upstream(request.model, self.dialect)
        name = call.headers.get(NAME_HEADER, "")
        plan = await self.proxy.thread(self.proxy.planner.preview, request, call.client, upstream, name)
        entry.done = plan.done.value
        headers = sent_headers(call.headers, call.client, upstream, self.dialect.api.bearer)
        url = upstream_url(upstream, self.path, call.query)
        async with self.proxy.upstreams.call("POST", url, headers, plan.body) as response:
            await outlet.whole(response, await read_reply(response), self.dialect, headers_about(plan))


class ModelsEndpoint(ProxyEndpoint):
    """`/v1/models`: what the upstream of the asked dialect offers."""

    async def serve(self, call: ProxyCall, outlet: Outlet, entry: RequestLog) -> None:
        """Ask the upstream; the client's headers tell which API is meant."""
        dialect = dialect_of_headers(call.headers)
        upstream = self._upstream(call.model, dialect)
        entry.done = Action.PASSED.value
        headers = sent_headers(call.headers, call.client, upstream, dialect.api.bearer)
        url = upstream_url(upstream, self.path, call.query, call.model)
        async with self.proxy.upstreams.call("GET", url, headers, None) as response:
            await outlet.whole(response, await read_reply(response), dialect, [])
