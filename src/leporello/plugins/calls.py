"""What plugins add beside engines, each called through the guard of its plugin: tools, commands, hooks, summarisers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leporello.engines.guard import PluginGuard, accepted
from leporello.errors import EngineError, ProviderError
from leporello.messages import encode_json, text_of
from leporello.plugins.context import PluginCommand, PluginSummariser, PluginTool
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.summaries.model import SummaryModel
from leporello.usage import CanonicalUsage

SECONDS = 50.0
"""Tools and commands are waited for longer than what stands in the way of a turn."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool of a plugin."""

    guard: PluginGuard
    tool: PluginTool

    def __call__(self, arguments: dict[str, Any]) -> str:
        """The answer as text; an `EngineError` names the plugin."""
        return _text(self.guard.call(f"tool {self.tool.name}", _run, self.tool.handler, arguments, seconds=SECONDS))


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A slash command of a plugin."""

    guard: PluginGuard
    command: PluginCommand

    def __call__(self, argument: str) -> str:
        """The answer as text; an `EngineError` names the plugin."""
        answer = self.guard.call(f"/{self.command.name}", _run, self.command.handler, argument, seconds=SECONDS)
        return _text(answer) if answer is not None else ""


@dataclass(frozen=True, slots=True)
class HookCall:
    """A hook of a plugin."""

    guard: PluginGuard
    name: str
    callback: Callable[..., Any]

    def __call__(self, facts: dict[str, Any]) -> None:
        """Tell it; nothing that it does or raises has any effect."""
        self.guard.ask(f"hook {self.name}", _run, None, self.callback, **accepted(self.callback, facts))


@dataclass(slots=True)
class SummariserCall:
    """A summariser of a plugin as the first step of the ladder: a provider like any other, verified like any other."""

    guard: PluginGuard
    summariser: PluginSummariser
    name: str
    """As it appears in reports."""

    def as_model(self) -> SummaryModel:
        """For the ladder of summary models."""
        return SummaryModel(self, self.name, self.summariser.context_length)

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        """One summary; a failure is a `ProviderError`, so that the next one on the ladder is asked."""
        prompt = "\n\n".join(text_of(message) for message in request.messages)
        limit = request.max_tokens or self.summariser.context_length
        try:
            answer = self.guard.call("summariser", _run, self.summariser.write, prompt, limit)
        except EngineError as error:
            raise ProviderError(str(error)) from None
        if not isinstance(answer, str):
            raise ProviderError(f"{self.guard.who}: the summariser returned a {type(answer).__name__}, not text")
        return ModelReply({"role": "assistant", "content": answer}, CanonicalUsage(), model=self.name, has_usage=False)


def _run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call it; what is a coroutine is run to its end."""
    answer = function(*args, **kwargs)
    return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer


async def _awaited(answer: Any) -> Any:
    return await answer


def _text(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    try:
        return encode_json(answer).decode()
    except TypeError:
        return repr(answer)
