"""`python -m leporello.testing.engine_doctor NAME`: runs the engine contract against one engine, and prints JSON lines.

In a process of its own, because a plugin under examination may hang, print or exit, and with a home of its own, because
it may write. Used by `leporello plugins doctor`.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from leporello.compaction.view import number_messages
from leporello.engines import make_builtin
from leporello.engines.base import ContextEngine
from leporello.engines.guard import PluginGuard
from leporello.engines.plugin_result import EngineInput, engine_copy
from leporello.errors import EngineError, LeporelloError
from leporello.messages import Message
from leporello.models import Limits
from leporello.plugins.host import PluginHost
from leporello.plugins.isolation import settings_of
from leporello.testing.engine_contract import EngineContract
from leporello.tokens import TokenCounter

WINDOW = 16_000
SECONDS = 120.0  # a promise that takes longer is broken by hanging


class Examined(EngineContract):
    """The contract on an engine as the settings would load it, without the host's safeguards around it."""

    context_length = WINDOW

    def __init__(self, name: str, host: PluginHost) -> None:
        self.name = name
        self._host = host
        self._is_plugin = host.is_plugin(name)

    def make_engine(self, context_length: int) -> ContextEngine:
        if self._is_plugin:
            engine: ContextEngine = self._host.registered(self.name, PluginGuard(f"engine {self.name}")).engine
            engine.update_model("m", context_length)
            return engine
        return make_builtin(self.name, Limits.for_window(context_length), TokenCounter.for_model(None), None)

    def given(self, messages: list[Message]) -> list[Message]:
        return engine_copy(EngineInput(number_messages(messages)).messages) if self._is_plugin else messages


def examine(name: str, host: PluginHost) -> Iterator[dict[str, object]]:
    """One line for each promise: what it is, whether it is kept, and why not."""
    suite = Examined(name, host)
    guard = PluginGuard(f"engine {name}", SECONDS)
    # An engine that can't be made breaks every promise for one reason; that is said once.
    guard.call("loading", suite.make_engine, WINDOW)
    for test, function in inspect.getmembers(suite, inspect.ismethod):
        if not test.startswith("test_") or guard.hung:
            continue
        started = time.perf_counter()
        promise = test.removeprefix("test_").replace("_", " ")
        why = ""
        try:
            guard.call(promise, function)
        except EngineError as error:
            why = str(error).removeprefix(f"engine {name}: {promise} failed: ").removeprefix("AssertionError: ")
        yield {"promise": promise, "kept": not why, "why": why, "seconds": round(time.perf_counter() - started, 2)}


def main(arguments: Sequence[str]) -> int:
    """NAME, the home folder, one for what the plugin writes, and `unsafe` when folders of others are allowed."""
    name, home, scratch, *flags = arguments
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            for line in examine(name, PluginHost(settings_of(name, home, flags), Path(scratch))):
                out.write(json.dumps(line) + "\n")
                out.flush()
        except LeporelloError as error:
            out.write(json.dumps({"error": str(error)}) + "\n")
            return 1
        out.write(json.dumps({"ended": True}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
