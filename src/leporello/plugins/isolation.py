"""An engine of a plugin in a process of its own: it may exit, change directory or write to descriptors there.

    IsolatedEngine       stands in for the engine in this program
    python -m ...        the process: reads requests as lines of JSON, runs the plugin's code, answers

When the plugin asks for a model, the process sends that question back and waits: keys and providers stay here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from leporello.config import Home, Settings, load_settings
from leporello.engines.guard import PluginGuard, accepted, reason
from leporello.engines.plugin_engine import session_manners
from leporello.errors import EngineError, LeporelloError, ProviderError
from leporello.messages import decode_json, encode_json
from leporello.plugins.context import (
    PluginCommand,
    PluginExtras,
    PluginHook,
    PluginTool,
    Registered,
    engine_name,
    run_to_its_end,
)
from leporello.plugins.hermes import HostFacts
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.summaries.model import SummaryModel
from leporello.usage import CanonicalUsage

COUNTERS = (
    "last_prompt_tokens",
    "last_completion_tokens",
    "last_total_tokens",
    "threshold_tokens",
    "context_length",
    "compression_count",
)


def _send(stream: IO[bytes], message: Any) -> None:
    stream.write(encode_json(message) + b"\n")
    stream.flush()


def command_line(module: str, name: str, settings: Settings, plugin_home: Path) -> list[str]:
    """Starts a module that works with one engine of this home, in a process of its own."""
    unsafe = ["unsafe"] if settings.plugins.allow_unsafe_folders else []
    return [sys.executable, "-m", module, name, str(settings.home.path), str(plugin_home), *unsafe]


def settings_of(name: str, home: str, flags: Sequence[str]) -> Settings:
    """The settings there, from such a command line."""
    unsafe = True if "unsafe" in flags else None
    return load_settings({"context.engine": name, "plugins.allow_unsafe_folders": unsafe}, home=Home(Path(home)))


# -- in this program


class IsolatedEngine:
    """Calls the engine in its process; every method of an engine is there."""

    def __init__(self, name: str, settings: Settings, facts: HostFacts) -> None:
        command = command_line(__name__, name, settings, facts.home)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._facts = facts
        self._lock = threading.Lock()
        try:
            loaded = self._receive()
        except EngineError:
            self.stop()
            raise
        self.name: str = loaded["name"]
        self.manners: tuple[bool, bool] = (loaded["carries_over"], loaded["follows"])
        self._loaded: dict[str, Any] = loaded

    def __getattr__(self, name: str) -> Any:
        if name in COUNTERS:
            return self._ask(attribute=name)
        return lambda *args, **optional: self._ask(method=name, args=args, optional=optional)

    def extras(self, guard: PluginGuard) -> PluginExtras:
        """What the plugin registered beside the engine, called in its process."""

        def all_of(kind: str, make: Callable[..., Any]) -> tuple[Any, ...]:
            return tuple(make(there(kind, index), *about) for index, about in enumerate(self._loaded[kind]))

        def there(kind: str, index: int) -> Callable[..., Any]:
            return lambda *args, **facts: self._ask(extra=kind, index=index, args=args, optional=facts)

        return PluginExtras(
            all_of("tools", lambda call, name, schema: PluginTool(guard, name, schema, call)),
            all_of("commands", lambda call, name, *about: PluginCommand(guard, name, call, *about)),
            all_of("hooks", lambda call, name: PluginHook(guard, name, call)),
        )

    @property
    def remarks(self) -> list[str]:
        return list(self._loaded["remarks"])

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        with self._lock:
            try:
                _send(self._process.stdin, request)
            except (OSError, ValueError):
                raise EngineError("its process has ended") from None
            return self._receive()["value"]

    def _receive(self) -> dict[str, Any]:
        """The answer; questions that come before it are answered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            answer: dict[str, Any] = decode_json(line)
            if "model" not in answer:
                if "error" in answer:
                    raise EngineError(answer["error"])
                return answer
            try:
                told = self._complete(answer["model"])
            except LeporelloError as error:
                told = {"error": str(error)}
            _send(self._process.stdin, told)
        raise EngineError("the plugin ended its process")

    def _complete(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not self._facts.summary_models:
            raise ProviderError("there is no model")
        chosen = self._facts.summary_models[0]
        reply = chosen.provider.complete(ModelRequest(chosen.model, **asked))
        usage = reply.usage.as_engine_dict()
        return {"message": reply.message, "finish_reason": reply.finish_reason, "name": reply.model, "usage": usage}


# -- in the process


class _AskedModel:
    """The host's summary model, asked through the pipe."""

    name = "host"

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests = requests
        self._answers = answers

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        asked = {
            "messages": list(request.messages),
            "tools": list(request.tools),
            "max_tokens": request.max_tokens,
            "timeout": request.timeout,
            "options": dict(request.options),
        }
        _send(self._answers, {"model": asked})
        told = decode_json(self._requests.readline())
        if "error" in told:
            raise ProviderError(told["error"])
        usage = CanonicalUsage.parse(told["usage"])
        return ModelReply(told["message"], usage, told["finish_reason"], told["name"])


def _answer(made: Registered, request: dict[str, Any]) -> Any:
    if "attribute" in request:
        return getattr(made.engine, request["attribute"], 0)
    args, optional = request["args"], request["optional"]
    if "method" in request:
        function = getattr(made.engine, request["method"])
    else:
        found = getattr(made.extras, request["extra"])[request["index"]]
        function = found.callback if isinstance(found, PluginHook) else found.handler
    return run_to_its_end(function, *args, **accepted(function, optional))


def _loaded(made: Registered) -> dict[str, Any]:
    carries_over, follows = session_manners(made.engine)
    return {
        "name": engine_name(made.engine),
        "carries_over": carries_over,
        "follows": follows,
        "tools": [[tool.name, dict(tool.schema)] for tool in made.extras.tools],
        "commands": [[command.name, command.help, command.argument] for command in made.extras.commands],
        "hooks": [[hook.name] for hook in made.extras.hooks],
        "remarks": made.remarks,
    }


def serve(register: Callable[[SummaryModel], Registered]) -> None:
    """Load the plugin and answer until the pipe is closed. Nothing the plugin prints gets into the pipe."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    try:
        made = register(SummaryModel(_AskedModel(requests, answers), _AskedModel.name, 0))
        _send(answers, _loaded(made))
    except BaseException as error:  # noqa: BLE001 - foreign code: whatever it raises is told
        _send(answers, {"error": reason(error)})
        return
    for line in requests:
        try:
            told = encode_json({"value": _answer(made, decode_json(line))})
        except BaseException as error:  # noqa: BLE001 - foreign code: even SystemExit is told
            told = encode_json({"error": reason(error)})
        answers.write(told + b"\n")
        answers.flush()


def main(name: str, home: str, plugin_home: str, *flags: str) -> None:
    from leporello.plugins.host import PluginHost  # noqa: PLC0415 - it starts this module

    def register(model: SummaryModel) -> Registered:
        host = PluginHost(settings_of(name, home, flags), Path(plugin_home))
        host.use_summary_models([model])
        return host.registered(name, PluginGuard(f"engine {name}"))

    serve(register)


if __name__ == "__main__":
    main(*sys.argv[1:])
