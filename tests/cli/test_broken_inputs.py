"""Files that are broken, empty or missing: every command that reads one says the same about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunCli

READERS = (("compress",), ("replay",), ("import",), ("exam", "--make"))
MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps(MESSAGES)[:-4], "line 1, column "),
        (json.dumps({"messages": MESSAGES}, indent=1)[:-9], "is not JSON: "),
        (json.dumps(MESSAGES, indent=1)[:-9], "is not JSON: "),
        ("{bad json", "line 1, column 2: is not JSON: "),
        ("", "is empty"),
        (None, "there is no such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_alike(
    run_cli: RunCli, tmp_path: Path, reader: tuple[str, ...], text: str | None, said: str
) -> None:
    file = tmp_path / "session.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    ran = run_cli(*reader, file)
    assert ran.code == 2
    assert f"{file}: " in ran.err
    assert said in ran.err
    assert "known format" not in ran.err


def test_a_made_bank_says_how_to_sit_it(run_cli: RunCli, tmp_path: Path) -> None:
    """The command it prints works as it stands; without --sessions the error names the option."""
    (tmp_path / "sessions").mkdir()
    session, bank = tmp_path / "sessions" / "it.json", tmp_path / "bank.json"
    said = "The staging server listens on port 8099 and never on 80. Never restart it by hand."
    session.write_text(json.dumps([{"role": "user", "content": said}, *MESSAGES]), encoding="utf-8")
    ran = run_cli("exam", "--make", session, "--out", bank)
    assert f"leporello exam {bank} --sessions {session.parent}" in ran.err
    assert run_cli("exam", bank, "--sessions", session.parent).code == 0
    assert "--sessions DIR" in run_cli("exam", bank).err


def test_a_file_that_is_no_store_is_not_called_a_broken_one(run_cli: RunCli, tmp_path: Path) -> None:
    file = tmp_path / "notes.json"
    file.write_text("[]" * 400, encoding="utf-8")
    assert "not those of a store: name the right file with --store" in run_cli("doctor", "--store", file).err
