"""`python -m leporello.testing.engine_doctor NAME`: runs the engine contract against one engine, and prints JSON lines.

In a process of its own, because a plugin under examination may hang, print or exit. Used by `leporello plugins doctor`.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from leporello.config import Home, load_settings
from leporello.engines import BUILTIN, make_builtin
from leporello.engines.base import ContextEngine
from leporello.engines.guard import PluginGuard
from leporello.errors import EngineError, LeporelloError, PluginError
from leporello.models import Limits
from leporello.plugins.host import DEFAULT_ENGINE, PluginHost
from leporello.testing.engine_contract import EngineContract
from leporello.tokens import TokenCounter

WINDOW = 16_000
SECONDS = 120.0
"""A promise that takes longer is broken by hanging."""


class _Examined(EngineContract):
    """The contract on an engine as the settings would load it, without the host's safeguards around it."""

    context_length = WINDOW

    def __init__(self, name: str, host: PluginHost) -> None:
        self.name = name
        self._host = host

    def make_engine(self, context_length: int) -> ContextEngine:
        engine = self._host.bare_engine(self.name) if self.name != DEFAULT_ENGINE else None
        if engine is not None:
            engine.update_model("m", context_length)
            return engine
        if self.name not in BUILTIN:
            raise PluginError(self._host.missing(self.name))
        return make_builtin(self.name, Limits.for_window(context_length), TokenCounter.for_model(None), None)


def examine(name: str, host: PluginHost) -> Iterator[dict[str, object]]:
    """One line for each promise: what it is, whether it is kept, and why not."""
    suite = _Examined(name, host)
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
    """NAME, the home folder, and `unsafe` when folders of others are allowed."""
    name, home, *flags = arguments
    settings = load_settings(
        {"context.engine": name, "plugins.allow_unsafe_folders": True if "unsafe" in flags else None},
        home=Home(Path(home)),
    )
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            for line in examine(name, PluginHost(settings)):
                out.write(json.dumps(line) + "\n")
                out.flush()
        except LeporelloError as error:
            out.write(json.dumps({"error": str(error)}) + "\n")
            return 1
        out.write(json.dumps({"ended": True}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
