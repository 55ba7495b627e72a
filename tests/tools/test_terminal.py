"""`terminal` and background jobs, with real processes that hang, flood, print rubbish and leave others behind."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from leporello.cancel import CancelToken
from leporello.errors import ToolError
from leporello.messages import ToolCall
from leporello.tools import terminal
from leporello.tools.processes import Capture, ShellCommand, Stop, group_alive, run


def test_output_and_exit_code(workshop: Any) -> None:
    result = workshop.run("terminal", command="echo out; echo err >&2; exit 3")
    assert result.text == "out\nerr\n"
    assert result.status == "exit code 3"
    assert result.details["exit_code"] == 3
    assert not result.is_error
    assert workshop.run("terminal", command="true").text == "(no output)"
    assert workshop.run("terminal", command="kill -9 $$").status == "killed by SIGKILL"


def test_it_runs_where_it_is_told_to(workshop: Any) -> None:
    (workshop.workdir / "sub").mkdir()
    assert workshop.text("terminal", command="pwd") == f"{os.path.realpath(workshop.workdir)}\n"
    assert workshop.text("terminal", command="pwd", workdir="sub").endswith("/sub\n")
    assert "not a folder" in workshop.error("terminal", command="pwd", workdir="none")


def test_output_is_shown_while_the_command_runs(workshop: Any) -> None:
    """The command waits for a file that only a watcher of its first line creates."""
    go_on = workshop.workdir / "go"

    def watch(text: str) -> None:
        if "ready" in text:
            go_on.touch()

    shop = workshop.with_context(emit=watch)
    text = shop.text("terminal", command="echo ready; until [ -e go ]; do sleep 0.02; done; echo went", timeout=60)
    assert text == "ready\nwent\n"


def test_a_watcher_that_fails_does_not_stop_the_command(workshop: Any) -> None:
    def broken(text: str) -> None:
        raise BrokenPipeError

    assert workshop.with_context(emit=broken).text("terminal", command="echo a; sleep 0.1; echo b") == "a\nb\n"


def test_characters_split_between_reads_are_shown_whole(workshop: Any) -> None:
    workshop.text("terminal", command="printf '\\xc3'; sleep 0.2; printf '\\xa9'")
    assert "".join(workshop.shown) == "é"


def test_there_is_no_input_to_wait_for(workshop: Any) -> None:
    assert workshop.run("terminal", command="read line; echo got:$line").text == "got:\n"


@pytest.mark.parametrize("command", ["sleep 300", "trap '' TERM; echo stubborn; while :; do sleep 300; done"])
def test_a_command_that_hangs_is_stopped_with_its_group(workshop: Any, command: str) -> None:
    result = workshop.run("terminal", command=f"echo $$; {command}", timeout=1)
    assert result.is_error
    assert "stopped after 1 seconds (timeout)" in result.status
    assert not group_alive(int(result.text.split()[0]))


def test_processes_left_behind_are_stopped_and_that_is_said(workshop: Any) -> None:
    result = workshop.run("terminal", command="sleep 300 & echo $$")
    assert result.status.startswith("exit code 0\nprocesses it left running were stopped")
    assert not group_alive(int(result.text))


def test_a_process_that_left_the_group_does_not_hold_the_call(workshop: Any) -> None:
    """It keeps the output pipe open, but the command itself is over."""
    result = workshop.run("terminal", command="setsid sh -c 'echo $$; sleep 300' & sleep 0.3; echo over")
    pid = int(result.text.split()[0])
    assert "over" in result.text
    os.kill(pid, 9)


def test_closing_the_output_is_not_ending(workshop: Any) -> None:
    result = workshop.run("terminal", command="exec >&- 2>&-; sleep 0.3; touch done; exit 4")
    assert result.details["exit_code"] == 4
    assert (workshop.workdir / "done").exists()


def test_cancelling_keeps_what_was_printed(workshop: Any) -> None:
    token = CancelToken()

    def watch(text: str) -> None:
        token.cancel()

    result = workshop.with_context(cancel=token, emit=watch).run("terminal", command="echo first; sleep 300")
    assert result.is_error
    assert result.text == "first\n"
    assert "interrupted" in result.status


FLOOD = "head -c 50000000 /dev/zero | tr '\\0' 'abcdefgh' | fold -w 99; echo THE END"


def test_fifty_megabytes_are_kept_whole_with_little_memory(workshop: Any) -> None:
    shop = workshop.with_context(emit=lambda text: None)
    tracemalloc.start()
    try:
        result = shop.run("terminal", command=FLOOD)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000
    assert result.saved is not None
    assert result.saved.size == result.saved.path.stat().st_size > 50_000_000
    assert result.text.startswith("a" * 99)
    assert result.text.endswith("THE END\n")
    assert "bytes not shown" in result.text
    with result.saved.path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        assert file.read() == b"THE END\n"
    assert (result.saved.path.stat().st_mode & 0o777) == 0o600


def test_binary_output_is_kept_and_described(workshop: Any) -> None:
    workshop.write("data", bytes(range(256)) * 10)
    result = workshop.run("terminal", command="cat data")
    match = re.search(r"\(output is binary data, 2,560 bytes; all of it is in (.*)\)", result.text)
    assert match is not None
    assert Path(match[1]).read_bytes() == bytes(range(256)) * 10


def test_bytes_that_are_no_utf8_are_kept_too(workshop: Any) -> None:
    result = workshop.run("terminal", command="printf 'caf\\xe9'")
    assert result.text == "caf\ufffd"
    match = re.search(r"the raw output is in (.*)", result.status)
    assert match is not None
    assert Path(match[1]).read_bytes() == b"caf\xe9"


def test_endless_output_is_stopped(tmp_path: Path) -> None:
    size = 0

    def take(data: bytes) -> None:
        nonlocal size
        size += len(data)

    ended = run(ShellCommand("yes", tmp_path, most_bytes=1_000_000), CancelToken(), take)
    assert ended.stop is Stop.TOO_MUCH
    assert 1_000_000 < size < 5_000_000


def test_the_environment_can_be_given(workshop: Any) -> None:
    shop = workshop.with_context(env={"PATH": os.defpath, "ONLY": "this"})
    lines = shop.text("terminal", command="env").split("\n")
    assert "ONLY=this" in lines
    assert not any(line.startswith("HOME=") for line in lines)


@pytest.mark.parametrize("command", ["", "  \n", "echo \x00", "echo \ud800"])
def test_commands_that_are_none_are_answered(workshop: Any, command: str) -> None:
    workshop.error("terminal", command=command)


@pytest.mark.parametrize("sizes", [[10], [3_000], [100, 100, 5_000], [200_000, 1, 70_000], [1] * 3_000, [65_536] * 3])
def test_a_capture_loses_no_byte(tmp_path: Path, sizes: list[int]) -> None:
    chunks = [random.Random(k).randbytes(size) for k, size in enumerate(sizes)]
    capture = Capture(tmp_path, "id", in_memory=2_000)
    for chunk in chunks:
        capture.write(chunk)
    whole = b"".join(chunks)
    captured = capture.finish(save=True)
    assert captured.saved is not None
    assert captured.saved.path.read_bytes() == whole
    assert captured.size == len(whole)
    assert whole.startswith(captured.head)
    assert whole.endswith(captured.tail)
    assert not list(tmp_path.glob(".spool*"))


def test_a_capture_without_a_disk_says_so_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    capture = Capture(tmp_path / "file" / "outputs", "id", in_memory=100)
    for _ in range(50):
        capture.write(b"x" * 100)
    captured = capture.finish()
    assert captured.saved is None
    assert captured.trouble
    assert captured.size == 5_000
    assert captured.head


def test_the_same_output_twice_is_one_file(workshop: Any) -> None:
    one = workshop.run("terminal", command="yes | head -n 900000")
    again = ToolCall("other", "terminal", json.dumps({"command": "yes | head -n 900000"}), 0)
    two = workshop.box.run(again, workshop.context)
    assert one.saved == two.saved
    assert one.saved.path.read_bytes() == b"y\n" * 900_000
    assert len(list(workshop.context.outputs.iterdir())) == 1


def test_a_job_runs_on_and_its_output_can_be_read(workshop: Any) -> None:
    server = "echo up; until [ -e stop ]; do sleep 0.02; done; echo down"
    result = workshop.run("terminal", command=server, background=True)
    assert re.match(r"job j1, pid \d+, running", result.text)
    (job,) = workshop.jobs.running()
    assert (job.id, job.folder) == ("j1", Path(os.path.realpath(workshop.workdir)))
    assert workshop.text("read_file", path=str(job.output)) == "1\tup"
    assert "j1: running" in workshop.text("jobs")
    assert workshop.text("jobs", job="j1") == "up\n"
    (workshop.workdir / "stop").touch()
    _until(lambda: not workshop.jobs.running())
    assert workshop.text("jobs", job="j1") == "up\ndown\n"


def _until(condition: Any) -> None:
    pause = threading.Event()
    while not condition():
        pause.wait(0.02)


def test_the_same_work_is_not_started_twice(workshop: Any) -> None:
    workshop.text("terminal", command="sleep 300", background=True)
    assert "already running as j1" in workshop.error("terminal", command="sleep 300", background=True)
    assert "ended with killed by SIGTERM" in workshop.text("jobs", job="j1", stop=True)
    assert "job j2" in workshop.text("terminal", command="sleep 300", background=True)


def test_the_end_of_a_job_is_told_once(workshop: Any) -> None:
    workshop.run("terminal", command="until [ -e stop ]; do sleep 0.02; done; exit 7", background=True)
    (workshop.workdir / "stop").touch()
    _until(lambda: not workshop.jobs.running())
    first = workshop.run("terminal", command="true").status
    assert "background job j1 ended with exit code 7" in first
    assert "background job" not in workshop.run("terminal", command="true").status


def test_a_job_that_fails_at_once_is_an_error(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_STARTS_UP", 60)
    assert "ended with exit code 127" in workshop.error("terminal", command="no-such-program-anywhere", background=True)


def test_closing_ends_all_jobs_and_what_they_started(workshop: Any) -> None:
    workshop.text("terminal", command="sleep 300 & sleep 300", background=True)
    workshop.text("terminal", command="trap '' TERM; sleep 300", background=True)
    pids = [job.pid for job in workshop.jobs.running()]
    workshop.jobs.close()
    assert not workshop.jobs.running()
    assert not any(group_alive(pid) for pid in pids)


def test_unknown_jobs_are_answered(workshop: Any) -> None:
    assert workshop.text("jobs") == "(no background jobs)"
    assert "no job 'j9'" in workshop.error("jobs", job="j9")
    assert "no job 'j9'" in workshop.error("jobs", job="j9", stop=True)
    assert "which job" in workshop.error("jobs", stop=True)
    with pytest.raises(ToolError):
        workshop.jobs.stop("j9")


def alive(mark: str) -> list[str]:
    """Command lines that hold the mark, of processes that run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if (
                mark in line
                and "guard" not in line
                and (entry.parent / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            ):
                found.append(line)
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_children_in_a_session_of_their_own_are_stopped_too(workshop: Any) -> None:
    """Whether the command ended by itself or was stopped, what it started ends with it."""
    mark = f"sleep 98.{os.getpid()}"
    for line, timeout in (
        (f"setsid {mark}1 & disown; sleep 0.2", 20),
        (f"setsid {mark}2 & sleep 50", 1),
        (f"env -i setsid {mark}3 & sleep 0.2", 20),
        (f"env -i setsid sh -c '({mark}4 &)' & sleep 50", 1),
        (f"trap '' TERM; env -i setsid {mark}5 & sleep 50", 1),
    ):
        workshop.run("terminal", command=line, timeout=timeout)
        for _ in range(200):
            if not alive(mark):
                break
            threading.Event().wait(0.02)
        assert not alive(mark)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_commands_end_when_this_program_is_killed(tmp_path: Path) -> None:
    """Nothing can run at the end of a killed program, so somebody else must see to it."""
    mark = f"sleep 97.{os.getpid()}"
    program = f"""
import sys
from pathlib import Path
from leporello.cancel import CancelToken
from leporello.tools.processes import ShellCommand, run
line = "setsid {mark}1 & env -i setsid {mark}3 & sleep 0.2; echo started; {mark}2"
run(ShellCommand(line, Path({str(tmp_path)!r})), CancelToken(),
    lambda data: (sys.stdout.buffer.write(data), sys.stdout.flush()))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"started\n"
        assert len(alive(mark)) >= 3
        victim.kill()
    deadline = time.monotonic() + 30
    while alive(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(mark)
