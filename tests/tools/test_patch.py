"""`patch`: exact or not at all, with an answer that helps when it does not fit."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello.errors import ToolError
from leporello.tools.patch import apply_hunks, parse_diff, replace_text

LINE = st.sampled_from(["", "a", "b", "c", "  a", "x = 1", "-- note", "++ sum", "@@ odd", "\\ back"])
LINES = st.lists(LINE, max_size=14)
TEXTS = st.tuples(LINES, st.booleans()).map(lambda drawn: "\n".join(drawn[0]) + ("\n" if drawn[1] and drawn[0] else ""))


@given(old=TEXTS, new=TEXTS, context=st.integers(0, 4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_diff_by_git_turns_the_old_text_into_the_new(tmp_path: Path, old: str, new: str, context: int) -> None:
    """Also without newlines at the end, with repeated lines, and with lines that look like headers."""
    if old == new:
        return
    (tmp_path / "old").write_text(old)
    (tmp_path / "new").write_text(new)
    made = subprocess.run(
        ["git", "diff", "--no-index", "--no-color", f"-U{context}", "old", "new"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
    )
    (change,) = parse_diff(made.stdout)
    assert apply_hunks(old, change.hunks, "old") == new


@given(old=TEXTS, new=TEXTS, above=LINES)
def test_wrong_line_numbers_never_put_a_change_in_a_wrong_place(old: str, new: str, above: list[str]) -> None:
    """The hunks of a diff, applied to a file that has grown above them: right, or refused."""
    before = "".join(f"added {n}\n" for n, _ in enumerate(above)) + old
    rows = list(difflib.unified_diff(_rows(old), _rows(new), "f", "f", lineterm=""))
    if not rows or not old.endswith("\n") or not new.endswith("\n"):
        return
    (change,) = parse_diff("\n".join(rows) + "\n")
    after = "".join(f"added {n}\n" for n, _ in enumerate(above)) + new
    try:
        result = apply_hunks(before, change.hunks, "f")
    except ToolError:
        return
    if all(hunk.old for hunk in change.hunks) and _places(before, change.hunks[0].old) == 1:
        assert result == after


def _rows(text: str) -> list[str]:
    return text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")


def _places(text: str, old: tuple[str, ...]) -> int:
    rows = _rows(text)
    return sum(rows[at : at + len(old)] == list(old) for at in range(len(rows)))


@given(before=st.text(max_size=80), old=st.text(min_size=1, max_size=10), new=st.text(max_size=10))
def test_exact_replacement_changes_that_place_and_nothing_else(before: str, old: str, new: str) -> None:
    text = before + old + before[::-1]
    try:
        result = replace_text(text, old, new, "f")
    except ToolError as error:
        refusal = str(error)
    else:
        assert text.count(old) == 1
        assert result == text.replace(old, new)
        return
    assert text.count(old) > 1
    assert "occurs" in refusal


def test_a_text_that_occurs_twice_is_named_with_its_lines(workshop: Any) -> None:
    path = workshop.write("a.py", "x = 1\ny = 2\nx = 1\n")
    text = workshop.error("patch", path="a.py", old_string="x = 1", new_string="x = 3")
    assert "occurs 2 times" in text
    assert "lines 1, 3" in text
    workshop.text("patch", path="a.py", old_string="x = 1", new_string="x = 3", replace_all=True)
    assert path.read_text() == "x = 3\ny = 2\nx = 3\n"


def test_not_found_shows_the_nearest_lines_and_the_difference(workshop: Any) -> None:
    body = "".join(f"def unrelated_{n}():\n    return {n}\n\n" for n in range(300))
    workshop.write("a.py", body + "def total(items):\n\treturn sum(items)\n")
    text = workshop.error("patch", path="a.py", old_string="def total(items):\n    return sum(items)", new_string="x")
    assert "Only blanks or indentation differ" in text
    assert "901\tdef total(items):" in text
    copied = "901\tdef total(items):\n902\t\treturn sum(items)"
    text = workshop.error("patch", path="a.py", old_string=copied, new_string="x")
    assert "line numbers of read_file" in text
    text = workshop.error("patch", path="a.py", old_string="zebra crossing ahead", new_string="x")
    assert "Nothing in the file is similar" in text


def test_the_result_shows_what_changed(workshop: Any) -> None:
    workshop.write("a.txt", "one\ntwo\nthree\n")
    text = workshop.text("patch", path="a.txt", old_string="two", new_string="2")
    assert "-two" in text
    assert "+2" in text


def test_files_with_other_line_ends_keep_them(workshop: Any) -> None:
    path = workshop.write("dos.txt", b"one\r\ntwo\r\nthree\r\n")
    workshop.text("patch", path="dos.txt", old_string="one\ntwo", new_string="1\n2")
    assert path.read_bytes() == b"1\r\n2\r\nthree\r\n"
    workshop.text("patch", diff="--- dos.txt\n+++ dos.txt\n@@ -1,3 +1,4 @@\n 1\n-2\n+zwei\n+drei\n three\n")
    assert path.read_bytes() == b"1\r\nzwei\r\ndrei\r\nthree\r\n"


def test_bytes_that_are_no_text_survive_beside_a_change(workshop: Any) -> None:
    path = workshop.write("latin.txt", b"caf\xe9 one\nline\n")
    workshop.text("patch", path="latin.txt", old_string="line", new_string="row")
    assert path.read_bytes() == b"caf\xe9 one\nrow\n"


def test_a_diff_of_several_files_fits_whole_or_not_at_all(workshop: Any) -> None:
    one = workshop.write("one.txt", "a\nb\n")
    two = workshop.write("two.txt", "c\nd\n")
    good = "--- a/one.txt\n+++ b/one.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"
    bad = "--- a/two.txt\n+++ b/two.txt\n@@ -1,2 +1,2 @@\n c\n-x\n+X\n"
    new = "--- /dev/null\n+++ b/sub/new.txt\n@@ -0,0 +1,2 @@\n+n\n+m\n"
    gone = "--- a/two.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-c\n-d\n"
    assert "hunk 1 of two.txt" in workshop.error("patch", diff=good + new + bad)
    assert (one.read_text(), two.read_text()) == ("a\nb\n", "c\nd\n")
    assert not (workshop.workdir / "sub").exists()
    text = workshop.text("patch", diff=good + new + gone)
    assert "deleted two.txt" in text
    assert one.read_text() == "a\nB\n"
    assert not two.exists()
    assert (workshop.workdir / "sub/new.txt").read_text() == "n\nm\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "a.txt", "old_string": "one", "new_string": "one"}, "leaves a.txt as it is"),
        ({"path": "a.txt", "old_string": "", "new_string": "x"}, "old_string is empty"),
        ({"old_string": "one", "new_string": "x"}, "path is missing"),
        ({"path": "a.tx", "old_string": "one", "new_string": "x"}, "Similar names there: a.txt"),
        ({"path": "a.txt", "old_string": "one", "new_string": "x", "diff": "@@"}, "not both"),
        ({"path": "a.txt", "diff": "nothing here"}, "no hunk"),
        ({"path": "a.txt", "diff": "@@\n one\nforgot the blank\n+x"}, "line 3 of the diff"),
        ({"path": "a.txt", "diff": "@@\n+x"}, "does not say where"),
        ({"path": "a.txt", "diff": "@@\n-same\n+x"}, "fits in 2 places (lines 2, 3)"),
        ({"diff": "@@\n-one\n+x"}, "which file"),
        ({"diff": "--- a/a.txt\n+++ b/b.txt\nrename from a.txt\n"}, "rename"),
        ({"diff": "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"}, "exists already"),
        ({"diff": "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"}, "holds more"),
    ],
)
def test_what_does_not_fit_is_said_and_changes_nothing(workshop: Any, arguments: dict[str, Any], words: str) -> None:
    path = workshop.write("a.txt", "one\nsame\nsame\n")
    assert words in workshop.error("patch", **arguments)
    assert path.read_text() == "one\nsame\nsame\n"


def test_prose_behind_a_complete_hunk_is_no_part_of_it(workshop: Any) -> None:
    path = workshop.write("a.txt", "one\ntwo\n")
    workshop.text("patch", path="a.txt", diff="@@ -1 +1 @@\n-one\n+1\n\nThat is all.\n")
    assert path.read_text() == "1\ntwo\n"


def test_headers_without_numbers_and_wrong_counts_are_understood(workshop: Any) -> None:
    path = workshop.write("a.py", "import os\n\n\ndef f():\n    return 1\n")
    workshop.text("patch", path="a.py", diff="@@ def f():\n def f():\n-    return 1\n+    return 2\n\n")
    assert path.read_text().endswith("return 2\n")
    workshop.text("patch", path="a.py", diff="@@ -90,1 +90,9 @@\n def f():\n-    return 2\n+    return 3\n+    # end\n")
    assert path.read_text().endswith("return 3\n    # end\n")


def test_trailing_blanks_in_context_may_differ_and_stay(workshop: Any) -> None:
    path = workshop.write("a.txt", "one  \ntwo\n")
    workshop.text("patch", path="a.txt", diff="@@ -1,2 +1,2 @@\n one\n-two\n+2\n")
    assert path.read_text() == "one  \n2\n"
