"""The program on a PostgreSQL store: `store copy` both ways, and the commands that read it."""

from __future__ import annotations

import json
from pathlib import Path

from leporello.conversation import Conversation
from leporello.store import open_store
from leporello.store.records import Metadata
from leporello.testing.sessions import FactKind, generate
from tests.conftest import RunCli


def test_to_postgres_and_back_by_the_program(run_cli: RunCli, tmp_path: Path, postgres_url: str) -> None:
    """What comes back is what was there: every command says the same about original and copies."""
    session = generate(seed=5, messages=120)
    first, second, backup = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "backup.db"
    with open_store(str(first)) as store:
        conversation = Conversation.open(
            "build-42", store=store, window=24_000, metadata=Metadata(title="\x1b[2J\0 title")
        )
        conversation.append(*session.messages)
        assert conversation.compact().committed
        store.pins.add("build-42", 3, "keep")
        store.artifacts.put("build-42", b"log " * 5_000, "test.log")
        store.conversations.create("\0odd\ud800")
    there = json.loads(run_cli("store", "copy", first, postgres_url, "--json").out)
    assert (there["conversations"], there["already_there"]) == (2, 0)
    assert json.loads(run_cli("store", "copy", first, postgres_url, "--json").out)["already_there"] == 2
    assert json.loads(run_cli("store", "copy", postgres_url, second, "--json").out)["conversations"] == 2
    assert run_cli("store", "backup", backup, "--store", postgres_url).code == 0
    ask = next(session.of(FactKind.ASK)).text
    for arguments in (
        ["sessions", "list", "--json"],
        ["sessions", "show", "build-42", "--json"],
        ["sessions", "show", "build-42"],
        ["sessions", "export", "build-42"],
        ["sessions", "export", "build-42", "--view"],
        ["insights", "--json"],
    ):
        answers = {run_cli(*arguments, "--store", url).out for url in (first, postgres_url, second, backup)}
        assert len(answers) == 1, arguments
        assert answers != {""}
    for url in (first, postgres_url, second, backup):
        best = json.loads(run_cli("sessions", "search", ask, "--json", "--store", url).out)["hits"][0]
        assert best["text"] == ask
        assert run_cli("doctor", "--store", url).code == 0
        assert run_cli("doctor", "--repair", "--store", url).code == 0
        assert json.loads(run_cli("store", "info", "--json", "--store", url).out)["conversations"] == 2


def test_a_server_that_is_not_there(run_cli: RunCli, tmp_path: Path) -> None:
    """One line that never shows the password."""
    url = f"postgresql://ann:s3cr3t-w0rd@/db?host={tmp_path}"
    for arguments in (["sessions", "list", "--store", url], ["doctor", "--store", url], ["store", "copy", url, "x.db"]):
        ran = run_cli(*arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert "s3cr3t" not in ran.err
    assert not Path("x.db").exists()
