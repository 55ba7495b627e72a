"""The names people type: aliases of other agents, words without a slash, and what is said about the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from leporello.agent.commands import COMMANDS, SlashCommand, aliases, help_text, parse_known, run_command
from leporello.chat.app import FILE_COMMANDS, WITHOUT_SLASH
from leporello.conversation import Conversation
from leporello.gateway.sessions.message_handler import is_command
from leporello.testing.stub_server import Say
from tests.chat.conftest import Desk
from tests.chat.test_plain import piped
from tests.chat.test_terminal import stored

FOLDERS = ("tmp", "etc", "usr", "var", "home", "opt", "dev", "mnt", "srv", "data", "root", "lib", "bin")


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Conversation]:
    """A conversation with many messages about one thing."""
    with Conversation.open("t", model="gpt-4o", store=f"sqlite:///{tmp_path}/t.db") as made:
        for number in range(40):
            made.append({"role": "user", "content": f"The harbour number {number} has the port {9000 + number}."})
            made.append({"role": "assistant", "content": "Noted."})
        yield made


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("/compact ports", ("compress", "ports")),
        ("/cost", ("usage", "")),
        ("/status", ("context", "")),
        ("/history", ("sessions", "")),
        ("/save talk.md", ("export", "talk.md")),
        ("/settings", ("config", "")),
        ("/?", ("help", "")),
        ("/HELP", ("help", "")),
        ("/nonsense", ("nonsense", "")),
    ],
)
def test_an_alias_is_its_command(typed: str, meant: tuple[str, str]) -> None:
    """Everywhere the same: chat, run and the server take the name from one table."""
    assert parse_known(typed, {**COMMANDS, **FILE_COMMANDS}) == meant


def test_a_command_wins_over_an_alias(talk: Conversation) -> None:
    """A plugin's `/cost` is the plugin's, and the help no longer offers ours."""
    more = {"cost": SlashCommand("in gold", lambda _, __: "two coins")}
    assert run_command(talk, "/cost", more) == "two coins"
    assert "also /cost" not in help_text({**COMMANDS, **more})
    assert "(also /cost, /stats)" in help_text(COMMANDS)


def test_no_alias_stands_for_two_commands() -> None:
    known = {**COMMANDS, **FILE_COMMANDS}
    assert len(aliases(known)) == sum(len(command.aliases) for command in known.values())


def test_the_page_about_the_chat_names_them_all() -> None:
    """docs/guides/chat.md lists every command and every alias."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "chat.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`/?([^\s`]+)[^`]*`", page))
    known = {**COMMANDS, **FILE_COMMANDS}
    assert {*known, *aliases(known), *WITHOUT_SLASH} <= named


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sentence_about_a_folder_is_no_command(talk: Conversation, folder: str) -> None:
    """More names must not catch more sentences."""
    assert run_command(talk, f"/{folder} is full") is None


def test_an_unknown_command_with_words_behind_it_never_reaches_the_model(talk: Conversation) -> None:
    """A typing error costs no call; the answer says how to send such a text all the same."""
    said = str(run_command(talk, "/nonsense a b"))
    assert said.startswith("There is no command /nonsense. ")
    assert "To say it to the model" in said
    assert run_command(talk, "About /nonsense a b") is None
    assert run_command(talk, "/etc/hosts is odd") is None


def test_what_lives_elsewhere_is_named(talk: Conversation) -> None:
    """A command of another agent that is none here says what does the same; the rest points to the help."""
    assert "leporello setup" in str(run_command(talk, "/login"))
    assert "@path" in str(run_command(talk, "/add src/main.py"))
    assert str(run_command(talk, "/nonsense")) == "There is no command /nonsense. /help lists all commands."


def test_the_server_takes_the_aliases_of_its_commands() -> None:
    """`/compact ports` is a command, not a message for the model."""
    assert is_command("/compact ports")
    assert not is_command("/save the whales")


def test_the_best_match_is_the_last(talk: Conversation) -> None:
    """Ten at most, the best next to the prompt, and how to see the others."""
    ids = [window.id for window in talk.search("harbour", 1_500)]
    assert len(ids) > 10
    found = str(run_command(talk, "/search harbour"))
    assert re.findall(r"\[(m\d+)\]", found) == ids[9::-1]
    assert f"{len(ids) - 10} more: /search --all harbour" in found
    every = str(run_command(talk, "/search --all harbour"))
    assert re.findall(r"\[(m\d+)\]", every) == ids[::-1]
    assert " more: " not in every
    assert "Write what to look for" in str(run_command(talk, "/search --all"))


@pytest.mark.parametrize("typed", ["/exit", "/q", "/quit", "exit", "quit", ":q", "Exit "])
def test_every_way_to_leave(desk: Desk, typed: str) -> None:
    """None of them is sent to the model."""
    server = desk.serve(Say("Hello."))
    ran = piped(desk, f"{typed}\nnever sent\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert not [seen for seen in server.requests if seen.dialect]


def test_habits_of_other_agents(desk: Desk) -> None:
    """`?`, `/clear`, `/cost`, `/compact`, `/model`: done or answered, and only real messages reach the model."""
    server = desk.serve(Say("Hello."))
    ran = piped(desk, "hi\n?\n/cost\n/compact\n/model\n/clear\n/exit\n")
    assert ran.returncode == 0
    assert "/compress [topic]" in ran.stdout
    assert "(also /compact)" in ran.stdout
    assert "1 call, " in ran.stdout
    assert "Nothing to fold yet." in ran.stdout
    assert "/model NAME" in ran.stdout
    assert "A new conversation" in ran.stdout
    assert "The one before is kept: /resume " in ran.stdout
    assert len(server.bodies()) == 1
    assert len(stored(desk)) == 2
