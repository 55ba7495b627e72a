"""Commands that go on in the background: typed state that the program can list, not a remark in a conversation."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leporello.errors import ToolError
from leporello.tools.base import Tool, ToolContext, ToolResult
from leporello.tools.marks import cut_mark
from leporello.tools.processes import Command, exit_text, start, stop_group
from leporello.tools.schema import tool_from

_LAST_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class Job:
    """One background command."""

    id: str
    command: str
    folder: Path
    pid: int
    """Also the number of its process group."""
    output: Path
    """Everything it printed, in the conversation's outputs folder."""
    code: int | None = None
    """None while it runs."""

    @property
    def state(self) -> str:
        """In words."""
        return "running" if self.code is None else f"ended with {exit_text(self.code)}"

    def __str__(self) -> str:
        return f"{self.id}: {self.state} (pid {self.pid}, in {self.folder}): {self.command}"


class Jobs:
    """The background commands of one conversation. `close` ends them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._reported: set[str] = set()

    def start(self, command: Command, outputs: Path) -> Job:
        """Start a command; the same one in the same folder twice at a time is refused."""
        with self._lock:
            self._refresh()
            for known in self._jobs.values():
                if known.code is None and (known.command, known.folder) == (command.line, command.folder):
                    raise ToolError(f"this command is already running as {known.id}; its output is in {known.output}.")
            job_id = f"j{len(self._jobs) + 1}"
            outputs.mkdir(parents=True, exist_ok=True, mode=0o700)
            output = outputs / f"job-{job_id}-{secrets.token_hex(4)}.txt"
            with output.open("xb") as file:
                process = start(command, file)
            job = Job(job_id, command.line, command.folder, process.pid, output)
            self._jobs[job_id] = job
            self._processes[job_id] = process
            return job

    def all(self) -> list[Job]:
        """Every job of the conversation with its present state, oldest first."""
        with self._lock:
            self._refresh()
            return list(self._jobs.values())

    def running(self) -> list[Job]:
        """Work in progress: what a summary of the conversation must not forget."""
        return [job for job in self.all() if job.code is None]

    def wait(self, job_id: str, seconds: float) -> Job:
        """The job once it has ended, or as it is after so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._processes[job_id].wait(seconds)
        return next(job for job in self.all() if job.id == job_id)

    def stop(self, job_id: str) -> Job:
        """End a job and everything it started."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:
                raise ToolError(f"there is no job {job_id!r}. Known: {', '.join(self._jobs) or 'none'}.")
            stop_group(job.pid)
            self._processes[job_id].wait()
            self._refresh()
            self._reported.add(job_id)
            return self._jobs[job_id]

    def news(self) -> list[str]:
        """One line for each job that ended since this was last asked."""
        with self._lock:
            self._refresh()
            ended = [job for job in self._jobs.values() if job.code is not None and job.id not in self._reported]
            self._reported.update(job.id for job in ended)
        return [f"background job {job.id} {job.state}; its output is in {job.output}" for job in ended]

    def close(self) -> None:
        """End all jobs that still run."""
        for job in self.running():
            self.stop(job.id)

    def _refresh(self) -> None:
        for job_id, job in self._jobs.items():
            if job.code is None:
                code = self._processes[job_id].poll()
                if code is not None:
                    self._jobs[job_id] = Job(job.id, job.command, job.folder, job.pid, job.output, code)


@contextmanager
def background_jobs() -> Iterator[Jobs]:
    """Jobs that end with the block."""
    jobs = Jobs()
    try:
        yield jobs
    finally:
        jobs.close()


def jobs_tool(jobs: Jobs) -> Tool:
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
        for found in jobs.all():
            if found.id == job:
                return ToolResult(_last_output(found), status=str(found), details={"job": job}, exempt=True)
        raise ToolError(f"there is no job {job!r}.")

    return tool_from(run, name="jobs")


def _last_output(job: Job) -> str:
    with job.output.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LAST_BYTES))
        text = file.read(_LAST_BYTES).decode("utf-8", "replace")
    if size <= _LAST_BYTES:
        return text or "(no output yet)"
    return cut_mark(f"{size - _LAST_BYTES:,} bytes before this are in {job.output}") + "\n" + text
