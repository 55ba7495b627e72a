"""`PluginGuard`: calls other people's code, with a time limit, and undoes what it does to the program around it.

What it prints is kept from standard output; the working directory, the environment and the standard streams are put
back. What no thread can undo (`os._exit`, bytes written to a descriptor) needs `plugins.isolation: process`.
"""

from __future__ import annotations

import inspect
import io
import logging
import queue
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from leporello.config.sources import ProcessState
from leporello.errors import EngineError, LeporelloError
from leporello.redact import redact

_lock = threading.Lock()
_captured: dict[int, io.TextIOWrapper] = {}


class _Divided:
    """Stands in for `sys.stdout`: each thread gets its own."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(_captured.get(threading.get_ident(), self.real), name)


@contextmanager
def captured_output() -> Iterator[io.BytesIO]:
    """What the current thread prints inside the block, text or bytes. Others may enter and leave at the same time."""
    printed = io.BytesIO()
    me = threading.get_ident()
    with _lock:
        if not isinstance(sys.stdout, _Divided):
            sys.stdout = _Divided(sys.stdout)
        before = _captured.get(me)
        _captured[me] = io.TextIOWrapper(printed, encoding="utf-8", errors="replace", write_through=True)
    try:
        yield printed
    finally:
        with _lock:
            del _captured[me]
            if before is not None:
                _captured[me] = before
            # Somebody else may have put another stream in place meanwhile; that one stays.
            if not _captured and isinstance(sys.stdout, _Divided):
                sys.stdout = sys.stdout.real


T = TypeVar("T")

LEAST_SECONDS = 0.05
LONGEST_REASON = 300
MOST_PRINTED = 80

_log = logging.getLogger("leporello.plugins")


class _Outcome(NamedTuple):
    """What came of one call."""

    value: Any
    error: BaseException | None
    printed: str
    changed: tuple[str, ...] = ()
    """What of the program it changed; it is as before."""


class _Call:
    """One call of foreign code, by the thread of its plugin.

    What it changes of the program is put back once: by that thread when it ends, or by whoever gave up waiting for it.
    From then on the program may have changed the same things itself. What was given up before it began never begins.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._restore: Callable[[], Iterator[str]] | None = None
        self._given_up = False
        self.future: Future[_Outcome] = Future()

    def run(self) -> None:
        value, error, text = None, None, ""
        changed: tuple[str, ...] = ()
        state = ProcessState.now()
        try:
            with captured_output() as printed:
                try:
                    if self._begin(partial(_restore, state, (sys.stdout, sys.stderr))):
                        value = self._function()
                finally:
                    text = printed.getvalue().decode("utf-8", "replace")
                    changed = self.put_back()
        except BaseException as raised:  # noqa: BLE001 - foreign code: even SystemExit must end here, as a message
            error = raised
        self.future.set_result(_Outcome(value, error, text, changed))

    def _begin(self, restore: Callable[[], Iterator[str]]) -> bool:
        with self._lock:
            if not self._given_up:
                self._restore = restore
            return not self._given_up

    def put_back(self) -> tuple[str, ...]:
        """Undo what was changed so far, unless that was done; what it was."""
        with self._lock:
            restore, self._restore, self._given_up = self._restore, None, True
            return tuple(restore()) if restore is not None else ()


def _restore(state: ProcessState, streams: tuple[Any, Any]) -> Iterator[str]:
    if (sys.stdout, sys.stderr) != streams:
        sys.stdout, sys.stderr = streams
        yield "the standard streams"
    yield from state.restore()


def _work(jobs: queue.SimpleQueue[_Call | None]) -> None:
    while (call := jobs.get()) is not None:
        call.run()


class PluginGuard:
    """Calls the code of one plugin. `who` names it in messages: `engine tiny`, `plugin notes`."""

    def __init__(self, who: str, seconds: float = 20.0, on_trouble: Callable[[str], None] | None = None) -> None:
        self.who = who
        self.seconds = max(LEAST_SECONDS, seconds)
        self.hung = ""
        """The method that never came back; after that nothing of the plugin is called any more."""
        self.on_trouble = on_trouble
        self.on_hung: Callable[[], None] | None = None
        self._said: set[str] = set()
        self._jobs: queue.SimpleQueue[_Call | None] | None = None

    def call(self, method: str, function: Callable[..., T], *args: Any, seconds: float = 0, **kwargs: Any) -> T:
        """The result of a call; an `EngineError` that names plugin and method when there is none."""
        if self.hung:
            raise EngineError(f"{self.who}: {self.hung} hung; the plugin is not called any more")
        call = _Call(lambda: function(*args, **kwargs))
        self._queue().put(call)
        limit = max(seconds, self.seconds)
        try:
            done = call.future.result(limit)
        except FutureTimeout:
            call.put_back()
            self.hung = method
            self.close()
            if self.on_hung is not None:
                self.on_hung()
            raise EngineError(f"{self.who}: {method} did not end within {limit:g} s; it is not called again") from None
        if done.printed:
            printed = redact(done.printed.rstrip())
            _log.info("%s: %s printed: %s", self.who, method, printed)
            said = f"{self.who}: {method} printed {' '.join(printed.split())[:MOST_PRINTED]!r}"
            self.note(f"{said}; standard output is the program's.", once=f"{method} prints")
        if done.changed:
            what = " and ".join(done.changed)
            self.note(f"{self.who}: {method} changed {what} of the program; that was put back.")
        if done.error is not None:
            _log.debug("%s: %s failed", self.who, method, exc_info=done.error)
            raise EngineError(f"{self.who}: {method} failed: {reason(done.error)}") from None
        value: T = done.value
        return value

    def ask(self, method: str, function: Callable[..., T], otherwise: T, *args: Any, **kwargs: Any) -> T:
        """The result of a call, or what counts instead when it fails; then that is said once for each method."""
        if self.hung:
            return otherwise
        try:
            return self.call(method, function, *args, **kwargs)
        except EngineError as error:
            self.note(f"{error}. Leporello goes on without it.", once=method)
            return otherwise

    def note(self, text: str, once: str = "") -> None:
        """Tell the user about a trouble; the same one, or one of the same kind, only once."""
        key = once or text
        if key not in self._said:
            self._said.add(key)
            # Where nobody set up logging, warnings appear on the terminal: not beside what is told there anyway.
            _log.log(logging.WARNING if self.on_trouble is None else logging.INFO, "%s", text)
            if self.on_trouble is not None:
                self.on_trouble(text)

    def close(self) -> None:
        """Let the thread end when it is done with what it was given."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None

    def _queue(self) -> queue.SimpleQueue[_Call | None]:
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            # A daemon: a call that hangs must not keep the program alive.
            threading.Thread(target=_work, args=(self._jobs,), name=f"leporello-{self.who}", daemon=True).start()
            weakref.finalize(self, self._jobs.put, None)
        return self._jobs


def reason(error: BaseException) -> str:
    """An exception in one line, secrets masked; copes with exceptions whose own text can't be made."""
    ours = isinstance(error, LeporelloError)
    text = " ".join((str(error) if ours else "".join(traceback.format_exception_only(error))).split())
    text = redact(text)
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"


def accepted(function: Callable[..., Any], optional: Mapping[str, Any]) -> dict[str, Any]:
    """Those optional arguments that a function takes: plugins are written for older and newer hosts."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return dict(optional)
    takes = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: value for name, value in optional.items() if name in parameters and parameters[name].kind in takes}
