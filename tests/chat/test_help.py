"""Help and completion: how somebody who knows nothing yet finds the chat."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chat.terminal import PROGRAM, environment
from tests.conftest import RunCli


def complete(words: str, home: Path) -> list[str]:
    """What bash would be offered for the last of some words."""
    count = len(words.split(" ")) - 1
    env = environment(home, _LEPORELLO_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(count))
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stderr == ""
    return [line.partition(",")[2] for line in ran.stdout.splitlines()]


def test_help_shows_groups_and_examples(run_cli: RunCli) -> None:
    """The first page names the chat, the set-up, and the way to try it without a key."""
    shown = run_cli("--help").out
    for text in ("Work:", "Sessions:", "Settings:", "Examples:", "leporello setup", "--model scripted:demo"):
        assert text in shown
    assert "--continue" in run_cli("chat", "--help").out


@pytest.mark.parametrize(
    ("words", "found"),
    [("leporello ch", ["chat"]), ("leporello chat --re", ["--resume"]), ("leporello sessions se", ["search"])],
)
def test_shell_completion(words: str, found: list[str], tmp_path: Path) -> None:
    """Commands, their options and their subcommands."""
    assert complete(words, tmp_path) == found


def test_every_shell_gets_its_script(tmp_path: Path) -> None:
    """The lines that docs/guides/chat.md gives print a script."""
    for shell in ("bash", "zsh", "fish"):
        env = environment(tmp_path, _LEPORELLO_COMPLETE=f"{shell}_source")
        program = Path(sys.executable).with_name("leporello")
        ran = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert "_LEPORELLO_COMPLETE" in ran.stdout, ran.stderr


def test_the_prompt_needs_neither_conversation_nor_store() -> None:
    """What is imported before the prompt stands is light; the rest loads behind it."""
    code = "import sys, leporello.chat.repl; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"leporello.conversation", "leporello.store", "leporello.agent", "prompt_toolkit", "rich"} & set(loaded)
