"""`terminal`: run a shell command, in the foreground with a time limit or in the background as a job."""

from __future__ import annotations

import codecs
import contextlib
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from leporello.errors import ToolError
from leporello.tools.base import ApprovalRequest, Arguments, Tool, ToolContext, ToolResult
from leporello.tools.budget import cut_mark
from leporello.tools.processes import (
    Capture,
    Captured,
    Ended,
    RunningCommand,
    ShellCommand,
    Stop,
    exit_text,
    run,
    start,
)
from leporello.tools.sandbox import may_read, readable, shown
from leporello.tools.schema import tool_from

_LAST_BYTES = 2_000
_READ_ONLY = "Read-only file system"
_STARTS_UP = 0.3  # seconds after which a background command that failed at once is noticed


class BackgroundJob(Struct, frozen=True):
    id: str
    command: str
    folder: Path
    output: Path
    """Everything it printed, in the conversation's outputs folder."""
    running: RunningCommand

    @property
    def process(self) -> subprocess.Popen[bytes]:
        return self.running.process

    @property
    def pid(self) -> int:
        """Also the number of its process group."""
        return self.process.pid

    @property
    def code(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    @property
    def state(self) -> str:
        code = self.code
        return "running" if code is None else f"ended with {exit_text(code)}"

    def __str__(self) -> str:
        return f"{self.id}: {self.state} (pid {self.pid}, in {self.folder}): {self.command}"


class BackgroundJobs:
    """The background commands of one conversation. `close` ends them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, BackgroundJob] = {}
        self._reported: set[str] = set()

    def start(self, command: ShellCommand, outputs: Path) -> BackgroundJob:
        """Start a command; the same one in the same folder twice at a time is refused."""
        with self._lock:
            for known in self._jobs.values():
                if (known.command, known.folder) == (command.line, command.folder) and known.code is None:
                    raise ToolError(f"this command is already running as {known.id}; its output is in {known.output}.")
            job_id = f"j{len(self._jobs) + 1}"
            outputs.mkdir(parents=True, exist_ok=True, mode=0o700)
            output = outputs / f"job-{job_id}-{secrets.token_hex(4)}.txt"
            with output.open("xb") as file:
                running = start(command, file)
            self._jobs[job_id] = BackgroundJob(job_id, command.line, command.folder, output, running)
            return self._jobs[job_id]

    def all(self) -> list[BackgroundJob]:
        """Every job of the conversation, oldest first."""
        with self._lock:
            return list(self._jobs.values())

    def running(self) -> list[BackgroundJob]:
        """Work in progress: what a summary of the conversation must not forget."""
        return [job for job in self.all() if job.code is None]

    def get(self, job_id: str) -> BackgroundJob:
        with self._lock:
            if job_id not in self._jobs:
                raise ToolError(f"there is no job {job_id!r}. Known: {', '.join(self._jobs) or 'none'}.")
            return self._jobs[job_id]

    def stop(self, job_id: str) -> BackgroundJob:
        """End a job and everything it started."""
        job = self.get(job_id)
        with self._lock:
            job.running.stop()
            job.process.wait()
            self._reported.add(job_id)
        return job

    def news(self) -> list[str]:
        """One line for each job that ended since this was last asked."""
        with self._lock:
            ended = [job for job in self._jobs.values() if job.id not in self._reported and job.code is not None]
            self._reported.update(job.id for job in ended)
            for job in ended:
                job.running.finish()
        return [f"background job {job.id} {job.state}; its output is in {job.output}{_made(job)}" for job in ended]

    def close(self) -> None:
        for job in self.all():
            if job.code is None:
                self.stop(job.id)
            job.running.finish()


def _made(job: BackgroundJob) -> str:
    return f"; {_set_aside_text(job.running.set_aside)}" if job.running.set_aside else ""


def jobs_tool(jobs: BackgroundJobs) -> Tool:
    """The tool by which the model looks after its background commands."""

    def run(context: ToolContext, job: str = "", stop: bool = False) -> ToolResult:
        """List the background commands, look at the newest output of one, or stop one.

        Args:
            job: Id of a job, such as j1; leave it out to list all.
            stop: End this job.
        """
        if not job:
            if stop:
                raise ToolError("say which job to stop.")
            known = jobs.all()
            return ToolResult("\n".join(map(str, known)) or "(no background jobs)", details={"jobs": len(known)})
        if stop:
            return ToolResult(str(jobs.stop(job)), details={"job": job})
        found = jobs.get(job)
        return ToolResult(_last_output(found), status=str(found), details={"job": job}, exempt=True)

    return tool_from(run, name="jobs")


def _last_output(job: BackgroundJob) -> str:
    with job.output.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LAST_BYTES))
        text = file.read(_LAST_BYTES).decode("utf-8", "replace")
    if size <= _LAST_BYTES:
        return text or "(no output yet)"
    return cut_mark(f"{size - _LAST_BYTES:,} bytes before this are in {job.output}") + "\n" + text


def terminal_tool(jobs: BackgroundJobs) -> Tool:
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
        work = ShellCommand(command, _folder(context, workdir), context.env, timeout, confinement=context.sandbox)
        _check(command)
        if background:
            return _start_job(context, jobs, work)
        result = _run(context, work)
        news = jobs.news()
        return replace(result, status="\n".join([result.status, *news])) if news else result

    return tool_from(terminal, name="terminal", ask=_ask, timeout=None)


def _ask(context: ToolContext, arguments: Arguments) -> ApprovalRequest:
    command = arguments["command"]
    _check(command)
    folder = _folder(context, arguments["workdir"])
    place = shown(context, folder)
    verb = "start in the background" if arguments["background"] else "run"
    if context.sandbox is not None and context.sandbox.why_not:
        verb += " (not confined)"
    where = "" if place == "." else f" in {place}"
    return ApprovalRequest(
        "terminal", f"{verb}{where}: {command}", lambda: command, command, folder, partial(may_read, context)
    )


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


def _run(context: ToolContext, work: ShellCommand) -> ToolResult:
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


def _status(work: ShellCommand, ended: Ended, captured: Captured) -> str:
    how = {
        Stop.NOT: exit_text(ended.code),
        Stop.TIMEOUT: f"stopped after {work.seconds:g} seconds (timeout); what it printed until then follows",
        Stop.CANCELLED: "interrupted and stopped; what it printed until then follows",
        Stop.TOO_MUCH: f"stopped because it printed more than {work.most_bytes:,} bytes",
    }
    rows = [how[ended.stop]]
    if ended.stopped_others:
        rows.append("processes it left running were stopped; use background=true to keep one")
    if work.confined and ended.code and _READ_ONLY in captured.tail_text:
        rows.append("commands are confined: only the working directory and tools.paths can be written")
    if ended.set_aside:
        rows.append(_set_aside_text(ended.set_aside))
    if captured.trouble:
        rows.append(f"the whole output could not be kept: {captured.trouble}")
    elif captured.saved is not None and captured.whole and not captured.kind:
        rows.append(f"some bytes are not UTF-8 and shown as \ufffd; the raw output is in {captured.saved.path}")
    return "\n".join(rows)


def _set_aside_text(paths: Sequence[Path]) -> str:
    return (
        f"set aside as {', '.join(path.name for path in paths)}: other programs run what such files say. "
        "Write them with write_file, which asks the user"
    )


def _start_job(context: ToolContext, jobs: BackgroundJobs, work: ShellCommand) -> ToolResult:
    try:
        job = jobs.start(work, context.outputs)
    except OSError as error:
        raise ToolError(f"the command could not be started: {error}.") from None
    with contextlib.suppress(subprocess.TimeoutExpired):
        job.process.wait(_STARTS_UP)
    news = "\n".join(line for line in jobs.news() if f" {job.id} " not in line)
    text = f"job {job.id}, pid {job.pid}, {job.state}. Its output goes to {job.output}"
    return ToolResult(text, is_error=bool(job.code), details={"job": job.id, "pid": job.pid}, status=news)


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
