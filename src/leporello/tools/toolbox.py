"""`Toolbox`: the tools of one conversation, their schemas, and the one place where calls are run."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leporello.errors import LeporelloError, ToolError
from leporello.messages import ToolCall, parse_json
from leporello.tools.base import Arguments, Tool, ToolContext, ToolResult
from leporello.tools.worker import run_bounded

SMALL_WINDOW = 16_000
SMALL_SET = ("read_file", "terminal", "lcm_grep", "lcm_describe", "lcm_expand")
"""What a window below 16K gets: schemas of all tools would fill a quarter of it."""

INTERRUPTED = "the user interrupted before this call was run; nothing was done"


class Toolbox:
    """Tools by name, in a fixed order: their schemas stand at the very front of the cached prefix."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ToolError(f"two tools are named {tool.name!r}")
            self._tools[tool.name] = tool

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order of the schemas."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._tools.get(name)

    def schemas(self) -> list[dict[str, Any]]:
        """Everything the model may call, in OpenAI's format."""
        return [tool.schema() for tool in self._tools.values()]

    def select(self, names: Sequence[str] | None, window: int) -> Toolbox:
        """The tools that the settings choose; None leaves it to the window: all, or the small set below 16K."""
        if names is None:
            small = 0 < window < SMALL_WINDOW
            return Toolbox(tool for name, tool in self._tools.items() if not small or name in SMALL_SET)
        for name in names:
            if name not in self._tools:
                raise ToolError(f"agent.tools names {name!r}. {self._available(name)}")
        return Toolbox(tool for name, tool in self._tools.items() if name in names)

    def run_all(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext,
        on_result: Callable[[ToolCall, ToolResult], None] | None = None,
    ) -> list[ToolResult]:
        """One result per call, in order. After an interrupt the remaining calls are answered without being run."""
        results: list[ToolResult] = []
        while len(results) < len(calls):
            call = calls[len(results)]
            try:
                result = self.run(call, context)
            except KeyboardInterrupt:
                # Between two steps of `run`: whether the tool began to work is unknown, so that is said.
                context.cancel.cancel()
                result = ToolResult.error("interrupted by the user", interrupted=True)
            results.append(result)
            try:
                if on_result is not None:
                    on_result(call, result)
            except KeyboardInterrupt:
                context.cancel.cancel()
        return results

    def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """The result of one call; never raises for anything a model or a tool can do."""
        if context.cancel.cancelled:
            return ToolResult.error(INTERRUPTED, interrupted=True)
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolResult.error(f"there is no tool named {call.name!r}. {self._available(call.name)}")
        context = replace(context, call_id=call.id)
        try:
            arguments = tool.check(parse_arguments(call))
            refusal = _consent(tool, context, arguments)
        except (LeporelloError, OSError, ValueError) as error:
            return ToolResult.error(str(error), tool=tool.name)
        except KeyboardInterrupt:
            context.cancel.cancel()
            return ToolResult.error("the user interrupted instead of approving; nothing was done", interrupted=True)
        if refusal is not None:
            return refusal
        return run_bounded(tool, context, arguments)

    def _available(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._tools, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"Available: {', '.join(self._tools) or 'none'}.{hint}"


def parse_arguments(call: ToolCall) -> Mapping[str, Any]:
    """The arguments as an object, or a `ToolError` that says what they are instead."""
    text = call.arguments.strip()
    if text in ("", "null"):
        return {}
    value = parse_json(text)
    if isinstance(value, str):
        value = parse_json(value)
    if isinstance(value, dict):
        return value
    if value is None:
        raise ToolError(
            f"the arguments of {call.name} are not valid JSON (they may have been cut off): {_shorten(text)}. "
            "Nothing was done. Send the whole object again."
        )
    raise ToolError(f"the arguments of {call.name} must be a JSON object, not {_kind(value)}. Nothing was done.")


def _shorten(text: str) -> str:
    return repr(text) if len(text) <= 120 else f"{text[:60]!r} … {text[-60:]!r}"


def _kind(value: object) -> str:
    names: dict[type, str] = {list: "an array", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)


def _consent(tool: Tool, context: ToolContext, arguments: Arguments) -> ToolResult | None:
    request = tool.ask(context, arguments) if tool.ask is not None else None
    if request is None:
        return None
    verdict = context.approver.check(request)
    if verdict.allowed:
        return None
    return ToolResult.error(f"{tool.name} was not allowed: {verdict.reason} Nothing was done.", denied=True)
