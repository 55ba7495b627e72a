"""A model server on loopback: it speaks all three dialects and plays a script.

    with StubServer([Say("Hello"), Fail(529, {...}), Say(calls=[("ls", "{}")]), Cut(Say("Half"), after=3)]) as server:
        client = OpenAI(base_url=server.url + "/v1", api_key="x")

Each request takes the next step of the script. With `violations`, a function that names what is wrong with a request,
a wrong one is answered 400 with the reasons, in the dialect's own error shape, and takes no step. `server.requests`
keeps what came.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from leporello.dialects import DIALECTS, OPENAI_CHAT, Dialect, Target
from leporello.messages import Message
from leporello.usage import CanonicalUsage


@dataclass(frozen=True, slots=True)
class Say:
    """An answer: text, calls as (name, arguments), or a whole message with opaque state."""

    text: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    message: Message | None = None
    finish: str = ""
    usage: CanonicalUsage | None = field(default_factory=lambda: CanonicalUsage(10, 5, 90, 0, 2))

    def build(self, number: int) -> tuple[Message, str]:
        """The message and its finish reason; ids differ from request to request."""
        if self.message is not None:
            message = self.message
        else:
            message = {"role": "assistant", "content": self.text}
            if self.calls:
                message["tool_calls"] = [
                    {"id": f"call_{number}_{k}", "type": "function", "function": {"name": name, "arguments": arguments}}
                    for k, (name, arguments) in enumerate(self.calls)
                ]
        return message, self.finish or ("tool_calls" if message.get("tool_calls") else "stop")


@dataclass(frozen=True, slots=True)
class Fail:
    """A refusal with a status, a body and headers; with status 200 the body is an error inside a success."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer whose stream breaks off after so many events; `clean` ends it as if it were whole."""

    say: Say
    after: int
    clean: bool = False


@dataclass(frozen=True, slots=True)
class StreamError:
    """A stream that begins well and carries an error event after so many events."""

    say: Say
    after: int
    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hold:
    """An answer whose stream waits for `release` after so many events (before its headers when `after` is None)."""

    say: Say
    release: threading.Event
    after: int | None = 1


Violations: TypeAlias = Callable[[Dialect, Mapping[str, Any]], Iterable[str]]
Step: TypeAlias = Say | Fail | Cut | StreamError | Hold | Callable[["Seen"], "Step"]


@dataclass(frozen=True, slots=True)
class Seen:
    dialect: Dialect | None
    """None for a path that is not a model API's."""
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    body: Any
    violations: tuple[str, ...] = ()


class StubServer:
    """The server; a context manager. `answers` holds plain GET and POST answers by path (`/props`, `/api/show`)."""

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        answers: Mapping[str, Any] | None = None,
        violations: Violations | None = None,
    ) -> None:
        self._script: Iterator[Step] = iter(script)
        self._lock = threading.Lock()
        self.answers = dict(answers or {})
        self._violations = violations
        self.requests: list[Seen] = []
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> StubServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def bodies(self) -> list[Any]:
        return [seen.body for seen in self.requests if seen.dialect is not None]

    def see(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[Seen, int]:
        dialect = next((known for known in DIALECTS.values() if known.api.path == path), None)
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        seen = Seen(dialect, path, headers, raw, body, tuple(self._judge(dialect, body)))
        with self._lock:
            self.requests.append(seen)
            return seen, len(self.requests) - 1

    def _judge(self, dialect: Dialect | None, body: Any) -> list[str]:
        if dialect is None:
            return []
        if not isinstance(body, Mapping):
            return ["We could not parse the JSON body of your request."]
        return list(self._violations(dialect, body)) if self._violations is not None else []

    def step(self, seen: Seen) -> Step:
        with self._lock:
            found = next(self._script, None)
        while callable(found):
            found = found(seen)
        return found or Fail(500, {"error": {"message": "the script has ended", "type": "stub_error"}})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up whenever they like; everything else is reported."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def __init__(self, stub: StubServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stub = stub


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("content-length") or 0)))

    def _serve(self, raw: bytes) -> None:
        stub = self.server.stub
        path = self.path.partition("?")[0]
        seen, number = stub.see(path, {name.lower(): value for name, value in self.headers.items()}, raw)
        try:
            if seen.dialect is None:
                answer = stub.answers.get(path)
                self._json(404 if answer is None else 200, answer if answer is not None else {"error": "not found"})
            elif seen.violations:
                self._json(400, seen.dialect.error_body(400, None, "; ".join(seen.violations)))
            else:
                self._step(seen.dialect, seen.body, number, stub.step(seen))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _step(self, dialect: Dialect, body: Mapping[str, Any], number: int, step: Step) -> None:
        if isinstance(step, Fail):
            self._json(step.status, step.body, step.headers)
            return
        say = step if isinstance(step, Say) else step.say  # type: ignore[union-attr]
        reply = _reply(dialect, body, say, number)
        if isinstance(step, Hold) and step.after is None:
            step.release.wait()
        if not body.get("stream"):
            self._json(200, reply)
            return
        if dialect is OPENAI_CHAT and not (body.get("stream_options") or {}).get("include_usage"):
            reply.pop("usage", None)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self._events(dialect, reply, step)

    def _events(self, dialect: Dialect, reply: dict[str, Any], step: Step) -> None:
        for position, event in enumerate(dialect.reply_events(reply)):
            if isinstance(step, Cut) and position == step.after:
                self._end(step.clean)
                return
            if isinstance(step, StreamError) and position == step.after:
                self._chunk(_sse(dialect, dict(step.error), "error"))
                self._end(clean=True)
                return
            self._chunk(_sse(dialect, event))
            if isinstance(step, Hold) and position + 1 == step.after:
                step.release.wait()
        if dialect.stream.end_mark:
            self._chunk(dialect.stream.end_mark)
        self._end(clean=True)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _end(self, clean: bool) -> None:
        if clean:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def _json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        given = {"content-type": "application/json", **(headers or {}), "content-length": str(len(data))}
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _reply(dialect: Dialect, body: Mapping[str, Any], say: Say, number: int) -> dict[str, Any]:
    message, finish = say.build(number)
    provider = (message.get("provider_state") or {}).get("provider", "")
    target = Target(provider, str(body.get("model")))
    reply = dialect.encode_reply(message, target=target, finish_reason=finish, usage=say.usage)
    # Clients take answers with the same id for parts of one.
    reply["id"] = f"{reply['id']}_{number}"
    if say.usage is None:
        reply.pop("usage", None)
    return reply


def _sse(dialect: Dialect, event: Mapping[str, Any], name: str = "") -> bytes:
    name = f"event: {name or event.get('type')}\n" if dialect.stream.named else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()
