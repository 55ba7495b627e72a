"""What of a message can be searched, the line a search shows of it, and an index made anew after deletions."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from leporello.store import open_store
from leporello.store.records import SearchQuery
from leporello.store.sql.checkup import Severity
from leporello.store.sql.chunks import searchable_chunks, snippet


def called(arguments: Any) -> dict[str, Any]:
    function = {"name": "edit", "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"path": "a.py", "lines": [3, "four", {"deep": ["five"]}], "ok": True, "no": None},
            "path a.py\nlines 3 four deep five\nok \nno ",
        ),
        ([["one"], "two"], "one\ntwo"),
        ("broken {", "broken {"),
        ({"a": {"b": {"c": "inner"}}}, "a b c inner"),
    ],
)
def test_the_texts_inside_the_arguments_of_a_call(arguments: Any, text: str) -> None:
    (chunk,) = searchable_chunks(called(arguments))
    assert (chunk.number, chunk.start, chunk.tool) == (0, 0, "edit")
    assert chunk.text == f"edit\n{text}"


def test_a_long_text_is_cut_at_the_end_of_a_line_and_overlaps() -> None:
    lines = "".join(f"line {number:04}\n" for number in range(400))
    chunks = searchable_chunks({"role": "user", "content": lines})
    assert [chunk.number for chunk in chunks] == [0, 1]
    assert [chunk.start for chunk in chunks] == [0, 2_000]
    assert chunks[0].text == lines[:2_080]
    assert chunks[1].text == lines[2_000:]
    assert searchable_chunks({"role": "user", "content": " \n"}) == []
    assert len(searchable_chunks({"role": "user", "content": "x y " * 520})) == 1


LONG = "a" * 100 + " " + "b" * 100 + " needle " + "c" * 300


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("short text", "text", "short text"),
        ("two  \n blanks", "", "two blanks"),
        (LONG, "NEEDLE", "..." + LONG[142:382] + "..."),
        (LONG[:382], "needle", "..." + LONG[142:382]),
        (LONG[:383], "needle", "..." + LONG[142:382] + "..."),
        ("x" * 240, "x", "x" * 240),
        ("x" * 241, "x", "x" * 240 + "..."),
        ("the first line\n" + "y" * 300 + "\nports and parsers\n" + "z" * 300, "parser port", None),
    ],
)
def test_the_line_that_a_search_shows(text: str, query: str, shown: str | None) -> None:
    """Around the query itself, else around the line that shares most words with it."""
    found = snippet(text, query)
    if shown is None:
        assert "ports and parsers" in found
    else:
        assert found == shown


WORDS = ("apple", "banana", "cherry", "damson", "elder")


def test_after_deletions_the_index_is_made_anew_of_all_that_is_left(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        for name in ("one", "two", "gone"):
            store.conversations.create(name)
            store.log.append(name, [{"role": "user", "content": f"{word} of {name}"} for word in WORDS])
        store.index.catch_up()
        store.conversations.delete("gone")
        store.care.vacuum()
        assert store.care.checkup().findings == ()
        for word in WORDS:
            hits = store.index.search(SearchQuery(word))
            assert sorted(hit.conversation for hit in hits) == ["one", "two"]


def test_a_damaged_page_is_a_finding_of_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    other = sqlite3.connect(path, isolation_level=None)
    for statement in (
        "CREATE TABLE t (a, b)",
        "CREATE INDEX i ON t (a)",
        "INSERT INTO t VALUES (1, 10), (2, 20)",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (b)' WHERE name = 'i'",
    ):
        other.execute(statement)
    other.close()
    with open_store(str(path)) as store:
        pages = [finding for finding in store.care.checkup().findings if finding.check == "pages"]
        assert pages
        assert {finding.severity for finding in pages} == {Severity.DAMAGE}
        assert {finding.where for finding in pages} == {str(path)}
        assert any("index i" in finding.text for finding in pages)
