"""The endpoints of the proxy: requests are rewritten, sent, recovered when too long, and answers relayed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import aiohttp
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from leporello.dialects import DIALECTS, OPENAI_CHAT, Dialect, dialect_of_headers
from leporello.errors import LeporelloError
from leporello.gateway.api_errors import ApiError, RequestRefused, refuse
from leporello.gateway.auth import BrowserCheck, Client, Keys, identify
from leporello.gateway.config import GatewayConfig, served_models, upstream_of
from leporello.gateway.limits import RENEW_SECONDS, USUAL_OUTPUT, DailyBudget, Gate, owner_of, read_body
from leporello.gateway.metrics import Metrics, RequestLog, log
from leporello.gateway.proxy.recall import ToolLoop
from leporello.gateway.proxy.relay import ClientGone, Outlet, Tally, read_whole, refusal_in, relay_stream, usage_of
from leporello.gateway.proxy.request import LARGE, WireRequest, read_request
from leporello.gateway.proxy.rewrite import BYTES_PER_TOKEN, Action, RequestRewriter, Rewrite
from leporello.gateway.proxy.upstream import (
    MODELS_PATH,
    Upstreams,
    UpstreamTarget,
    read_reply,
    returned_headers,
    sent_headers,
    upstream_url,
    verdict_on,
)
from leporello.providers.errors import ErrorVerdict, classify
from leporello.store.records import Reservation
from leporello.usage import CanonicalUsage

P = ParamSpec("P")
R = TypeVar("R")

NAME_HEADER = "x-leporello-conversation"
MOST_ANSWERS = 128
"""To one request, however many it asks for."""
STORE_ERROR = ApiError(503, "store_unavailable", "The gateway can't store the conversation now. Try again later.", 2)


class Proxy:
    """What all routes of the proxy share."""

    def __init__(
        self, config: GatewayConfig, keys: Keys, rewriter: RequestRewriter, upstreams: Upstreams, metrics: Metrics
    ) -> None:
        store = rewriter.conversations.store
        self.budget = DailyBudget(
            store, config.tokens_per_day, config.dollars_per_day, models=rewriter.settings.get("models")
        )
        self.config = config
        self.keys = keys
        self.browsers = BrowserCheck(keys, config.origins)
        self.rewriter = rewriter
        self.upstreams = upstreams
        self.metrics = metrics
        self.gate = Gate(config.rate, config.streams, time.monotonic)
        self._threads = ThreadPoolExecutor(8, "leporello-gateway")
        self._settling: set[asyncio.Task[None]] = set()

    async def thread(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run blocking work beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **kwargs))

    def settle(self, rewrite: Rewrite, *usages: CanonicalUsage | None, said: int = 0) -> None:
        """Count an answer (one usage for each call it took) and fold if due, while the client reads."""
        counted = [usage for usage in usages if usage is not None and usage.total_tokens]
        for usage in counted:
            self.metrics.count_usage(usage)
            self.budget.learn(rewrite.owner, rewrite.request.model, usage.output_tokens)
        if counted or rewrite.cached is not None:
            self._later(self._settle(rewrite, counted, self._later(self._count(rewrite, counted), rewrite.owner)))
        if len(counted) < len(usages):
            self.guess(rewrite, said)

    def guess(self, rewrite: Rewrite, said: int, known: CanonicalUsage | None = None) -> None:
        """Count for the day what nobody counted: an answer without figures, or one that was cut off."""
        self._later(self._guess(rewrite, said, known), rewrite.owner)

    def _later(self, work: Coroutine[Any, Any, None], counts_for: str | None = None) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=counts_for)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return task

    async def counted(self, owner: str) -> None:
        """Wait for figures of earlier answers to this owner: they are written while the client reads."""
        if tasks := [task for task in self._settling if task.get_name() == owner]:
            await asyncio.wait(tasks)

    @asynccontextmanager
    async def reserving(self, client: Client, request: WireRequest) -> AsyncIterator[None]:
        """Reserve what a request may use of its client's day until the block ends and all it used is counted."""
        if not self.budget.limits(client):
            yield
            return
        owner = owner_of(client)
        await self.counted(owner)
        usage = most_used(request, self.budget.usual_output(owner, request.model))
        # Not cut off with a client that hangs up: what was reserved must be known to be released.
        reserving = asyncio.ensure_future(self.thread(self.budget.reserve, client, request.model, usage))
        try:
            await asyncio.shield(reserving)
            yield
        finally:
            counting = [task for task in self._settling if task.get_name() == owner]
            self._later(self._release(reserving, counting), owner)

    async def _release(self, reserving: asyncio.Future[Reservation | None], counting: list[asyncio.Task[None]]) -> None:
        ended: list[asyncio.Future[Any]] = [reserving, *counting]
        await asyncio.wait(ended)
        if reserving.exception() is None and (held := reserving.result()) is not None:
            try:
                await self.thread(self.budget.release, held)
            except LeporelloError as error:
                log.error('{"problem": "release", "kind": "%s"}', type(error).__name__)

    async def renew(self) -> None:
        """Hold what is reserved for requests and turns under way, for as long as this process lives."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self.thread(self.budget.renew)
            except LeporelloError as error:
                log.warning('{"problem": "renew", "kind": "%s"}', type(error).__name__)

    async def _guess(self, rewrite: Rewrite, said: int, known: CanonicalUsage | None) -> None:
        try:
            usage = await self.thread(self.rewriter.guess, rewrite, said, known)
            await self.thread(self.budget.set_aside_calls, rewrite.owner, rewrite.request.model, [usage])
        except LeporelloError as error:
            log.error('{"problem": "settle", "kind": "%s"}', type(error).__name__)

    async def _count(self, rewrite: Rewrite, usages: list[CanonicalUsage]) -> None:
        try:
            if rewrite.cached is None:
                await self.thread(self.budget.set_aside_calls, rewrite.owner, rewrite.request.model, usages)
            else:
                await self.thread(self.rewriter.count, rewrite, usages)
        except LeporelloError as error:
            # The answer has gone out; that its figures could not be stored is for the log.
            log.error('{"problem": "settle", "kind": "%s"}', type(error).__name__)

    async def _settle(self, rewrite: Rewrite, usages: list[CanonicalUsage], counting: asyncio.Task[None]) -> None:
        try:
            await counting
            await self.thread(self.rewriter.settle, rewrite, usages)
        except LeporelloError as error:
            log.error('{"problem": "settle", "kind": "%s"}', type(error).__name__)

    async def drain(self) -> None:
        """Wait for what is still to be written."""
        while self._settling:
            await asyncio.gather(*self._settling)
        self._threads.shutdown(wait=True)


def proxy_routes(proxy: Proxy) -> list[BaseRoute]:
    apis = [(dialect, dialect.api) for dialect in DIALECTS.values()]
    asked = [ModelEndpoint(proxy, dialect, api.path) for dialect, api in apis]
    counted = [CountEndpoint(proxy, dialect, api.count_path) for dialect, api in apis if api.count_path]
    models = ModelsEndpoint(proxy, OPENAI_CHAT, MODELS_PATH)
    return [
        *(Route(endpoint.path, endpoint, methods=["POST"]) for endpoint in [*asked, *counted]),
        Route(MODELS_PATH, models, methods=["GET"]),
        Route(MODELS_PATH + "/{model:path}", models, methods=["GET"]),
    ]


@dataclass(frozen=True, slots=True)
class ProxyCall:
    """One request as it arrived."""

    headers: dict[str, str]
    client: Client
    data: bytes
    query: bytes
    model: str
    """The model that the path names."""


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
                entry.problem = refused.error.code
                await outlet.fail(refused.error, self.dialect)
            except LeporelloError as error:
                entry.problem = type(error).__name__
                await outlet.fail(STORE_ERROR, self.dialect)
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
                announced = headers.get("content-length")
                data = await read_body(receive, config.max_body, config.body_timeout, encoding, announced)
            model = str(scope.get("path_params", {}).get("model", "")).strip("/")
            call = ProxyCall(headers, client, data, scope.get("query_string", b""), model)
            work = asyncio.create_task(self.serve(call, outlet, entry))
            gone = asyncio.create_task(_disconnected(receive))
            try:
                await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    raise ClientGone
                await work
            finally:
                gone.cancel()
                work.cancel()
                await asyncio.gather(work, gone, return_exceptions=True)

    async def serve(self, call: ProxyCall, outlet: Outlet, entry: RequestLog) -> None:
        raise NotImplementedError

    def _target(self, call: ProxyCall, model: str, dialect: Dialect) -> UpstreamTarget:
        upstream = upstream_of(self.proxy.config.upstreams, model, dialect)
        if upstream is None:
            served = served_models(self.proxy.config.upstreams)
            raise refuse(
                404, "model_not_found", f"No upstream of this gateway serves that model. Served are: {served}."
            )
        headers = sent_headers(call.headers, call.client, upstream, dialect.api.bearer)
        return UpstreamTarget(upstream, upstream_url(upstream, self.path, call.query, call.model), headers)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class ModelEndpoint(ProxyEndpoint):
    """`chat/completions`, `responses` and `messages`."""

    async def serve(self, call: ProxyCall, outlet: Outlet, entry: RequestLog) -> None:
        """Read, rewrite, send and relay; a refusal that can be mended makes another request to send."""
        request = await self._read(call)
        async with self.proxy.reserving(call.client, request):
            await self._serve(call, request, outlet, entry)

    async def _serve(self, call: ProxyCall, request: WireRequest, outlet: Outlet, entry: RequestLog) -> None:
        target = self._target(call, request.model, self.dialect)
        began = time.perf_counter()
        rewrite: Rewrite | None = await self.proxy.thread(
            self.proxy.rewriter.rewrite, request, call.client, target.upstream, call.headers.get(NAME_HEADER, "")
        )
        self.proxy.metrics.planning.observe(time.perf_counter() - began)
        while rewrite is not None:
            entry.done, entry.conversation = rewrite.action.value, rewrite.conversation
            attempt = self._send_with_recall if rewrite.offered else self._send
            rewrite = await attempt(rewrite, target, outlet)

    async def _read(self, call: ProxyCall) -> WireRequest:
        if len(call.data) < LARGE:
            return read_request(self.dialect, call.data)
        name = call.headers.get(NAME_HEADER, "")
        return await self.proxy.thread(self.proxy.rewriter.read, self.dialect, call.data, call.client, name)

    async def _send(self, rewrite: Rewrite, target: UpstreamTarget, outlet: Outlet) -> Rewrite | None:
        """Send a request and relay what comes; another request when this one was refused and can be mended."""
        tally = Tally(self.dialect)
        try:
            return await self._sent(rewrite, target, outlet, tally)
        except (asyncio.CancelledError, ClientGone):
            # A client that hangs up has paid for what the model had read and said by then.
            if not tally.settled:
                self.proxy.guess(rewrite, tally.said, tally.usage)
            raise

    async def _sent(self, rewrite: Rewrite, target: UpstreamTarget, outlet: Outlet, tally: Tally) -> Rewrite | None:
        async with self.proxy.upstreams.call(target, rewrite.body) as response:
            if response.status >= 400:
                tally.settled = True
                return await self._refused(rewrite, response, outlet)
            about = headers_about(rewrite)
            if response.content_type != "text/event-stream":
                return await self._whole(rewrite, response, outlet, tally)
            try:
                await relay_stream(outlet, response, tally, about)
            finally:
                # A client may hang up as soon as it has read the last event: the answer was given all the same.
                if tally.ended and tally.error is None:
                    tally.settled = True
                    self.proxy.settle(rewrite, tally.usage, said=tally.said)
            if tally.error is None and not tally.settled:
                self.proxy.guess(rewrite, tally.said, tally.usage)
            tally.settled = True
            if tally.error is not None and not outlet.started:
                return await self._refused_inside(rewrite, tally.error, outlet)
        return None

    async def _whole(
        self, rewrite: Rewrite, response: aiohttp.ClientResponse, outlet: Outlet, tally: Tally
    ) -> Rewrite | None:
        """An answer in one piece, which may be a refusal whatever its status says."""
        body, reply = await read_whole(response)
        tally.settled = True
        about = headers_about(rewrite)
        if (refusal := refusal_in(reply, self.dialect)) is not None:
            outlet.hold(response.status, [*returned_headers(response.headers), *about])
            await outlet.give(body)
            return await self._refused_inside(rewrite, refusal, outlet)
        self.proxy.settle(rewrite, usage_of(reply), said=len(body))
        await outlet.whole(response, body, self.dialect, about)
        return None

    async def _send_with_recall(self, rewrite: Rewrite, target: UpstreamTarget, outlet: Outlet) -> Rewrite | None:
        """The same where the model can ask for its past: the answer may take several calls."""
        loop = ToolLoop(self.proxy, rewrite, target, outlet)
        try:
            async with self.proxy.upstreams.call(target, rewrite.body) as response:
                if response.status >= 400:
                    loop.tally.settled = True
                    return await self._refused(rewrite, response, outlet)
                error = await loop.first(response, headers_about(rewrite))
                if error is not None:
                    return await self._refused_inside(rewrite, error, outlet)
            await loop.rest()
        finally:
            # Whatever became of the answer: what was counted was paid for.
            if loop.rounds:
                self.proxy.settle(rewrite, *loop.usages)
            for tally in (*loop.uncounted, *([] if loop.tally.settled else [loop.tally])):
                self.proxy.guess(rewrite, tally.said, tally.usage)
            self.proxy.metrics.recalls.inc(loop.recalls)
        return None

    async def _refused(self, rewrite: Rewrite, response: aiohttp.ClientResponse, outlet: Outlet) -> Rewrite | None:
        body = await read_reply(response)
        mended = await self._mended(rewrite, verdict_on(response, body))
        if mended is None:
            await outlet.whole(response, body, self.dialect, headers_about(rewrite))
        return mended

    async def _refused_inside(self, rewrite: Rewrite, error: Mapping[str, Any], outlet: Outlet) -> Rewrite | None:
        """An error in a body, or first in a stream, whose status was that of a success; the outlet holds it back."""
        verdict = classify(None, error, now=time.time())
        mended = await self._mended(rewrite, verdict)
        if mended is None:
            await outlet.refusal(error, verdict, self.dialect)
        return mended

    async def _mended(self, rewrite: Rewrite, verdict: ErrorVerdict) -> Rewrite | None:
        return await self.proxy.thread(self.proxy.rewriter.recover, rewrite, verdict)


def most_used(request: WireRequest, usual: int = USUAL_OUTPUT) -> CanonicalUsage:
    """What a request may use, roughly: it holds that much of the day while it is under way.

    Without a cap of its own its answer is taken to be as long as `usual`.
    """
    caps = [request.fields.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    output = max((cap for cap in caps if type(cap) is int and cap > 0), default=usual)
    answers = request.fields.get("n")
    count = min(answers, MOST_ANSWERS) if type(answers) is int and answers > 1 else 1
    return CanonicalUsage(len(request.data) // BYTES_PER_TOKEN, output * count)


def headers_about(rewrite: Rewrite) -> list[tuple[bytes, bytes]]:
    """What was done to a request, for the client."""
    found = [(b"x-leporello", rewrite.action.value.encode())]
    if rewrite.conversation:
        found.append((NAME_HEADER.encode(), rewrite.conversation.encode()))
    if rewrite.decision:
        found.append((b"x-leporello-decision", rewrite.decision.encode("ascii", "replace")))
    return found


class CountEndpoint(ModelEndpoint):
    """`messages/count_tokens`: how large the request would be, known folds included. Nothing is stored."""

    async def serve(self, call: ProxyCall, outlet: Outlet, entry: RequestLog) -> None:
        request = await self._read(call)
        target = self._target(call, request.model, self.dialect)
        name = call.headers.get(NAME_HEADER, "")
        preview = self.proxy.rewriter.preview
        rewrite = await self.proxy.thread(preview, request, call.client, target.upstream, name)
        entry.done = rewrite.action.value
        async with self.proxy.upstreams.call(target, rewrite.body) as response:
            await outlet.whole(response, await read_reply(response), self.dialect, headers_about(rewrite))


class ModelsEndpoint(ProxyEndpoint):
    """`/v1/models`: what the upstream of the asked dialect offers; the client's headers tell which API is meant."""

    async def serve(self, call: ProxyCall, outlet: Outlet, entry: RequestLog) -> None:
        dialect = dialect_of_headers(call.headers)
        target = self._target(call, call.model, dialect)
        entry.done = Action.PASSED.value
        async with self.proxy.upstreams.call(target, None) as response:
            await outlet.whole(response, await read_reply(response), dialect, [])
