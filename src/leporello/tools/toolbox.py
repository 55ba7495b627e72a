"""`Toolbox`: the tools of one conversation, their schemas, and the one place where calls are run."""

from __future__ import annotations

import difflib
import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leporello.cancel import CancelToken
from leporello.errors import LeporelloError, ToolError
from leporello.messages import ToolCall, encode_json, parse_json
from leporello.tools.base import Arguments, Tool, ToolContext, ToolResult
from leporello.tools.file_tools import READ_FILE, WRITE_FILE
from leporello.tools.notes import TODO, memory_tool
from leporello.tools.patch import PATCH
from leporello.tools.search_files import ripgrep, search_tool
from leporello.tools.terminal import BackgroundJobs, jobs_tool, terminal_tool

GRACE_SECONDS = 5.0  # how long a tool may take to stop after it was told to; `terminal` needs it to end its processes
SMALL_WINDOW = 16_000
SMALL_SET = ("read_file", "terminal", "lcm_grep", "lcm_describe", "lcm_expand")
"""What a window below 16K gets: schemas of all tools would fill a quarter of it."""
NOT_RUN = "the user interrupted before this call was run; nothing was done"
_KINDS: dict[type, str] = {list: "an array", str: "text", bool: "true or false", int: "a number", float: "a number"}


class _Work(threading.Thread):
    """One call. Whatever the tool raises is kept, not printed."""

    def __init__(self, tool: Tool, context: ToolContext, arguments: Arguments, wake: threading.Event) -> None:
        super().__init__(name=f"tool-{tool.name}", daemon=True)
        self._job = (tool, context, arguments)
        self._wake = wake
        self.finished = threading.Event()
        self.value = ToolResult("")
        self.error: BaseException | None = None

    def run(self) -> None:
        tool, context, arguments = self._job
        try:
            self.value = as_result(tool.run(context, arguments))
        except BaseException as error:  # noqa: BLE001 - the one place where a tool's failure becomes a result
            self.error = error
        finally:
            self.finished.set()
            self._wake.set()


def run_bounded(tool: Tool, context: ToolContext, arguments: Arguments) -> ToolResult:
    """The tool's result, or an error result when it raised, took too long or was interrupted."""
    token = CancelToken(context.cancel)
    wake = threading.Event()
    token.on_cancel(wake.set)
    work = _Work(tool, replace(context, cancel=token), arguments, wake)
    stopped = ""
    try:
        work.start()
        if not wake.wait(tool.timeout):
            stopped = f"{tool.name} did not end within {tool.timeout:g} seconds and was stopped"
    except KeyboardInterrupt:
        context.cancel.cancel()
    if token.cancelled:
        stopped = f"{tool.name} was interrupted by the user"
    if stopped and not work.finished.is_set():
        token.cancel()
        try:
            work.finished.wait(GRACE_SECONDS)
        except KeyboardInterrupt:
            # A second Ctrl-C ends the waiting at once.
            context.cancel.cancel()
    token.release()
    return _outcome(tool, work, stopped, interrupted=context.cancel.cancelled)


def _outcome(tool: Tool, work: _Work, stopped: str, *, interrupted: bool) -> ToolResult:
    details: dict[str, Any] = {"tool": tool.name}
    if stopped:
        details["interrupted" if interrupted else "timeout"] = True
    if not work.finished.is_set():
        return ToolResult.error(f"{stopped}. It has not come to an end yet, so its effects are unknown.", **details)
    if work.error is not None:
        text = _reason(tool, work.error)
        return ToolResult.error(f"{stopped}: {text}" if stopped else text, **details)
    result = work.value
    if not stopped:
        return result
    # What it had done by then is worth keeping: a stopped build still shows its first error.
    status = f"{result.status}\n{stopped}".strip() if stopped not in result.status else result.status
    return replace(result, is_error=True, status=status, details={**result.details, **details})


def _reason(tool: Tool, error: BaseException) -> str:
    if isinstance(error, LeporelloError) and str(error):
        return str(error)
    # Copes with exceptions whose own text can't be made.
    return f"{tool.name} failed: {''.join(traceback.format_exception_only(error)).strip()}"


def as_result(value: object) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult("(no output)")
    if isinstance(value, str):
        return ToolResult(value)
    if isinstance(value, bytes | bytearray):
        return ToolResult(value.decode("utf-8", "replace"))
    try:
        return ToolResult(encode_json(value).decode("utf-8"))
    except (TypeError, ValueError):
        return ToolResult(repr(value))


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

    def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """The result of one call; never raises for anything a model, a tool or Ctrl-C can do.

        After an interrupt `context.cancel` is cancelled, and further calls are answered without being run.
        """
        if context.cancel.cancelled:
            return ToolResult.error(NOT_RUN, interrupted=True)
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolResult.error(f"there is no tool named {call.name!r}. {self._available(call.name)}")
        context = replace(context, call_id=call.id)
        outcome = "the user interrupted instead of approving; nothing was done"
        try:
            arguments = tool.check(parse_arguments(call))
            refusal = _consent(tool, context, arguments)
            # Between two steps of a run: whether the tool began to work is unknown, so that is said.
            outcome = "interrupted by the user"
            return run_bounded(tool, context, arguments) if refusal is None else refusal
        except (LeporelloError, OSError, ValueError) as error:
            return ToolResult.error(str(error), tool=tool.name)
        except KeyboardInterrupt:
            context.cancel.cancel()
            return ToolResult.error(outcome, interrupted=True)

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
    kind = _KINDS.get(type(value), type(value).__name__)
    raise ToolError(f"the arguments of {call.name} must be a JSON object, not {kind}. Nothing was done.")


def _shorten(text: str) -> str:
    return repr(text) if len(text) <= 120 else f"{text[:60]!r} … {text[-60:]!r}"


def _consent(tool: Tool, context: ToolContext, arguments: Arguments) -> ToolResult | None:
    request = tool.ask(context, arguments) if tool.ask is not None else None
    if request is None:
        return None
    verdict = context.approver.check(request)
    if verdict.allowed:
        return None
    return ToolResult.error(f"{tool.name} was not allowed: {verdict.reason} Nothing was done.", denied=True)


def builtin_toolbox(memory: Path, jobs: BackgroundJobs, more: Iterable[Tool] = ()) -> Toolbox:
    """All built-in tools, then `more` (recall, the engine's own, plugins). `memory` is the folder of the notes."""
    commands = (search_tool(ripgrep()), terminal_tool(jobs), jobs_tool(jobs))
    return Toolbox((READ_FILE, WRITE_FILE, PATCH, *commands, TODO, memory_tool(memory), *more))
