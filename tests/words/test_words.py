"""The tokeniser's promises: which words a text has, whatever the text is."""

from __future__ import annotations

import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.text_features.words import (
    FTS5_TOKENIZE,
    SHORT_HASH,
    index_words,
    joined_words,
    query_words,
    stem,
)

WORD = re.compile(r"[a-z0-9_]+\Z")
# Also text that no encoding takes: lone surrogates.
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=300)
RUNS = ["a", "a-", "-", "a.b/", "1,", "A", "aB", "中", "\\n", "'t", "é", "data:", "base64,", "\x1b["]
PIECES = [
    "src/a/b.go:12",
    "readFile",
    "--dry-run",
    "1,345",
    "v1.2.3",
    "索引检索",
    "don't",
    "Ünïcode",
    "привет",
    *RUNS,
    " ",
    ".",
]
MIXED_TEXT = st.lists(
    st.sampled_from(PIECES),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("read_file", ["read_file", "read", "fil"]),
        ("readFile", ["read_file", "read", "fil"]),
        ("read-file", ["read_file", "read", "fil"]),
        ("HTTPServer", ["http_server", "http", "server"]),
        ("MAX_RETRY_COUNT", ["max_retry_count", "max", "retri", "count"]),
        ("L036", ["l036"]),
        ("test2", ["test2", "test"]),
        ("store.Open", ["store_open", "stor", "open"]),
        (
            "src/db/openStore.go",
            ["src_db_open_store_go", "open_store_go", "open_store", "src", "db", "open", "stor", "go"],
        ),
        ("a/b.py:45", ["a_b_py_45", "b_py_45", "b_py", "py", "45"]),
        ("tests/test_x.py::test_y", ["tests_test_x_py_test_y", "test_x_py", "test_x", "test_y", "test", "py"]),
        ("C:\\new\\tool.py", ["c_new_tool_py", "tool_py", "new", "tool", "py"]),
        ("--dry-run", ["_dry_run", "dry_run", "dry", "run"]),
        ("-v", ["_v", "v"]),
        ("v1.2.3", ["1_2_3"]),
        ("tool-0.7.1", ["tool_0_7_1", "tool", "0_7_1"]),
        ("127.0.0.1:6379", ["127_0_0_1_6379", "127_0_0_1", "6379"]),
        ("1,345", ["1345"]),
        ("2.029s", ["2_029s", "2_029"]),
        ("100ms", ["100ms", "100"]),
        ("70%", ["70"]),
        ("2026-09-07T17:13:21.870Z", ["2026_09_07", "17_13_21", "17_13"]),
        ("2026-09-07T17:13:21", ["2026_09_07", "17_13_21", "17_13"]),
        ("225c5a1f09", ["225c5a1f09", "225c5a1"]),
        ("#b5bd68", ["b5bd68"]),
        ("doesn't", ["doesnt"]),
        ("user's", ["user"]),
        ("they’re", ["thei"]),
        ("café", ["caf"]),
        ("cafe", ["caf"]),
        ("ＡＢＣ", ["abc"]),
        ("检索", ["__68c07d22"]),
        ("检索库", ["__68c07d22", "__7d225e93"]),
        ("中", ["__4e2d"]),
        ("用readFile读", ["__7528", "read_file", "read", "fil", "__8bfb"]),
        ("Привет", ["__043f04400438043204350442"]),
        ("", []),
        ('{"[]}, ;;', []),
    ],
)
def test_words_of(text: str, expected: list[str]) -> None:
    """Each kind of text gives exactly these words."""
    assert index_words(text) == expected


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("read file", ["read_file"]),
        ("Dispatch cached shipment", ["dispatch_cached_shipment", "dispatch_cached", "cached_shipment"]),
        ("read 文件 file", ["read_file"]),
        ("file", []),
        ("", []),
        ("one two three four five six", []),
    ],
)
def test_neighbouring_words_may_be_a_name(query: str, names: list[str]) -> None:
    """In a short query, longest first; a long one is a question."""
    assert joined_words(query) == names
    assert all(name in index_words(name) for name in names)


def test_a_date_or_a_time_finds_its_moment() -> None:
    """However a log writes a moment, the date alone and the time alone are words of it."""
    for written in (
        "2026-09-07T17:13:21.870Z",
        "2026-09-07T17:13:21Z",
        "2026-09-07 17:13:21",
        "2026-09-07T17:13:21+02:00",
    ):
        words = set(index_words(f"{written} INFO started"))
        assert index_words("2026-09-07")[0] in words
        assert index_words("17:13:21")[0] in words


@pytest.mark.parametrize(
    ("forms", "root"),
    [
        (("test", "tests", "tested", "testing"), "test"),
        (("delete", "deletes", "deleted", "deleting", "deletion"), "delet"),
        (("validate", "validated", "validation", "validator"), "validat"),
        (("commit", "commits", "committed", "committing"), "commit"),
        (("retry", "retries", "retried"), "retri"),
        (("class", "classes"), "class"),
        (("deploy", "deployment", "deployments"), "deploi"),
        (("status",), "status"),
        (("id", "ids"), None),
    ],
)
def test_word_forms_meet(forms: tuple[str, ...], root: str | None) -> None:
    """Forms of one English word fold to one spelling; very short words are left alone."""
    assert {stem(form) for form in forms} == ({root} if root else set(forms))


def test_noise_gives_no_words() -> None:
    """Embedded files, keys and colour codes leave nothing in the index, and don't swallow what stands beside them."""
    picture = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA+/" * 40 + "=="
    token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9eyJzdWIiOiIxMjM0NTY3ODkwIiwi"
    assert index_words(f"before {picture} after") == ["befor", "after"]
    assert index_words(f"x {token} y") == ["x", "y"]
    assert index_words("\x1b[31mFAILED\x1b[0m") == ["fail"]


def test_escaped_line_ends_do_not_stick_to_words() -> None:
    """Output quoted inside JSON keeps its words."""
    assert index_words("one\\nfound\\tten") == ["one", "found", "ten"]


def test_a_short_hash_finds_a_long_one() -> None:
    """The abbreviated commit id is among the words of the full one."""
    full = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
    assert full[:SHORT_HASH] in index_words(full)
    assert set(index_words(full[:SHORT_HASH])) <= set(index_words(full))


def test_query_words_leave_out_filler_but_never_everything() -> None:
    """A question is reduced to its subject; a query of filler alone is taken as it is."""
    assert query_words("Which port did the staging server use?") == ["port", "stag", "server", "use"]
    assert query_words("what is it") == ["what", "is", "it"]
    assert query_words("tests test") == ["test"]


@given(ANY_TEXT | MIXED_TEXT)
def test_words_are_safe_everywhere_and_repeatable(text: str) -> None:
    """Any text, even one that can't be encoded, gives words of the agreed alphabet, the same ones each time."""
    words = index_words(text)
    assert all(WORD.match(word) for word in words)
    assert words == index_words(text)
    assert set(query_words(text)) <= set(words)


@given(MIXED_TEXT)
def test_fts5_sees_exactly_our_words(text: str) -> None:
    """Joined by blanks and tokenised by FTS5, the words come out one for one."""
    words = index_words(text)
    with sqlite3.connect(":memory:") as db:
        db.execute(f'CREATE VIRTUAL TABLE t USING fts5(w, tokenize="{FTS5_TOKENIZE}")')
        db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
        db.execute("INSERT INTO t(w) VALUES (?)", (" ".join(words),))
        seen = [term for (term,) in db.execute('SELECT term FROM v ORDER BY "offset"')]
    db.close()
    assert seen == words


@pytest.mark.parametrize("unit", RUNS)
def test_long_runs_are_read_in_linear_time(unit: str) -> None:
    """A hundred thousand characters of any one pattern come back at all: a quadratic step would take minutes."""
    index_words(unit * (100_000 // len(unit)))
