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
    assert "could not be read: 1, in 1 session" in ran.err


def test_the_configured_store_is_the_default(run_cli: Any, tmp_path: Path) -> None:
    """Without --store the store of the settings is used."""
    path = tmp_path / "talk.json"
    path.write_text(WRITERS["openai list"].write(TALK), "utf-8")
    assert run_cli("--home", tmp_path / "home", "import", path).code == 0
    assert (tmp_path / "home" / "leporello.db").exists()


def test_a_file_that_is_not_there_does_not_stop_the_others(run_cli: Any, tmp_path: Path) -> None:
    """It is named like any other that can't be read; a pattern that matched nothing is called one."""
    good = tmp_path / "good.jsonl"
    good.write_text(WRITERS["pi"].write(TALK), "utf-8")
    ran = run_cli("import", good, tmp_path / "nope.jsonl", tmp_path / "*.gone", "--store", tmp_path / "s.db")
    assert ran.code == 2
    assert "nope.jsonl: there is no such file or folder" in ran.err
    assert "*.gone: no file matches this pattern" in ran.err
    with open_store(str(tmp_path / "s.db")) as store:
        assert len(store.conversations.page().conversations) == 1


def test_nothing_to_import_makes_no_store(run_cli: Any, tmp_path: Path) -> None:
    """Only names of nothing: exit code 2 and no file; a folder without recordings: exit code 3."""
    assert run_cli("import", tmp_path / "nope", "--store", tmp_path / "s.db").code == 2
    (tmp_path / "empty").mkdir()
    ran = run_cli("import", tmp_path / "empty", "--store", tmp_path / "s.db")
    assert (ran.code, "no recordings were found" in ran.err) == (3, True)
    assert not (tmp_path / "s.db").exists()


def test_a_folder_is_reported_in_few_lines(run_cli: Any, tmp_path: Path) -> None:
    """Reasons are counted, formats listed once, empty recordings are no rows; --verbose names each file."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(20):
        (folder / f"notes{number}.md").write_text("# Notes", "utf-8")
        silent = json.dumps({"type": "session_meta", "payload": {"id": f"silent{number}"}})
        (folder / f"silent{number}.jsonl").write_text(silent, "utf-8")
    (folder / "talk.jsonl").write_text(WRITERS["pi"].write(TALK), "utf-8")
    ran = run_cli("import", folder, "--store", tmp_path / "s.db")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 2  # the heading and the one session
    assert "left out, 20 files: is no recording of a known format" in ran.err
    assert "In 20 recordings nothing was said." in ran.err
    assert ran.err.count("claude-code") == 1
    assert len(ran.err.splitlines()) < 8
    every = run_cli("import", folder, "--store", tmp_path / "s.db", "--verbose")
    assert all(f"notes{number}.md" in every.err and f"silent{number}.jsonl" in every.err for number in range(20))


def test_equal_remarks_are_counted_together(run_cli: Any, tmp_path: Path) -> None:
    """Remarks of many files are one line with how often and in how many sessions."""
    for number in range(5):
        call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "no json"}}
        asked = {"role": "user", "content": f"question {number}"}
        conversation = [
            asked,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "user", "content": "?"},
        ]
        (tmp_path / f"talk{number}.json").write_text(json.dumps(conversation), "utf-8")
    ran = run_cli("import", *sorted(tmp_path.glob("talk*.json")), "--store", tmp_path / "s.db")
    assert ": 5 times, in 5 sessions" in ran.err
    assert "talk3.json" not in ran.err
