"""Damaged and foreign files: what can be read is read, the rest is counted, and errors say what to do."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.errors import InputError
from leporello.importers import FORMATS, load_session, load_sessions
from leporello.turns import ViolationKind, validate

from .format_writers import WRITERS
from .session_script import Called, Script, Turn, expected, scripts, seen

SCRIPT = Script(
    (
        Turn("user", "look around"),
        Turn("assistant", "looking", (Called("toolu_1", "bash", {"command": "ls"}, "a.txt"),), "hm"),
        Turn("assistant", "found a.txt"),
        Turn("user", "thanks"),
    )
)
LINES = [name for name, writer in WRITERS.items() if "\n" in writer.write(SCRIPT).strip()]
MENDED = {ViolationKind.NEIGHBOURS, ViolationKind.LATE_SYSTEM, ViolationKind.NO_USER}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


@pytest.mark.parametrize("name", LINES)
def test_a_broken_line_is_counted_and_the_rest_is_read(name: str, tmp_path: Path) -> None:
    """A line that is no JSON, at any place, costs that line and nothing else."""
    writer = WRITERS[name]
    lines = writer.write(SCRIPT).rstrip("\n").split("\n")
    whole = seen(load_session(_saved(tmp_path, "\n".join(lines))).messages)
    for place in range(1, len(lines) + 1):
        damaged = [*lines[:place], '{"type": "user", "mess', "", *lines[place:]]
        session = load_session(_saved(tmp_path, "\n".join(damaged)))
        assert session.skipped_lines == 1
        assert seen(session.messages) == whole


def _saved(folder: Path, text: str) -> Path:
    path = folder / "recording"
    path.write_text(text, "utf-8", errors="surrogatepass")
    return path


@pytest.mark.parametrize("name", LINES)
@settings(max_examples=settings().max_examples // 4)
@given(data=st.data())
def test_any_lines_may_be_missing(name: str, folder: Path, data: st.DataObject) -> None:
    """Whatever lines are lost, the result is a list a provider would take (a user message may be among the lost)."""
    writer = WRITERS[name]
    lines = writer.write(data.draw(scripts())).rstrip("\n").split("\n")
    kept = [line for line in lines if data.draw(st.integers(0, 3))]
    try:
        sessions = load_sessions(_saved(folder, "\n".join(kept)))
    except InputError:
        return  # so little is left that the format can't be told
    for session in sessions:
        assert [v for v in validate(session.messages) if v.fault not in MENDED] == []


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values inside a JSON value."""
    if isinstance(value, dict):
        inner = [_places(item, (*here, key)) for key, item in value.items()]
    elif isinstance(value, list):
        inner = [_places(item, (*here, index)) for index, item in enumerate(value)]
    else:
        inner = []
    return [here, *(place for places in inner for place in places)]


def _replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    key, *rest = place
    if isinstance(value, dict):
        return {**value, key: _replaced(value[key], tuple(rest), new)}
    return [_replaced(item, tuple(rest), new) if index == key else item for index, item in enumerate(value)]


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_any_field_may_hold_anything(name: str, folder: Path, data: st.DataObject) -> None:
    """Drifted schemas: a field of another type never crashes an importer, and the result is still valid."""
    text = WRITERS[name].write(SCRIPT)
    lines = text.rstrip("\n").split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        value = json.loads(lines[number])
        place = data.draw(st.sampled_from(_places(value)))
        lines[number] = json.dumps(_replaced(value, place, data.draw(JSON_VALUES)))
    try:
        sessions = load_sessions(_saved(folder, "\n".join(lines)))
    except InputError:
        return
    for session in sessions:
        assert [v for v in validate(session.messages) if v.fault not in MENDED] == []


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(folder: Path, data: bytes) -> None:
    """No file of any content raises anything but an `InputError`."""
    path = folder / "bytes"
    path.write_bytes(data)
    with contextlib.suppress(InputError):
        load_sessions(path)


def test_two_objects_on_one_line_are_both_read(tmp_path: Path) -> None:
    """A lost line end loses nothing."""
    lines = WRITERS["qwen-code"].write(SCRIPT).rstrip("\n").split("\n")
    session = load_session(_saved(tmp_path, lines[0] + lines[1] + "\n" + "\n".join(lines[2:])))
    assert seen(session.messages) == expected(SCRIPT)
    assert session.skipped_lines == 0


@pytest.mark.parametrize(
    "content", ["", "  \n", "hello", '{"a": 1}', "[1, 2]", '{"a": 1}\n{"b": 2}\n', "# A page\n\ntext"]
)
def test_unknown_formats_are_refused_with_a_list_of_what_is_known(tmp_path: Path, content: str) -> None:
    """The error names the file, and the formats (or says the file is empty)."""
    path = tmp_path / "strange.json"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError) as caught:
        load_session(path)
    assert str(path) in str(caught.value)
    if content.strip():
        assert all(known.name in str(caught.value) for known in FORMATS)
    else:
        assert "empty" in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    """What is not there or is a folder is said in plain words."""
    with pytest.raises(InputError, match="there is no such file"):
        load_session(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match="is a directory"):
        load_session(tmp_path)


def test_one_stored_message_of_opencode_says_what_to_do(tmp_path: Path) -> None:
    """opencode keeps each message in a file of its own; the error names the command that writes a session."""
    stored = {"id": "m", "sessionID": "s", "role": "assistant", "time": {"created": 1}}
    with pytest.raises(InputError, match="opencode export"):
        load_session(_saved(tmp_path, json.dumps(stored)))


@pytest.mark.parametrize("calls", [True, "x", {"id": "a"}, [3], [{"id": "a"}]])
def test_calls_of_a_wrong_shape_cost_only_themselves(tmp_path: Path, calls: Any) -> None:
    """Whatever stands where calls should be, the words beside it are read and the list is sound."""
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "on it", "tool_calls": calls},
        {"role": "user", "content": "and?"},
    ]
    session = load_session(_saved(tmp_path, json.dumps(messages)))
    assert [text for _, text, *_ in seen(session.messages) if text in ("go", "on it", "and?")] == [
        "go",
        "on it",
        "and?",
    ]
    assert validate(session.messages) == []
