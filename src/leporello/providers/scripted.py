"""`ScriptedProvider`: a model that says what it was told to say, with a bill that is computed, not invented.

    provider = ScriptedProvider(["First answer", ProviderError("gone"), Wait(2.0, "late answer")])
    provider = ScriptedProvider(lambda request: f"You sent {len(request.messages)} messages")

It runs everything without a network: demos, tests and replays. Prompt tokens are counted from the request's own bytes;
cached ones come from a simulation of the vendor's cache (`CacheSim`) and the request's own cache marks. A request
beyond the window is refused as a provider would refuse it.
"""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from typing import TypeAlias

from msgspec import Struct

from leporello.billing import CacheMarksRefused, CacheSim, PromptReader
from leporello.dialects.pieces import tool_name
from leporello.errors import ConfigError, ProviderError
from leporello.files import shipped
from leporello.messages import Message, calls_of, is_result, role_of, text_of
from leporello.models.facts import ModelFacts, model_facts
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallCancelled, CallFailed, ErrorVerdict
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

STREAM_CHARS = 24
_NO_USAGE = CanonicalUsage()


class Wait(Struct, frozen=True):
    """Answer only after some seconds; a request whose timeout is shorter fails with a timeout."""

    seconds: float
    then: Step


Step: TypeAlias = str | Message | ModelReply | BaseException | Wait | Callable[[ModelRequest], "Step"]
"""One scripted answer: a text, an assistant message, a whole reply, an error to raise, a wait, or a function."""


class ScriptEnded(ProviderError):
    """More calls came than the script has answers."""


class ScriptedProvider:
    """Replays a script. `requests` and `replies` keep what was asked and answered. Threads may share it."""

    def __init__(
        self,
        script: Iterable[Step] | Callable[[ModelRequest], Step],
        *,
        name: str = "scripted",
        window: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self.window = window
        """Requests of more tokens are refused; None: whatever the model is known to take."""
        self.requests: list[ModelRequest] = []
        self.replies: list[ModelReply] = []
        self._steps: Iterator[Step] = repeat(script) if callable(script) else iter(script)
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._models: dict[str, _Model] = {}

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        with self._lock:
            self.requests.append(request)
            model = self._models.setdefault(request.model, _Model.named(request.model))
            prompt = model.counter.request(request.messages, request.tools)
            self._check_window(request, model, prompt)
            step = next(self._steps, None)
        if step is None:
            raise ScriptEnded(f"{self.name}: the script has no answer for call {len(self.requests)}; add steps to it")
        reply = self._play(step, request)
        with self._lock:
            reply = self._billed(reply, request, model)
            self.replies.append(reply)
        if on_text is not None:
            text = text_of(reply.message)
            for start in range(0, len(text), STREAM_CHARS):
                on_text(text[start : start + STREAM_CHARS])
        return reply

    def _check_window(self, request: ModelRequest, model: _Model, prompt: int) -> None:
        window = self.window or model.facts.window
        if prompt <= window:
            return
        verdict = ErrorVerdict(
            ErrorKind.INPUT_OVERFLOW,
            stated_limit=window,
            requested=prompt,
            status=400,
            code="context_length_exceeded",
            message=f"the prompt of {prompt} tokens is longer than the window of {window} tokens",
        )
        raise CallFailed(verdict, self.name, request.model)

    def _play(self, step: Step, request: ModelRequest) -> ModelReply:
        while True:
            if isinstance(step, Wait):
                self._wait(step.seconds, request)
                step = step.then
            elif isinstance(step, BaseException):
                raise step
            elif isinstance(step, ModelReply):
                return step
            elif isinstance(step, str):
                return ModelReply({"role": "assistant", "content": step}, _NO_USAGE, model=request.model)
            elif isinstance(step, dict):
                ending = "tool_calls" if calls_of(step) else "stop"
                return ModelReply(step, _NO_USAGE, finish_reason=ending, model=request.model)
            else:
                step = step(request)

    def _wait(self, seconds: float, request: ModelRequest) -> None:
        if request.timeout is None or seconds <= request.timeout:
            self._sleep(seconds)
            return
        self._sleep(request.timeout)
        late = f"no answer within {request.timeout:g} s"
        raise CallFailed(ErrorVerdict(ErrorKind.TRANSIENT, cause="timeout", message=late), self.name, request.model)

    def _billed(self, reply: ModelReply, request: ModelRequest, model: _Model) -> ModelReply:
        if reply.usage != _NO_USAGE or not reply.has_usage:
            return reply
        reply = _capped(reply, request.max_tokens, model.counter)
        output = model.counter.message(reply.message)
        try:
            prompt = PromptReader(model.counter).read(request.messages, request.tools)
            bill = model.cache.bill(prompt, self._clock())
        except CacheMarksRefused as error:
            verdict = ErrorVerdict(ErrorKind.MALFORMED, status=400, message=str(error))
            raise CallFailed(verdict, self.name, request.model) from error
        return replace(reply, usage=bill.usage(output))


class _Model(Struct):
    facts: ModelFacts
    counter: TokenCounter
    cache: CacheSim

    @classmethod
    def named(cls, name: str) -> _Model:
        facts = model_facts(name)
        return cls(facts, TokenCounter.for_model(name), CacheSim(facts.cache))


def _capped(reply: ModelReply, most: int | None, counter: TokenCounter) -> ModelReply:
    """Cut a text that is longer than the request allows, as a provider would."""
    text = text_of(reply.message)
    if most is None or calls_of(reply.message) or counter.text(text) <= most:
        return reply
    stop = bisect_right(range(1, len(text) + 1), most, key=lambda length: counter.text(text[:length]))
    return replace(reply, message={**reply.message, "content": text[:stop]}, finish_reason="length")


SCRIPTED = "scripted"
SCRIPTED_PREFIX = f"{SCRIPTED}:"
DEMO_MODEL = f"{SCRIPTED_PREFIX}demo"
DEMO_WINDOW = 16_000
PACE = 0.02  # seconds between two pieces of text
_CALLS: tuple[tuple[set[str], str, dict[str, str]], ...] = (
    ({"file", "list", "look", "folder", "ls"}, "terminal", {"command": "ls -la"}),
    ({"count", "long", "output"}, "terminal", {"command": "seq 1 400"}),
    ({"wait", "slow", "sleep"}, "terminal", {"command": "sleep 60"}),
    ({"write", "note", "save"}, "write_file", {"path": "note.md", "content": "# A note\n\nwritten.\n"}),
)
"""Words of the user, and the call they lead to."""


class PacedProvider:
    """A scripted model that writes at a speed one can watch, and stops when it is told to."""

    def __init__(self, inner: ScriptedProvider, pace: float = PACE) -> None:
        self.name = inner.name
        self._inner = inner
        self._pace = pace

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        """The scripted answer, piece by piece."""

        def paced(text: str) -> None:
            if request.cancel is not None and request.cancel.wait(self._pace):
                raise CallCancelled("The call was cancelled.")
            if request.cancel is None:
                time.sleep(self._pace)
            if on_text is not None:
                on_text(text)

        return self._inner.complete(request, paced if on_text is not None else None)


def demo_provider(name: str) -> PacedProvider:
    """The model behind `scripted:NAME`, for the agent."""
    return PacedProvider(_demo(name, _answer))


def demo_talk(name: str) -> ScriptedProvider:
    """The same for requests of any client: without tools, too, it is asked to talk."""
    return _demo(name, _talk)


def _demo(name: str, script: Callable[[ModelRequest], Step]) -> ScriptedProvider:
    if name != DEMO_MODEL:
        raise ConfigError(f"There is no scripted model {name!r}. There is one: {DEMO_MODEL}.")
    return ScriptedProvider(script, name=SCRIPTED, window=DEMO_WINDOW)


def _answer(request: ModelRequest) -> Step:
    # The agent always has tools; summaries are made without a model here.
    return _talk(request) if request.tools else "The scripted model writes no summaries."


def _talk(request: ModelRequest) -> Step:
    newest = request.messages[-1]
    if is_result(newest):
        return _about(text_of(newest))
    offered = {tool_name(tool) for tool in request.tools}
    asked = next((text_of(m) for m in reversed(request.messages) if role_of(m) == "user"), "")
    words = {word.strip(".,!?").lower() for word in asked.split()}
    for triggers, name, arguments in _CALLS:
        if words & triggers and name in offered:
            return _call(f"call_{len(request.messages)}", name, arguments)
    return _page("story" if words & {"tell", "story", "explain", "page"} else "hello")


def _call(id: str, name: str, arguments: dict[str, str]) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function", "function": function}]}


def _about(output: str) -> str:
    count = output.count("\n") + 1
    lines = f"{count:,} lines" if count > 1 else "one line"
    ending = output.strip().splitlines()[-1][:60] if output.strip() else "nothing"
    return f"The tool came back with **{lines}**. The last one is:\n\n```\n{ending}\n```\n"


def _page(name: str) -> str:
    return shipped("leporello.providers", f"demo_pages/{name}.md").decode()
