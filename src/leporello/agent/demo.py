"""`--model scripted:demo`: a model that needs no key and no network, to see what a chat looks like.

It answers from a script: what is real are the tools it calls, the folds, the counts and the cache's bill.
"""

from __future__ import annotations

import json
import time
from importlib import resources

from leporello.errors import ConfigError
from leporello.messages import Message, is_result, role_of, text_of
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.providers.errors import CallCancelled
from leporello.providers.scripted import ScriptedProvider, Step

SCRIPTED = "scripted"
PREFIX = f"{SCRIPTED}:"
WINDOW = 16_000
PACE = 0.02
"""Seconds between two pieces of text."""
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
    """The model behind `scripted:NAME`."""
    if name != f"{PREFIX}demo":
        raise ConfigError(f"There is no scripted model {name!r}. There is one: {PREFIX}demo.")
    return PacedProvider(ScriptedProvider(_answer, name=SCRIPTED, window=WINDOW))


def _answer(request: ModelRequest) -> Step:
    newest = request.messages[-1]
    if not request.tools:
        # Summaries are made without a model here.
        return "The scripted model writes no summaries."
    if is_result(newest):
        return _about(text_of(newest))
    asked = next((text_of(m) for m in reversed(request.messages) if role_of(m) == "user"), "")
    words = {word.strip(".,!?").lower() for word in asked.split()}
    for triggers, name, arguments in _CALLS:
        if words & triggers:
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
    return (resources.files("leporello.agent") / "demo_pages" / f"{name}.md").read_text("utf-8")
