"""Runs one tool in a thread of its own, so that no tool can hang or crash the loop.

The calling thread waits for the first of: the tool ends, its time is up, somebody cancels, Ctrl-C. In the last three
cases the tool's token is cancelled and it gets a moment to end on its own and hand back what it has; then it is
abandoned (the thread is a daemon, so it can't keep the program alive) and the result says so.
"""

from __future__ import annotations

import threading
import traceback
from dataclasses import replace
from typing import Any

from leporello.cancel import CancelToken
from leporello.errors import LeporelloError
from leporello.messages import encode_json
from leporello.tools.base import Arguments, Tool, ToolContext, ToolResult

GRACE_SECONDS = 5.0
"""How long a tool may take to stop after it was told to; `terminal` needs it to end its processes."""


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
        _wait_patiently(work, context)
    token.release()
    return _outcome(tool, work, stopped, interrupted=context.cancel.cancelled)


def _wait_patiently(work: _Work, context: ToolContext) -> None:
    """Give the tool its grace; a second Ctrl-C ends the waiting at once."""
    try:
        work.finished.wait(GRACE_SECONDS)
    except KeyboardInterrupt:
        context.cancel.cancel()


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
    """Whatever a tool returned, as a result."""
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(value)
    if value is None:
        return ToolResult("(no output)")
    if isinstance(value, bytes | bytearray):
        return ToolResult(bytes(value).decode("utf-8", "replace"))
    try:
        return ToolResult(encode_json(value).decode("utf-8"))
    except (TypeError, ValueError):
        return ToolResult(repr(value))
