"""Windows that a provider stated in an error: remembered, bounded, and never half-read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.models import LearnedLimits
from leporello.models.limits import STALE_SECONDS

NOW = 1_790_000_000.0


def test_a_window_is_known_for_its_endpoint_and_model_only() -> None:
    """The same model behind another address is another matter."""
    book = LearnedLimits()
    assert book.learn(32_768, "qwen3", "openai", "http://box:8000/v1", now=NOW)
    assert book.window("qwen3", "openai", "http://box:8000/v1/", now=NOW) == 32_768
    assert book.window("qwen3", "OpenAI", "http://box:8000/v1", now=NOW) == 32_768
    assert book.window("qwen3", "openai", "http://other/v1", now=NOW) is None
    assert book.window("qwen2", "openai", "http://box:8000/v1", now=NOW) is None
    assert book.window("qwen3", now=NOW) is None


def test_a_newer_statement_replaces_an_older() -> None:
    """The provider may raise its window again."""
    book = LearnedLimits()
    book.learn(32_768, "m", now=NOW)
    book.learn(65_536, "m", now=NOW + 5)
    assert book.window("m", now=NOW + 5) == 65_536


@pytest.mark.parametrize("window", [0, -5, 12, 10**12, True])
def test_a_number_that_is_no_window_is_refused(window: int) -> None:
    """A misread error must not brick a model."""
    book = LearnedLimits()
    assert not book.learn(window, "m", now=NOW)
    assert book.window("m", now=NOW) is None


def test_an_old_statement_is_no_longer_believed() -> None:
    """After thirty days the endpoint is asked afresh, so to speak."""
    book = LearnedLimits()
    book.learn(32_768, "m", now=NOW)
    assert book.window("m", now=NOW + STALE_SECONDS) == 32_768
    assert book.window("m", now=NOW + STALE_SECONDS + 1) is None


names = st.text(max_size=20)


@given(st.lists(st.tuples(st.integers(256, 10**8), names, names, names), max_size=8))
def test_a_book_survives_storage(entries: list[tuple[int, str, str, str]]) -> None:
    """Out and in again as JSON, every window is the same."""
    book = LearnedLimits()
    for window, *where in entries:
        book.learn(window, *where, now=NOW)
    again = LearnedLimits.from_dict(json.loads(json.dumps(book.as_dict())), now=NOW)
    assert again.entries == book.entries
    assert not again.problems


@pytest.mark.parametrize(
    "value",
    [None, 5, "32768", [32_768], ["32768", NOW], [32_768, "today"], [True, NOW], [3, NOW], [32_768, NOW + 10**6]],
)
def test_a_bad_entry_is_left_out_and_named(value: object) -> None:
    """The others stay usable."""
    data = {"v": 1, "windows": {"bad one": value, "- - good": [8_192, NOW]}}
    book = LearnedLimits.from_dict(data, now=NOW)
    assert list(book.entries) == ["- - good"]
    assert len(book.problems) == 1
    assert "bad one" in book.problems[0]


def test_a_stale_entry_is_named_too() -> None:
    """Ignored, but not silently."""
    book = LearnedLimits.from_dict({"v": 1, "windows": {"x": [8_192, NOW - STALE_SECONDS - 1]}}, now=NOW)
    assert not book.entries
    assert "30 days" in book.problems[0]


@pytest.mark.parametrize("data", [None, [], {}, {"v": 7, "windows": {}}, {"v": 1, "windows": []}])
def test_another_kind_of_file_is_ignored_loudly(data: object) -> None:
    """An empty book, and one problem."""
    book = LearnedLimits.from_dict(data, now=NOW)
    assert not book.entries
    assert len(book.problems) == 1


def test_saving_and_loading(tmp_path: Path) -> None:
    """The folder is made, the file is whole, nothing else is left behind."""
    path = tmp_path / "models" / "learned.json"
    assert LearnedLimits.load(path, now=NOW).problems == []
    book = LearnedLimits()
    book.learn(32_768, "m", "p", "http://x", now=NOW)
    book.save(path)
    book.save(path)
    assert LearnedLimits.load(path, now=NOW).entries == book.entries
    assert [entry.name for entry in path.parent.iterdir()] == ["learned.json"]


def test_a_refused_search_for_tools_is_kept_for_a_month() -> None:
    book = LearnedLimits()
    book.learn_refused_search("m", "p", "http://x", now=NOW)
    kept = json.loads(json.dumps(book.as_dict()))
    assert LearnedLimits.from_dict(kept, now=NOW).refused_search("m", "p", "http://x")
    assert not LearnedLimits.from_dict(kept, now=NOW).refused_search("other", "p", "http://x")
    assert not LearnedLimits.from_dict(kept, now=NOW + STALE_SECONDS + 1).refused_search("m", "p", "http://x")
    assert not LearnedLimits.from_dict({**kept, "refused_searches": 7}, now=NOW).refused_search("m", "p", "http://x")


def test_a_torn_file_is_named_and_ignored(tmp_path: Path) -> None:
    """Bytes that are no JSON, or a folder in its place."""
    path = tmp_path / "learned.json"
    path.write_bytes(b'{"v": 1, "windo')
    book = LearnedLimits.load(path, now=NOW)
    assert not book.entries
    assert str(path) in book.problems[0]
    assert LearnedLimits.load(tmp_path, now=NOW).problems


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    """Atomic: what can't be written changes nothing."""
    path = tmp_path / "learned.json"
    book = LearnedLimits()
    book.learn(32_768, "m", now=NOW)
    book.save(path)
    before = path.read_bytes()
    book.entries["broken"] = (object(), NOW)  # type: ignore[assignment]
    with pytest.raises(TypeError):
        book.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["learned.json"]


def test_a_reader_in_the_middle_sees_the_old_file_whole(tmp_path: Path) -> None:
    """Saving puts a new file in place; it never writes into the one that somebody is reading."""
    path = tmp_path / "learned.json"
    book = LearnedLimits()
    book.learn(32_768, "m", now=NOW)
    book.save(path)
    with path.open("rb") as reader:
        book.learn(65_536, "a longer name", now=NOW)
        book.save(path)
        assert LearnedLimits.from_dict(json.loads(reader.read()), now=NOW).entries.keys() == {"- - m"}
    assert len(LearnedLimits.load(path, now=NOW).entries) == 2
