"""What the providers on official clients share: one call, its stream, its errors, its retries."""

from __future__ import annotations

import json
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import orjson

from leporello.cancel import CancelToken
from leporello.dialects import Dialect, StreamIncomplete, Target, WireReply
from leporello.dialects.base import drop_state, state_keys
from leporello.dialects.names import own_names
from leporello.messages import Message
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.deadline import CallGuard, RetryPolicy
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallCancelled, CallFailed, ErrorVerdict, classify
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


@dataclass(frozen=True, slots=True)
class Clock:
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


@dataclass(slots=True)
class _Shown:
    """What the user has seen of an answer. After the first letter a call is not repeated behind their back."""

    on_text: Delta | None
    text: list[str] = field(default_factory=list)

    def add(self, piece: str) -> None:
        if piece and self.on_text is not None:
            self.text.append(piece)
            self.on_text(piece)


class SdkProvider(ABC):
    """A provider on an official client. Threads may share it."""

    dialect: Dialect
    path: str

    def __init__(self, endpoint: Endpoint, tools: Clock | None = None) -> None:
        self.name = endpoint.name
        self.endpoint = endpoint
        self._tools = tools or Clock()
        self._lock = threading.Lock()
        self._made: Any = None
        self._stale: set[str] = set()
        self._learned: set[str] = set()

    # --- for the subclasses -------------------------------------------------------------------------------------

    @abstractmethod
    def _make_client(self) -> Any:
        """The official client, without retries of its own."""

    @abstractmethod
    def _errors(self) -> ModuleType:
        """The module with the client's exceptions."""

    @abstractmethod
    def target(self, model: str) -> Target:
        """Who receives the request."""

    def _always_streams(self) -> bool:
        return False

    def _body(self, request: ModelRequest, messages: list[Message], stream: bool) -> dict[str, Any]:
        body = self.dialect.encode_request(
            messages,
            request.tools,
            target=self.target(request.model),
            max_tokens=request.max_tokens,
            options=request.options,
        )
        return {**body, "stream": True} if stream else body

    # --- the call -----------------------------------------------------------------------------------------------

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        """Run one request to its end; `on_text` sees the text while it streams."""
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

    def _messages(self, request: ModelRequest) -> list[Message]:
        return drop_state(request.messages, self._stale) if self._stale else list(request.messages)

    def _once(self, request: ModelRequest, shown: _Shown) -> ModelReply:
        stream = (shown.on_text is not None or request.cancel is not None or self._always_streams()) and (
            "no_stream" not in self._learned
        )
        body = sendable(self._body(request, self._messages(request), stream))
        timeout = request.timeout or self.endpoint.timeout
        guard = CallGuard(request.cancel, timeout)
        with guard.watching():
            try:
                if stream:
                    reply = self._streamed(body, request, timeout, guard, shown)
                else:
                    reply = self._whole(body, request, timeout, guard)
            except self._failures() as error:
                raise self._failure(error, guard, request) from error
        if guard.fired == "cancelled":
            raise CallCancelled(f"{self.name}: the call was cancelled.")
        return self._as_reply(reply, shown, own_names(request.tools))

    def _whole(self, body: dict[str, Any], request: ModelRequest, timeout: float, guard: CallGuard) -> WireReply:
        wire = self._post(body, timeout, request.cancel, guard, stream=False)
        if not isinstance(wire, Mapping):
            raise StreamIncomplete("the answer is not a JSON object")
        self._check(wire)
        return self.dialect.decode_reply(wire, self.target(request.model))

    def _streamed(
        self, body: dict[str, Any], request: ModelRequest, timeout: float, guard: CallGuard, shown: _Shown
    ) -> WireReply:
        assembler = self.dialect.assembler()
        with self._post(body, timeout, request.cancel, guard, stream=True) as events:
            guard.attach(events.response)
            self._feed(assembler, events, shown)
        if not assembler.events:
            raise CallFailed(
                ErrorVerdict(ErrorKind.UNKNOWN, "empty_stream", message="The stream ended without a single event."),
                self.name,
                request.model,
            )
        wire = assembler.reply()
        self._check(wire)
        return self.dialect.decode_reply(wire, self.target(request.model))

    def _feed(self, assembler: Any, events: Iterable[Any], shown: _Shown) -> None:
        for event in events:
            if isinstance(event, Mapping):
                shown.add(assembler.feed(event))

    def _check(self, wire: Mapping[str, Any]) -> None:
        """Some servers answer 200 and put the error into the body."""
        error = wire.get("error")
        if error:
            raise CallFailed(classify(None, wire, now=self._tools.clock()), self.name, str(wire.get("model") or ""))

    def _post(
        self, body: dict[str, Any], timeout: float, cancel: CancelToken | None, guard: CallGuard, *, stream: bool
    ) -> Any:
        client = self._client()
        post = _Post(client, self.path, body, timeout, self._stream_type() if stream else None)
        return post.run() if cancel is None else post.run_cancellable(cancel, guard)

    def _stream_type(self) -> Any:
        return self._errors().Stream[object]

    def _client(self) -> Any:
        with self._lock:
            if self._made is None:
                self._made = self._make_client()
            return self._made

    def _as_reply(self, reply: WireReply, shown: _Shown, names: Mapping[str, str]) -> ModelReply:
        usage = CanonicalUsage.parse(reply.usage)
        message = _named(reply.message, names) if names else reply.message
        if shown.on_text is not None and not shown.text and isinstance(reply.message.get("content"), str):
            # The endpoint can't stream: the text comes at once.
            shown.add(reply.message["content"])
        return ModelReply(message, usage, reply.finish_reason, reply.model, has_usage=usage.total_tokens > 0)

    def close(self) -> None:
        """Give the connections back; the next call opens new ones."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()

    # --- errors -------------------------------------------------------------------------------------------------

    def _failures(self) -> tuple[type[Exception], ...]:
        errors = self._errors()
        return (errors.APIError, StreamIncomplete, *_transport_errors(), json.JSONDecodeError)

    def _failure(self, error: Exception, guard: CallGuard, request: ModelRequest) -> Exception:
        if guard.fired == "cancelled":
            return CallCancelled(f"{self.name}: the call was cancelled.")
        if guard.fired == "timeout":
            seconds = request.timeout or self.endpoint.timeout
            message = f"No complete answer within {seconds:g} seconds."
            return CallFailed(ErrorVerdict(ErrorKind.TRANSIENT, "timeout", message=message), self.name, request.model)
        return CallFailed(self._verdict(error, guard.began), self.name, request.model)

    def _verdict(self, error: Exception, began: bool) -> ErrorVerdict:
        errors = self._errors()
        now = self._tools.clock()
        if isinstance(error, errors.APITimeoutError):
            return ErrorVerdict(ErrorKind.TRANSIENT, "timeout", message="The provider did not answer in time.")
        if isinstance(error, errors.APIConnectionError) and not began:
            cause = error.__cause__ or error
            return ErrorVerdict(ErrorKind.TRANSIENT, "connection", message=f"No connection: {cause}")
        if isinstance(error, errors.APIStatusError):
            body = error.body if error.body is not None else error.response.text
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


@dataclass(frozen=True, slots=True)
class _Post:
    """One POST through a client, streamed when `stream_type` is given."""

    client: Any
    path: str
    body: dict[str, Any]
    timeout: float
    stream_type: Any

    def run(self) -> Any:
        stream = self.stream_type is not None
        kwargs = {"stream": True, "stream_cls": self.stream_type} if stream else {}
        options = {"timeout": _timeouts(self.timeout)}
        return self.client.post(self.path, body=self.body, cast_to=object, options=options, **kwargs)

    def run_cancellable(self, cancel: CancelToken, guard: CallGuard) -> Any:
        """Until the first byte there is no connection to cut: the waiting happens in a thread that can be left."""
        box = _Box(self, guard)
        thread = threading.Thread(target=box.fill, name="leporello-call", daemon=True)
        with cancel.closing(box.done.set):
            thread.start()
            box.done.wait()
        return box.take()


class _Box:
    """What a left or finished thread brings back."""

    def __init__(self, post: _Post, guard: CallGuard) -> None:
        self.done = threading.Event()
        self._post = post
        self._guard = guard
        self._lock = threading.Lock()
        self._left = False
        self._value: Any = None
        self._error: BaseException | None = None

    def fill(self) -> None:
        try:
            value = self._post.run()
        except BaseException as error:  # noqa: BLE001  carried to the waiting thread, which raises it
            self._error = error
        else:
            with self._lock:
                self._value = value
                left = self._left
            if left and hasattr(value, "close"):
                value.close()
        self.done.set()

    def take(self) -> Any:
        with self._lock:
            self._left = self._value is None and self._error is None
        if self._error is not None:
            raise self._error
        if self._left:
            raise CallCancelled("The call was cancelled before its answer began.")
        return self._value


def _http() -> Any:
    """The HTTP library the clients use: they bring it along."""
    try:
        return import_module("httpx2")
    except ImportError:
        return import_module("httpx")


def _transport_errors() -> tuple[type[Exception], ...]:
    """Errors that the clients let through while streaming."""
    return (_http().HTTPError, _http().StreamError)


def _timeouts(seconds: float) -> Any:
    """A dead host is noticed soon, whatever time the answer has."""
    return _http().Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
