"""`terminal`: run a shell command, in the foreground with a time limit or in the background as a job."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from leporello.errors import ToolError
from leporello.tools.base import ApprovalRequest, Arguments, Tool, ToolContext, ToolResult
from leporello.tools.capture import Capture, Captured
from leporello.tools.confine import readable, shown
from leporello.tools.jobs import Jobs
from leporello.tools.marks import cut_mark
from leporello.tools.processes import Command, Ended, Stop, exit_text, run
from leporello.tools.schema import tool_from

_STARTS_UP = 0.3
"""Seconds after which a background command that failed at once is noticed."""


def terminal_tool(jobs: Jobs) -> Tool:
    """The tool, with the board on which its background commands are kept."""

    def terminal(
        context: ToolContext,
        command: str,
        timeout: Annotated[int, Meta(ge=1, le=3_600)] = 120,
        workdir: str = ".",
        background: bool = False,
    ) -> ToolResult:
        """Run a shell command and return its output and exit code. It gets no input, so it must not ask for any.

        Args:
            command: The command line.
            timeout: Seconds after which it is stopped.
            workdir: Folder to run it in.
            background: Start it and return at once; for servers and other long work. Processes that a foreground
                command leaves behind are stopped.
        """
        work = Command(command, _folder(context, workdir), context.env, timeout)
        _check(command)
        if background:
            return _start_job(context, jobs, work)
        result = _run(context, work)
        news = jobs.news()
        return result if not news else _with_news(result, news)

    return tool_from(terminal, name="terminal", ask=_ask, timeout=None)


def _ask(context: ToolContext, arguments: Arguments) -> ApprovalRequest:
    command = arguments["command"]
    _check(command)
    folder = shown(context, _folder(context, arguments["workdir"]))
    verb = "start in the background" if arguments["background"] else "run"
    where = "" if folder == "." else f" in {folder}"
    return ApprovalRequest("terminal", f"{verb}{where}: {command}", lambda: command, command)


def _check(command: str) -> None:
    if not command.strip():
        raise ToolError("the command is empty.")
    if "\x00" in command:
        raise ToolError("the command contains a NUL character.")
    try:
        command.encode()
    except UnicodeEncodeError:
        raise ToolError("the command contains half of a surrogate pair.") from None


def _folder(context: ToolContext, workdir: str) -> Path:
    folder = readable(context, workdir)
    if not folder.is_dir():
        raise ToolError(f"{workdir} is not a folder.")
    return folder


def _run(context: ToolContext, work: Command) -> ToolResult:
    capture = Capture(context.outputs, context.call_id)
    show = _Watcher(context.emit)

    def take(data: bytes) -> None:
        capture.write(data)
        show(data)

    began = time.monotonic()
    try:
        ended = run(work, context.cancel, take)
    except OSError as error:
        capture.finish()
        raise ToolError(f"the command could not be started: {error}.") from None
    captured = capture.finish()
    details = {
        "command": work.line,
        "exit_code": ended.code,
        "bytes": captured.size,
        "seconds": round(time.monotonic() - began, 3),
    }
    return ToolResult(
        _body(captured),
        is_error=bool(ended.stop),
        details=details,
        status=_status(work, ended, captured),
        # Only an output that is shown in part needs a pointer; a small one is all there.
        saved=None if captured.whole else captured.saved,
    )


def _body(captured: Captured) -> str:
    if not captured.size:
        return "(no output)"
    if captured.kind:
        where = f"; all of it is in {captured.saved.path}" if captured.saved else ""
        return f"(output is {captured.kind}, {captured.size:,} bytes{where})"
    head = captured.head.decode("utf-8", "replace")
    if captured.whole:
        return head
    hidden = captured.size - len(captured.head) - len(captured.tail)
    return f"{head}\n{cut_mark(f'{hidden:,} bytes not shown')}\n{captured.tail.decode('utf-8', 'replace')}"


def _status(work: Command, ended: Ended, captured: Captured) -> str:
    rows = [exit_text(ended.code)]
    if ended.stop is Stop.TIMEOUT:
        rows = [f"stopped after {work.seconds:g} seconds (timeout); what it printed until then follows"]
    elif ended.stop is Stop.CANCELLED:
        rows = ["interrupted and stopped; what it printed until then follows"]
    elif ended.stop is Stop.TOO_MUCH:
        rows = [f"stopped because it printed more than {work.most_bytes:,} bytes"]
    if ended.stopped_others:
        rows.append("processes it left running were stopped; use background=true to keep one")
    if captured.trouble:
        rows.append(f"the whole output could not be kept: {captured.trouble}")
    elif captured.saved is not None and captured.whole and not captured.kind:
        rows.append(f"some bytes are not UTF-8 and shown as \ufffd; the raw output is in {captured.saved.path}")
    return "\n".join(rows)


def _start_job(context: ToolContext, jobs: Jobs, work: Command) -> ToolResult:
    try:
        job = jobs.start(work, context.outputs)
    except OSError as error:
        raise ToolError(f"the command could not be started: {error}.") from None
    job = jobs.wait(job.id, _STARTS_UP)
    news = "\n".join(line for line in jobs.news() if f" {job.id} " not in line)
    text = f"job {job.id}, pid {job.pid}, {job.state}. Its output goes to {job.output}"
    return ToolResult(text, is_error=bool(job.code), details={"job": job.id, "pid": job.pid}, status=news)


def _with_news(result: ToolResult, news: list[str]) -> ToolResult:
    return replace(result, status="\n".join([result.status, *news]))


class _Watcher:
    """Shows output to a person as it comes; a watcher that went away is no reason to stop the command."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit: Callable[[str], None] | None = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __call__(self, data: bytes) -> None:
        if self._emit is None:
            return
        text = self._decoder.decode(data)
        try:
            if text:
                self._emit(text)
        except (OSError, ValueError):
            self._emit = None
