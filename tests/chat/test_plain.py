"""Pipes and `--plain`: lines in, lines out, not a single control code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from leporello.testing.stub_server import Fail, Say
from tests.chat.conftest import Desk
from tests.chat.terminal import PROGRAM
from tests.chat.test_terminal import STORY, run, stored


def piped(desk: Desk, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `leporello chat` with its input, output and errors in pipes."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "chat", *arguments],
        input=text,
        env=desk.variables(),
        cwd=desk.work,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_output_in_a_pipe_is_the_answers_and_nothing_else(desk: Desk) -> None:
    """Raw Markdown on stdout, remarks on stderr, no control codes in either."""
    desk.serve(Say(STORY), run("seq 1 300"), Say("Counted."))
    ran = piped(desk, "tell me\ncount\n", "--yes")
    assert ran.returncode == 0
    assert ran.stdout == STORY + "Counted.\n"
    assert "[terminal: seq 1 300: exit code 0" in ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr


def test_a_pipe_needs_no_extra(desk: Desk) -> None:
    """Without prompt_toolkit and rich a chat is plain, and works."""
    desk.serve(Say("Still here."))
    missing = "import sys; sys.modules.update(dict.fromkeys(['rich', 'prompt_toolkit', 'markdown_it']))"
    ran = subprocess.run(
        [sys.executable, "-c", f"{missing}; {PROGRAM}", "chat"],
        input="hello\n",
        env=desk.variables(),
        cwd=desk.work,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "Still here.\n"), ran.stderr


def test_commands_work_in_a_pipe(desk: Desk) -> None:
    """A script can ask for the window, the usage and an export."""
    desk.serve(Say("Hello."))
    ran = piped(desk, "hi\n/context\n/usage\n/export talk.jsonl\n/quit\nnever sent\n")
    assert ran.returncode == 0
    assert "of 128,000 tokens" in ran.stdout
    assert "1 call," in ran.stdout
    assert (desk.work / "talk.jsonl").read_text().count("\n") == 2
    assert len(stored(desk)) == 2


def test_a_backslash_joins_lines(desk: Desk) -> None:
    """A message of several lines can be piped in."""
    server = desk.serve(Say("Ok."))
    piped(desk, "one\\\ntwo\n")
    assert server.bodies()[0]["messages"][-1]["content"] == "one\ntwo"


def test_without_a_person_nothing_is_approved(desk: Desk) -> None:
    """A tool that needs consent is refused, and the model is told why."""
    desk.serve(run("touch never"), Say("I can't."))
    ran = piped(desk, "go\n")
    assert ran.stdout == "I can't.\n"
    assert not (desk.work / "never").exists()
    assert "nobody can be asked" in stored(desk)[2]["content"]


def test_a_failed_turn_is_the_exit_code(desk: Desk) -> None:
    """Scripts see that something went wrong; later lines are still answered."""
    desk.serve(Fail(401, {"error": {"message": "bad key", "code": "invalid_api_key"}}), Say("Later."))
    ran = piped(desk, "one\ntwo\n")
    assert ran.returncode == 1
    assert "refused the key" in ran.stderr
    assert ran.stdout == "Later.\n"
    assert "Traceback" not in ran.stderr


def test_going_on_in_a_pipe(desk: Desk) -> None:
    """`--continue` and `--resume` take up a conversation; an unknown id says so."""
    server = desk.serve(Say("Noted."), Say("Momo."), Say("Still Momo."))
    piped(desk, "my cat is Momo\n")
    assert piped(desk, "my cat?\n", "--continue").stdout == "Momo.\n"
    with_store = [line.split()[0] for line in _sessions(desk).splitlines() if line]
    assert "my cat is Momo" in _sessions(desk), "a conversation is known by its first words"
    assert piped(desk, "again?\n", "--resume", with_store[-1]).stdout == "Still Momo.\n"
    assert "my cat is Momo" in str(server.bodies()[-1]["messages"])
    unknown = piped(desk, "hi\n", "--resume", "nonsense")
    assert unknown.returncode == 2
    assert "No conversation has the id" in unknown.stderr
    nothing = piped(Desk(_other(desk)), "hi\n", "--continue", "--model", "scripted:demo")
    assert nothing.returncode == 2
    assert "no conversation to continue" in nothing.stderr


def _other(desk: Desk) -> Path:
    folder = desk.folder / "other"
    for name in ("home", "work"):
        (folder / name).mkdir(parents=True)
    return folder


def _sessions(desk: Desk) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "sessions", "list"],
        env=desk.variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ran.stdout


def test_plain_on_a_terminal(desk: Desk) -> None:
    """`--plain` asks and answers on a terminal without a control code."""
    desk.serve(run("touch made"), Say("Made."))
    seen = desk.chat("--plain")
    seen.wait(">")
    seen.key("make it\n")
    seen.wait("Allow? y(es), n(o), a(lways):")
    seen.key("y\n")
    seen.wait("Made.")
    seen.key("/quit\n")
    assert seen.ended() == 0
    assert (desk.work / "made").exists()
    assert "\x1b" not in seen.raw


def test_a_dumb_terminal_gets_plain_lines(desk: Desk) -> None:
    """TERM=dumb can't redraw, so nothing is redrawn."""
    desk.serve(Say("Plain."))
    seen = desk.chat(env={"TERM": "dumb"})
    seen.wait(">")
    seen.key("hello\n")
    seen.wait("Plain.")
    seen.key("\x04")
    assert seen.ended() == 0
    assert "\x1b" not in seen.raw
