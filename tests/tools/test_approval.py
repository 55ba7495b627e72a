"""What runs unasked is exactly what the policy and the allow-list say."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello.tools.approval import ApprovalAnswer, ApprovalMode, Decision, PolicyApprover
from leporello.tools.approval import covers as covers_in
from leporello.tools.base import ApprovalRequest
from leporello.tools.harmless import simple_commands

WORK = Path("/work-of-the-user")


def inside(path: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(WORK)


def covers(allow: list[str], line: str) -> bool:
    return covers_in(allow, line, WORK, inside)


def command(line: str) -> ApprovalRequest:
    return ApprovalRequest("terminal", f"run: {line}", lambda: line, line, WORK, inside)


WRITE = ApprovalRequest("write_file", "replace a.txt")


@pytest.mark.parametrize(
    "line",
    [
        "ls",
        "ls -la src",
        "ls; ls -l",
        "ls && ls",
        "ls | ls",
        "ls || ls\nls",
        "ls 'a b' \"c d\" e\\ f",
        "ls 2>&1",
        "ls > /dev/null 2>&1",
        "ls *.py x",
        "'ls' -l",
        "ls \\\n -l",
    ],
)
def test_lines_of_covered_commands_run(line: str) -> None:
    assert covers(["ls*"], line)
    assert covers(["ls"], line)


@pytest.mark.parametrize(
    "line",
    [
        "ls && rm -rf /",
        "ls; rm x",
        "ls | sh",
        "ls || rm x",
        "ls\nrm x",
        "ls & rm x",
        "ls $(rm x)",
        "ls `rm x`",
        'ls "$(rm x)"',
        'ls "`rm x`"',
        "ls <(rm x)",
        "ls > important.txt",
        "ls >> important.txt",
        "ls 2> important.txt",
        "ls &> important.txt",
        "ls >| important.txt",
        "ls > /dev/nullx",
        "ls >&important.txt",
        "LD_PRELOAD=x ls",
        "(ls; rm x)",
        "{ ls; rm x; }",
        "if true; then rm x; fi",
        "ls $HOME",
        "ls ${x@P}",
        "ls $'\\x24(rm x)'",
        "! ls",
        "ls 'unclosed",
        'ls "unclosed',
        "ls \\",
        "ls # comment",
        "ls() { rm x; }; ls",
        "ls\r\nrm x",
        "ls\x0brm x",
        "ls\u00a0x",
        "./ls",
        "/tmp/ls",
        "",
        "   ",
        ";",
        "''",
        "l* -l",
        "time rm x",
        "ls <<EOF\nrm\nEOF",
        "lsx\\\n; rm x",
    ],
)
def test_anything_else_is_asked_about(line: str) -> None:
    assert not covers(["ls"], line)
    if not line.startswith("lsx"):
        assert not covers(["ls*"], line)


@pytest.mark.parametrize(
    ("entry", "line", "covered"),
    [
        ("git status", "git status -s", True),
        ("git status", "git stash", False),
        ("git status", "git", False),
        ("git status", "git statusx", False),
        ("pytest *", "pytest", True),
        ("pytest *", "pytest -q tests", True),
        ("pytest *", "pytestx", False),
        ("git log*", "git log --oneline", True),
        ("npm run test:*", "npm run test:unit", True),
        ("npm run test:*", "npm run deploy", False),
        ("ls*", "'ls -la'", False),
        ("ls -la", "'ls -la'", False),
        ("npm run test:*", "npm run test:unit -- --watch", False),
        ("ls*", "lsof", False),
        ("check *", "check a", True),
        ("check *", "check a b", False),
        ("check *", "check --all", False),
        ("check *", "check ../a", False),
        ("check", "check a", False),
        ("check --all", "check --all", True),
        ("'", "ls", False),
        ("", "ls", False),
    ],
)
def test_entries_are_beginnings_or_patterns(entry: str, line: str, covered: bool) -> None:
    assert covers([entry], line) is covered


def test_each_command_of_a_line_may_be_covered_by_another_entry() -> None:
    assert covers(["git status", "wc"], "git status -s | wc -l")
    assert not covers(["git status"], "git status -s | wc -l")


HARMLESS = ["ls", "rm", "cat", "x", " -l", "ls ", "rm ", "cat ", " a", " ", ";", " && ", " | ", "\n", " '' ", "'x y'"]
HARMLESS += ['"x y"', "\\\n", " 2>&1", ">/dev/null ", " *", "\t", "\\ "]
ODD = ["if", "2", "=", "#", "'", '"', "\\", "$", "`", "(", ")", "{", "}", "<", ">", ">>", "&", "!", "?", "[", "]", "$("]


@pytest.fixture
def stage(tmp_path: Path) -> tuple[Path, Path]:
    """A folder in which the only programs are stubs that write down how they were called."""
    programs, folder = tmp_path / "bin", tmp_path / "work"
    programs.mkdir()
    folder.mkdir()
    for name in ("ls", "rm", "cat", "x", "lsx", "lsls"):
        stub = programs / name
        stub.write_text(f'#!/bin/bash\nprintf "%s\\0" {name} "$@" END >> "$LOG"\n')
        stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    return programs, folder


@given(line=st.lists(st.sampled_from([*HARMLESS * 3, *ODD]), min_size=1, max_size=9).map("".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_shell_never_runs_more_than_was_understood(stage: tuple[Path, Path], line: str) -> None:
    """Against bash itself: every program it starts for an understood line is one of the commands that were found."""
    understood = simple_commands(line)
    if understood is None:
        return
    programs, folder = stage
    log = folder.parent / "log"
    log.write_bytes(b"")
    before = sorted(folder.iterdir())
    subprocess.run(
        ["/bin/bash", "-c", line],
        cwd=folder,
        env={"PATH": str(programs), "LOG": str(log)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    ran = [words.split("\0") for words in log.read_text().split("\0END\0") if words]
    for words in ran:
        assert words in understood
    assert sorted(folder.iterdir()) == before


@given(st.lists(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4), min_size=1, max_size=3))
def test_quoted_commands_come_back_word_for_word(commands: list[list[str]]) -> None:
    """Quoting as Python's standard library does it is understood, or the line is refused."""
    line = " && ".join(shlex.join(words) for words in commands)
    found = simple_commands(line)
    assert found is None or found == commands


def test_ask_mode_asks_and_passes_the_answer_on() -> None:
    asked: list[ApprovalRequest] = []

    def ask(request: ApprovalRequest) -> ApprovalAnswer:
        asked.append(request)
        return ApprovalAnswer(Decision.NO, "use pnpm")

    verdict = PolicyApprover(ApprovalMode.ASK, ["ls"], ask).check(command("npm install"))
    assert not verdict.allowed
    assert "use pnpm" in verdict.reason
    assert asked[0].command == "npm install"
    assert PolicyApprover(ApprovalMode.ASK, ["ls"], ask).check(command("ls -l")).allowed
    assert len(asked) == 1


def test_nobody_to_ask_means_no() -> None:
    verdict = PolicyApprover(ApprovalMode.ASK).check(command("ls"))
    assert not verdict.allowed
    assert "tools.approval" in verdict.reason


def test_a_closed_input_means_no() -> None:
    def ask(request: ApprovalRequest) -> ApprovalAnswer:
        raise EOFError

    assert not PolicyApprover(ApprovalMode.ASK, (), ask).check(WRITE).allowed


def test_auto_allows_and_deny_refuses_what_is_not_listed() -> None:
    assert PolicyApprover(ApprovalMode.AUTO).check(command("rm -rf x")).allowed
    deny = PolicyApprover(ApprovalMode.DENY, ["ls", "write_file"])
    assert deny.check(command("ls")).allowed
    assert deny.check(WRITE).allowed
    assert not deny.check(command("rm x")).allowed
    assert not deny.check(ApprovalRequest("patch", "change a.txt")).allowed


def test_always_is_remembered_for_this_command_and_no_other() -> None:
    count = 0

    def ask(request: ApprovalRequest) -> ApprovalAnswer:
        nonlocal count
        count += 1
        return ApprovalAnswer(Decision.ALWAYS if count == 1 else Decision.NO)

    approver = PolicyApprover(ApprovalMode.ASK, (), ask)
    assert approver.check(command("make test")).allowed
    assert approver.check(command("make test")).allowed
    assert count == 1
    assert not approver.check(command("make test; rm x")).allowed


def test_a_tool_in_the_list_is_no_command_in_the_list() -> None:
    assert not PolicyApprover(ApprovalMode.DENY, ["write_file"]).check(command("rm x")).allowed
    assert PolicyApprover(ApprovalMode.DENY, ["terminal"]).check(command("rm x")).allowed


def test_policy_holds_for_real_calls(workshop: Any) -> None:
    shop = workshop.with_context(approver=PolicyApprover(ApprovalMode.DENY, ["echo *"]))
    assert shop.text("terminal", command="echo fine") == "fine\n"
    assert "not allowed" in shop.error("terminal", command="echo fine > made")
    assert "not allowed" in shop.error("write_file", path="made", content="x")
    assert "not allowed" in shop.error("terminal", command="touch made", background=True)
    assert os.listdir(shop.workdir) == []
    assert json.dumps([job.id for job in shop.jobs.all()]) == "[]"
