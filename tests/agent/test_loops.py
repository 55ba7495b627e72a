"""Classes of loops that a word, a duration or a count of bytes once hid, and the checks after an edit that are none."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from leporello.agent.repeats import STALE_COUNTED, STOP_AFTER, TELL_AFTER, Repeats
from tests.agent.conftest import Bench, call
from tests.agent.workflows import LOOPS, endless, ran, word, wrote

SOON = {
    "a file that says loading": 6,
    "an edit that says installing": 6,
    "an installation that cannot reach its server": 6,
    "a failing edit and the file again": 10,
    "an agent with the same task": 25,
    "a slow build of what is built": 25,
    "numbered files that nobody needs, and the status": 52,
    "replacements of what is not there, and the tests": 52,
    "a number written anew, and the tests": 60,
    "a count in a file, and a slow test": 52,
}


@pytest.mark.parametrize("kind", SOON)
def test_a_loop_ends_soon(kind: str) -> None:
    """A word such as "loading", or that a call takes long, makes no wait of it."""
    repeats = Repeats()
    for row in itertools.islice(endless(LOOPS[kind]), SOON[kind]):
        repeats.note(*row)
    assert repeats.too_many


def test_what_a_command_printed_is_nothing_written(bench: Bench) -> None:
    """A real command tells how many bytes it printed: still its words count, not those of the command."""
    notes = [call("terminal", id=f"n{n}", command=f"echo {word(n)}{word(n + 9)} >> notes.txt") for n in range(80)]
    assert bench.agent(notes).turn("go").reason == "repeats"


def test_checks_after_each_edit_are_no_circle(bench: Bench) -> None:
    """Five real commands, all with the same result each time, between edits that bring something new."""
    script: list[Any] = []
    for n in range(4):
        script.append(call("write_file", id=f"w{n}", path="a.txt", content=f"{word(n)} {word(n + 7)}"))
        checks = ("true", "ls", "pwd", "wc -l a.txt", "test -f a.txt && echo fine")
        script += [call("terminal", id=f"c{n}-{k}", command=command) for k, command in enumerate(checks)]
    assert bench.agent([*script, "done"]).turn("go").text == "done"


def test_a_check_made_twice_after_a_change_is_a_repeat() -> None:
    """Only the first time is there anything to find out."""
    repeats = Repeats()
    for row in (ran("pytest -q", "1 passed"), wrote("a.py", "one"), ran("pytest -q", "1 passed")):
        repeats.note(*row)
    assert 0 < repeats.in_a_row < 1
    for _ in range(TELL_AFTER + STOP_AFTER):
        repeats.note(*ran("pytest -q", "1 passed"))
    assert repeats.too_many
    assert Repeats.from_dict(repeats.as_dict()) == repeats


def test_only_the_first_check_after_a_counted_change_counts() -> None:
    """And only if it brings what it brought: five checks are one round, and a new answer is none."""
    repeats = Repeats()
    checks = (ran("pytest -q", "1 passed"), ran("git status", "clean"))
    for row in (ran("touch a1"), *checks, ran("touch a2")):
        repeats.note(*row)
    before = repeats.stale
    assert Repeats.from_dict(repeats.as_dict()) == repeats
    repeats.note(*checks[0])
    assert repeats.stale == before + STALE_COUNTED
    repeats.note(*checks[1])
    assert repeats.stale == before + STALE_COUNTED
    repeats.note(*ran("touch a3"))
    repeats.note(*ran("git status", "a3 is untracked, add it to what will be committed"))
    assert repeats.stale == 0
