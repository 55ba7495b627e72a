"""`leporello run` as scripts meet it: exit codes, what stays in the store, the model that needs no key."""

from __future__ import annotations

import io
import json

import pytest

from leporello.config import Home
from leporello.store import open_store
from leporello.store.records import ConversationRecord
from tests.conftest import Ran, RunCli

DEMO = ("run", "--model", "scripted:demo")


@pytest.fixture
def run(run_cli: RunCli) -> RunCli:
    """`leporello run` with the scripted model."""

    def go(*arguments: object) -> Ran:
        return run_cli(*DEMO, *arguments)

    return go


def kept() -> list[ConversationRecord]:
    """The conversations in the store."""
    with open_store(str(Home.from_environment().path / "leporello.db")) as store:
        return list(store.conversations.page().conversations)


def test_the_scripted_model_answers_without_a_key(run: RunCli, run_cli: RunCli) -> None:
    """As in a chat; `explain` tells of the same window."""
    assert run("hello").code == 0
    told = json.loads(run_cli("explain", "--model", "scripted:demo", "--json").out)["limits"]["window"]["value"]
    assert f"of {told:,} tokens" in run("/context").out


def test_a_conversation_is_titled_ended_and_goes_on(run: RunCli) -> None:
    """It has the first words as its title, ends as a chat does, and --continue takes the same one up again."""
    assert run("Tell me of the tower clock").code == 0
    (first,) = kept()
    assert first.metadata.title == "Tell me of the tower clock"
    assert (first.open, first.tip.end_reason) == (False, "exit")
    assert run("--continue", "and more").code == 0
    (again,) = kept()
    assert (again.id, again.messages, again.open) == (first.id, 4, False)
    assert again.metadata.title == first.metadata.title
    assert run("--resume", first.id[:6], "once more").code == 0
    assert [record.messages for record in kept()] == [6]


def test_continue_means_a_conversation_of_ones_own(run: RunCli) -> None:
    """Not one that was imported from another program."""
    run("hello")
    with open_store(str(Home.from_environment().path / "leporello.db")) as store:
        store.conversations.create("codex:1")
        store.log.append("codex:1", [{"role": "user", "content": "elsewhere"}])
    assert run("--continue", "and more").code == 0
    assert {record.id == "codex:1": record.messages for record in kept()} == {True: 1, False: 4}


@pytest.mark.parametrize("command", ["/help", "/context", "/usage", "/nope", "/compress"])
def test_commands_alone_leave_no_conversation(run: RunCli, command: str) -> None:
    """Where nothing was said nothing stays."""
    run(command)
    assert kept() == []


def test_commands_that_call_no_model_need_no_key(run_cli: RunCli, run: RunCli) -> None:
    """Neither a key nor a model; they know the window of the model that is named or was recorded."""
    assert run_cli("run", "/help").code == 0
    assert "of 200,000 tokens" in run_cli("run", "--model", "claude-sonnet-4-5", "/context").out
    run("hello")
    assert run_cli("run", "--resume", kept()[0].id, "/usage").code == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("hello",), ("leporello setup", "--model scripted:demo", "setup --local")),
        (("hello", "--model", "claude-sonnet-4-5"), ("ANTHROPIC_API_KEY", "leporello setup", "keys.yaml")),
        (("hello", "--model", "gpt-4.1"), ("OPENAI_API_KEY",)),
        (("hello", "--model", "nonsense"), ("--set model.provider=anthropic", "--set model.base_url=http")),
        (("/nope",), ("leporello setup",)),
    ],
)
def test_without_a_model_the_error_says_how_to_get_one(
    run_cli: RunCli, arguments: tuple[str, ...], named: tuple[str, ...]
) -> None:
    ran = run_cli("run", *arguments)
    assert ran.code == 2
    assert all(words in ran.err for words in named), ran.err
    assert kept() == []


def test_a_conversation_of_somebody_else_stays(run: RunCli) -> None:
    """Also an empty one: only what was begun here for nothing is taken away."""
    with open_store(str(Home.from_environment().path / "leporello.db")) as store:
        store.conversations.create("theirs")
    run("--resume", "theirs", "/usage")
    assert [record.id for record in kept()] == ["theirs"]


@pytest.mark.parametrize(
    ("prompt", "code", "named"),
    [
        ("/compress", 3, "Nothing to fold"),
        ("/nope", 2, "There is no command /nope"),
        ("/expand m99", 2, "no messages yet"),
        ("/undo", 2, "this conversation"),
        ("", 2, "PROMPT is empty"),
        ("  \n", 2, "PROMPT is empty"),
    ],
)
def test_exit_codes_are_those_of_all_commands(run: RunCli, prompt: str, code: int, named: str) -> None:
    """3 when there was nothing to fold, 2 for what can't be done as asked."""
    ran = run(prompt)
    assert ran.code == code
    assert named in ran.out + ran.err


def test_json_names_the_outcome(run: RunCli) -> None:
    """A script need not read the sentence."""
    ran = run("--json", "/compress")
    assert json.loads(ran.out)["outcome"] == "nothing_to_do"


def test_a_dash_reads_standard_input(run: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `compress -` does; nothing there is bad input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Tell me a story\nof two lines\n")))
    assert run("-").code == 0
    assert kept()[0].metadata.title == "Tell me a story of two lines"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert run("-").code == 2


def test_an_argument_that_is_not_utf_8_is_refused(run: RunCli) -> None:
    """Python hands such bytes on as half characters, which no provider takes."""
    ran = run(b"caf\xe9 au lait".decode("utf-8", "surrogateescape"))
    assert (ran.code, ran.out) == (2, "")
    assert "PROMPT" in ran.err
    assert "not UTF-8 text" in ran.err
    assert not Home.from_environment().database.exists()
