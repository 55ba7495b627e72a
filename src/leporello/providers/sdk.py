"""What the providers on official clients share: one call, its stream, its time, its errors, its retries."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from leporello.cancel import CancelToken
from leporello.dialects import Dialect, StreamIncomplete, Target
from leporello.dialects.base import drop_state, state_keys
from leporello.dialects.pieces import own_names
from leporello.errors import how_to_install
from leporello.messages import Message
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallCancelled, CallFailed, ClientMissing, ErrorVerdict, classify, is_refused
from leporello.usage import CanonicalUsage


def sendable(value: Any) -> Any:
    """The value, with unsendable text mended; the same object when there is none, which is nearly always."""
    try:
        orjson.dumps(value)
    except TypeError:
        return _mended(value)
    return value


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value


CONNECT_SECONDS = 10.0
NO_KEY = "none"
"""Sent to endpoints that want no key: the client insists on one, and would else look for it in the environment."""


def load(package: str) -> Any:
    """The package, or an error that says how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ClientMissing(
            f"Calling this provider needs the package {package!r}. Install it with: {how_to_install(package)}"
        ) from error


class CallGuard:
    """Watches one call: cuts its connection when it is cancelled or out of time, and remembers why."""

    def __init__(self, cancel: CancelToken | None, timeout: float | None) -> None:
        self._cancel = cancel or CancelToken()
        self._timeout = timeout
        self._lock = threading.Lock()
        self._response: Any = None
        self.fired = ""
        """`cancelled`, `timeout`, or nothing yet."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[CallGuard]:
        timer = threading.Timer(self._timeout, self._fire, ("timeout",)) if self._timeout else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            with self._cancel.closing(lambda: self._fire("cancelled")):
                yield self
        finally:
            if timer is not None:
                timer.cancel()

    @property
    def began(self) -> bool:
        return self._response is not None

    def attach(self, response: Any) -> None:
        """The response whose connection is to be cut."""
        with self._lock:
            self._response = response
            late = bool(self.fired)
        if late:
            _cut(response)

    def _fire(self, reason: str) -> None:
        with self._lock:
            self.fired = self.fired or reason
            response = self._response
        if response is not None:
            _cut(response)


def _cut(response: Any) -> None:
    """Shut the socket under a response down: that wakes a thread that waits for its next byte, closing does not."""
    stream = getattr(response, "extensions", {}).get("network_stream")
    raw = stream.get_extra_info("socket") if stream is not None else None
    if isinstance(raw, socket.socket):
        with contextlib.suppress(OSError):
            raw.shutdown(socket.SHUT_RDWR)


class RetryPolicy(Struct, frozen=True):
    """Bounded tries with growing waits, for failures that pass by themselves. Nothing else is ever repeated."""

    tries: int = 4
    first: float = 0.5
    growth: float = 2.0
    longest: float = 60.0
    """A provider that asks for a longer wait than this gets none: the caller hears of it at once."""

    def wait(self, verdict: ErrorVerdict, done: int, jitter: float) -> float | None:
        """Seconds before the next try, or None when there is none. `jitter` in 0..1 spreads waits that nobody asked
        for, so that many clients don't come back together."""
        if not verdict.retryable or verdict.cause == "memory" or done + 1 >= self.tries:
            return None
        if verdict.retry_after is not None:
            return verdict.retry_after if verdict.retry_after <= self.longest else None
        return min(self.longest, self.first * self.growth**done) * (0.5 + jitter / 2)


class Clock(Struct, frozen=True):
    """What time and chance are, for tests."""

    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and as whom a provider calls."""

    name: str
    base_url: str
    api_key: str = field(default="", repr=False)
    timeout: float = 600.0
    """Longest time one answer may take, unless the request says otherwise."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class _Shown(Struct):
    """What the user has seen of an answer. After the first letter a call is not repeated behind their back."""

    on_text: Delta | None
    text: list[str] = msgspec.field(default_factory=list)

    def add(self, piece: str) -> None:
        if piece and self.on_text is not None:
            self.text.append(piece)
            self.on_text(piece)


class SdkProvider(ABC):
    """A provider on an official client. Threads may share it."""

    dialect: Dialect
    path: str
    client: str
    """The class of the official client, in the package of the dialect's vendor."""
    always_streams = False

    def __init__(self, endpoint: Endpoint, tools: Clock | None = None) -> None:
        self.name = endpoint.name
        self.endpoint = endpoint
        self._tools = tools or Clock()
        self._lock = threading.Lock()
        self._made: Any = None
        self._stale: set[str] = set()
        self._learned: set[str] = set()

    @abstractmethod
    def target(self, model: str) -> Target:
        """Who receives the request."""

    def _package(self) -> Any:
        return load(self.dialect.api.vendor)

    def _base_url(self) -> str:
        return self.endpoint.base_url

    def _body(self, request: ModelRequest, stream: bool) -> dict[str, Any]:
        body = self.dialect.encode_request(
            drop_state(request.messages, self._stale) if self._stale else list(request.messages),
            request.tools,
            target=self.target(request.model),
            max_tokens=request.max_tokens,
            options=request.options,
        )
        return {**body, "stream": True} if stream else body

    # --- the call -----------------------------------------------------------------------------------------------

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        done = 0
        while True:
            shown = _Shown(on_text)
            try:
                return self._once(request, shown)
            except CallFailed as error:
                error.partial = "".join(shown.text)
                if error.partial:
                    raise
                if self._heal(error.verdict, request):
                    continue
                wait = self.endpoint.retry.wait(error.verdict, done, self._tools.jitter())
                if wait is None:
                    raise
                done += 1
                self._pause(wait, request.cancel)

    def _pause(self, seconds: float, cancel: CancelToken | None) -> None:
        if cancel is None:
            self._tools.sleep(seconds)
        elif cancel.wait(seconds):
            raise CallCancelled(f"{self.name}: the call was cancelled while it waited to try again.")

    def _heal(self, verdict: ErrorVerdict, request: ModelRequest) -> bool:
        """Mend what this receiver can't take, once each; says whether the call is worth repeating now."""
        if verdict.cause == "stale_thinking":
            # Signed blocks are bound to the turns before them: after a compaction they are sent no more.
            keys = state_keys(request.messages) - self._stale
            self._stale |= keys
            return bool(keys)
        return self._learn(self._lesson(verdict))

    def _learn(self, lesson: str) -> bool:
        """Remember a lesson; says whether it is new."""
        if not lesson or lesson in self._learned:
            return False
        self._learned.add(lesson)
        return True

    def _lesson(self, verdict: ErrorVerdict) -> str:
        """What a refusal teaches about this endpoint; see `_body` of each provider for what follows from it."""
        if verdict.cause == "empty_stream":
            return "no_stream"
        return ""

    def _once(self, request: ModelRequest, shown: _Shown) -> ModelReply:
        wanted = shown.on_text is not None or request.cancel is not None or self.always_streams
        stream = wanted and "no_stream" not in self._learned
        body = sendable(self._body(request, stream))
        guard = CallGuard(request.cancel, request.timeout or self.endpoint.timeout)
        with guard.watching():
            try:
                wire = self._streamed(body, request, guard, shown) if stream else self._whole(body, request)
                self._check(wire)
                reply = self.dialect.decode_reply(wire, self.target(request.model))
            except self._failures() as error:
                raise self._failure(error, guard, request) from error
        if guard.fired == "cancelled":
            raise CallCancelled(f"{self.name}: the call was cancelled.")
        names = own_names(request.tools)
        usage = CanonicalUsage.parse(reply.usage)
        message = _named(reply.message, names) if names else reply.message
        if shown.on_text is not None and not shown.text and isinstance(reply.message.get("content"), str):
            # The endpoint can't stream: the text comes at once.
            shown.add(reply.message["content"])
        return ModelReply(message, usage, reply.finish_reason, reply.model, has_usage=usage.total_tokens > 0)

    def _whole(self, body: dict[str, Any], request: ModelRequest) -> Mapping[str, Any]:
        wire = self._post(body, request, stream=False)
        if not isinstance(wire, Mapping):
            raise StreamIncomplete("the answer is not a JSON object")
        return wire

    def _streamed(
        self, body: dict[str, Any], request: ModelRequest, guard: CallGuard, shown: _Shown
    ) -> Mapping[str, Any]:
        assembler = self.dialect.assembler()
        with self._post(body, request, stream=True) as events:
            guard.attach(events.response)
            self._feed(assembler, events, shown)
        if not assembler.events:
            said = "The stream ended without a single event."
            raise CallFailed(ErrorVerdict(ErrorKind.UNKNOWN, "empty_stream", message=said), self.name, request.model)
        return assembler.reply()

    def _feed(self, assembler: Any, events: Iterable[Any], shown: _Shown) -> None:
        for event in events:
            if isinstance(event, Mapping):
                if is_refused(event):
                    self._check(event)
                shown.add(assembler.feed(event))

    def _check(self, wire: Mapping[str, Any]) -> None:
        """Some servers answer 200 and put the error into the body."""
        if wire.get("error") or is_refused(wire):
            raise CallFailed(classify(None, wire, now=self._tools.clock()), self.name, str(wire.get("model") or ""))

    def _post(self, body: dict[str, Any], request: ModelRequest, *, stream: bool) -> Any:
        client = self._client()
        streaming = {"stream": True, "stream_cls": self._package().Stream[object]} if stream else {}
        options = {"timeout": _timeouts(request.timeout or self.endpoint.timeout)}

        def send() -> Any:
            return client.post(self.path, body=body, cast_to=object, options=options, **streaming)

        return send() if request.cancel is None else _cancellable(send, request.cancel)

    def _client(self) -> Any:
        with self._lock:
            if self._made is None:
                make = getattr(self._package(), self.client)
                self._made = make(
                    api_key=self.endpoint.api_key or NO_KEY,
                    base_url=self._base_url(),
                    timeout=self.endpoint.timeout,
                    max_retries=0,
                    default_headers=dict(self.endpoint.headers),
                )
            return self._made

    def close(self) -> None:
        """Give the connections back; the next call opens new ones."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()

    # --- errors -------------------------------------------------------------------------------------------------

    def _failures(self) -> tuple[type[Exception], ...]:
        # Some errors of the HTTP library the clients let through while streaming.
        http = _http()
        return (self._package().APIError, StreamIncomplete, http.HTTPError, http.StreamError, json.JSONDecodeError)

    def _failure(self, error: Exception, guard: CallGuard, request: ModelRequest) -> Exception:
        if guard.fired == "cancelled":
            return CallCancelled(f"{self.name}: the call was cancelled.")
        if guard.fired == "timeout":
            seconds = request.timeout or self.endpoint.timeout
            message = f"No complete answer within {seconds:g} seconds."
            return CallFailed(ErrorVerdict(ErrorKind.TRANSIENT, "timeout", message=message), self.name, request.model)
        return CallFailed(self._verdict(error, guard.began), self.name, request.model)

    def _verdict(self, error: Exception, began: bool) -> ErrorVerdict:
        errors = self._package()
        now = self._tools.clock()
        if isinstance(error, errors.APITimeoutError):
            return ErrorVerdict(ErrorKind.TRANSIENT, "timeout", message="The provider did not answer in time.")
        if isinstance(error, errors.APIConnectionError) and not began:
            cause = error.__cause__ or error
            return ErrorVerdict(ErrorKind.TRANSIENT, "connection", message=f"No connection: {cause}")
        if isinstance(error, errors.APIStatusError):
            # Where `error` is a mere word, the reason stands beside it, and a client's own `body` has it no more.
            body = error.body if isinstance(error.body, Mapping) else error.response.text
            return classify(error.status_code, body, dict(error.response.headers), now=now)
        if isinstance(error, errors.APIError) and not isinstance(error, errors.APIConnectionError):
            return classify(None, error.body or error.message, now=now)
        why = error.__cause__ or error
        return ErrorVerdict(ErrorKind.TRANSIENT, "stream_cut", message=f"The answer broke off: {why}")


def _named(message: Message, names: Mapping[str, str]) -> Message:
    """Calls under the names their tools have here."""
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function")
        if isinstance(function, Mapping) and function.get("name") in names:
            call = {**call, "function": {**function, "name": names[function["name"]]}}
        calls.append(call)
    return {**message, "tool_calls": calls} if calls else message


def _cancellable(send: Callable[[], Any], cancel: CancelToken) -> Any:
    """Until the first byte there is no connection to cut: the waiting happens in a thread that can be left."""
    answer: Future[Any] = Future()

    def run() -> None:
        try:
            value = send()
        except BaseException as error:  # noqa: BLE001  carried to the waiting thread, which raises it
            if answer.set_running_or_notify_cancel():
                answer.set_exception(error)
            return
        if answer.set_running_or_notify_cancel():
            answer.set_result(value)
        elif hasattr(value, "close"):
            value.close()

    def leave() -> None:
        answer.cancel()

    with cancel.closing(leave):
        threading.Thread(target=run, name="leporello-call", daemon=True).start()
        try:
            return answer.result()
        except CancelledError:
            raise CallCancelled("The call was cancelled before its answer began.") from None


def _http() -> Any:
    """The HTTP library the clients use: they bring it along."""
    try:
        return import_module("httpx2")
    except ImportError:
        return import_module("httpx")


def _timeouts(seconds: float) -> Any:
    """A dead host is noticed soon, whatever time the answer has."""
    return _http().Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
