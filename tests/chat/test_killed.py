"""`kill -9` at any moment: `--continue` goes on from the last message that was acknowledged."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count, repeat

from leporello.store import open_store
from leporello.testing.stub_server import Hold, Say, Seen
from tests.chat.conftest import Desk
from tests.chat.terminal import PROGRAM
from tests.chat.test_terminal import HARBOUR, SUMMARY, run, stored


def going_on(desk: Desk, *expected: str) -> str:
    """Take the killed conversation up again, say something, and return the request that was sent."""
    server = desk.serve(Say("Back again."))
    again = desk.chat("--continue", "--yes")
    again.wait(*expected)
    again.say("are you there?")
    again.wait("Back again.")
    again.wait_prompt()
    assert again.leave() == 0
    assert [request.violations for request in server.requests if request.dialect] == [()]
    return json.dumps(server.bodies()[0]["messages"], ensure_ascii=False)


def test_killed_in_the_middle_of_a_stream(desk: Desk) -> None:
    """The question is there, without its answer, and is sent along with the next one."""
    desk.serve(Say("Your cat is called Momo."), Hold(Say("A long answer that never ends."), desk.hold(), after=4))
    seen = desk.chat()
    seen.say("my cat is called Momo")
    seen.wait("Your cat is called Momo.")
    seen.say("what is the second question?")
    seen.wait("A long")
    seen.kill()
    sent = going_on(desk, "what is the second question?", "not answered yet")
    assert "Your cat is called Momo." in sent
    assert "what is the second question?" in sent


def test_killed_in_the_middle_of_a_tool(desk: Desk) -> None:
    """The call is there with a result that says nobody knows whether it ran; its process has gone with us or ended."""
    desk.serve(run("echo working; sleep 600"))
    seen = desk.chat("--yes")
    seen.say("start the build")
    seen.wait("│ working")
    seen.kill()
    sent = going_on(desk, "start the build")
    assert "the program stopped before this call had a result" in sent


def test_killed_at_a_question(desk: Desk) -> None:
    """Nothing was done, and the conversation is valid."""
    desk.serve(run("touch never"))
    seen = desk.chat()
    seen.say("make a file")
    seen.wait_question("? run: touch never")
    seen.kill()
    going_on(desk, "make a file")
    assert not (desk.work / "never").exists()


def test_killed_before_anything_was_said(desk: Desk) -> None:
    """An empty conversation is never the one to go on with."""
    desk.serve(Say("Kept."))
    seen = desk.chat()
    seen.say("keep this")
    seen.wait("Kept.")
    assert seen.leave() == 0
    empty = desk.chat()
    empty.wait_prompt()
    empty.kill()
    assert "keep this" in going_on(desk, "keep this")


class _Answers:
    """A model with long answers, each another one, that also writes summaries."""

    def __init__(self, attempt: int) -> None:
        self._names = (f"Answer {attempt}-{k}." for k in count())

    def __call__(self, seen: Seen) -> Say:
        if not seen.body.get("tools"):
            return Say(SUMMARY, usage=None)
        return Say(f"{next(self._names)} " + "The pier is long and the sea is wide. " * 60, usage=None)


def test_killed_at_any_moment(desk: Desk) -> None:
    """Runs killed after random times, folds in between: whatever was shown is there, and the store is whole."""
    chance = random.Random(6)
    told: list[str] = []
    for attempt in range(8):
        desk.serve(*repeat(_Answers(attempt), 200))
        arguments = ["chat", "--plain", "--yes", *(["--continue"] if told else [])]
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *HARBOUR, *arguments],
            env=desk.variables(),
            cwd=desk.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"message {attempt}-{k}\n" for k in range(50)).encode())
        process.stdin.flush()
        for _ in range(chance.randrange(4, 14)):
            told.append(process.stdout.readline().decode().strip())
        time.sleep(chance.random() * 0.1)  # a little further into whatever it does next
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        answers = [message["content"].strip() for message in stored(desk) if message["role"] == "assistant"]
        missing = [answer for answer in told if answer not in answers]
        assert missing == [], f"shown to the user but lost: {missing}"
    with open_store(f"sqlite:///{desk.home}/leporello.db") as store:
        assert store.care.checkup().clean
        newest = store.conversations.page(limit=1).conversations[0]
        assert store.views.view(newest.id).folds >= 3, "it was meant to fold between the kills"
