"""`leporello import`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leporello.store import open_store

from .format_writers import WRITERS
from .session_script import Script, Turn

TALK = Script((Turn("user", "hello"), Turn("assistant", "hi")))


def test_importing_twice(run_cli: Any, tmp_path: Path) -> None:
    """The second run says that nothing changed."""
    path = tmp_path / "talk.jsonl"
    path.write_text(WRITERS["claude-code"].write(TALK), "utf-8")
    url = str(tmp_path / "s.db")
    first = run_cli("import", path, "--store", url, "--json")
    assert first.code == 0
    row = json.loads(first.out)["imported"][0]
    assert (row["change"], row["added"], row["format"]) == ("new", 2, "claude-code")
    again = run_cli("import", path, "--store", url)
    assert "unchanged" in again.out
    assert "0 messages added" in again.err
    with open_store(url) as store:
        assert store.log.count(row["conversation"]) == 2


def test_one_bad_file_does_not_stop_the_others(run_cli: Any, tmp_path: Path) -> None:
    """The bad one is named, the good one is stored, and the exit code says that not all went well."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(WRITERS["openai list"].write(TALK), "utf-8")
    bad.write_text('{"nothing": "here"}', "utf-8")
    ran = run_cli("import", bad, good, "--store", tmp_path / "s.db")
    assert ran.code == 2
    assert "bad.json" in ran.err
    assert "new" in ran.out


def test_a_folder_may_hold_other_files(run_cli: Any, tmp_path: Path) -> None:
    """Folders are searched; what is no recording in them is named and is no failure."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "talk.jsonl").write_text(WRITERS["pi"].write(TALK), "utf-8")
    (tmp_path / "in" / "notes.md").write_text("# Notes", "utf-8")
    (tmp_path / "in" / "picture.png").write_bytes(b"\x89PNG")
    ran = run_cli("import", tmp_path / "in", "--store", tmp_path / "s.db", "--json")
    assert ran.code == 0
    answer = json.loads(ran.out)
    assert [row["format"] for row in answer["imported"]] == ["pi"]
    assert len(answer["skipped"]) == 1


def test_broken_lines_are_reported(run_cli: Any, tmp_path: Path) -> None:
    """How many lines could not be read stands in the report."""
    path = tmp_path / "talk.jsonl"
    path.write_text(WRITERS["claude-code"].write(TALK) + "{broken\n", "utf-8")
    ran = run_cli("import", path, "--store", tmp_path / "s.db")
    assert ran.code == 0
    assert "could not be read: 1" in ran.err


def test_the_configured_store_is_the_default(run_cli: Any, tmp_path: Path) -> None:
    """Without --store the store of the settings is used."""
    path = tmp_path / "talk.json"
    path.write_text(WRITERS["openai list"].write(TALK), "utf-8")
    assert run_cli("--home", tmp_path / "home", "import", path).code == 0
    assert (tmp_path / "home" / "leporello.db").exists()
