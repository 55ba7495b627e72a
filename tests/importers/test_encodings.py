"""What is not UTF-8 is decoded by its mark or by name, and said, or refused; no letter is ever replaced."""

from __future__ import annotations

import codecs
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.bench.bank import load_bank
from leporello.bench.make_bank import make_bank
from leporello.files import NotText, decode_text
from leporello.importers import load_session, load_sessions
from leporello.store import open_store

from .format_writers import WRITERS
from .session_script import Script, Turn

TALK = Script((Turn("user", "Où est le café de Zoë?"), Turn("assistant", "À Besançon.")))
MARKED = {
    "utf-8-sig": ("UTF-8", codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": ("UTF-16", codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": ("UTF-16", codecs.BOM_UTF16_BE, "utf-16-be"),
    "utf-32-le": ("UTF-32", codecs.BOM_UTF32_LE, "utf-32-le"),
}


def _raw(name: str) -> str:
    """A recording whose letters stand as they are, not as JSON escapes."""
    lines = WRITERS[name].write(TALK).split("\n")
    try:
        return "\n".join(json.dumps(json.loads(line), ensure_ascii=False) if line.strip() else "" for line in lines)
    except json.JSONDecodeError:
        return "\n".join(lines)


@pytest.mark.parametrize("name", WRITERS)
def test_every_importer_refuses_what_is_not_utf8_and_reads_it_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "talk"
    data = _raw(name).encode("latin-1")
    path.write_bytes(data)
    with pytest.raises(NotText) as caught:
        load_sessions(path)
    offset = data.index("ù".encode("latin-1"))
    assert caught.value.offset == offset
    assert str(path) in str(caught.value)
    assert f"byte {offset:,} is 0xf9" in str(caught.value)
    assert "--encoding latin-1" in str(caught.value)
    read = load_session(path, encoding="latin-1")
    assert "read as latin-1, as asked" in read.notes
    path.write_text(_raw(name), "utf-8")
    plain = load_session(path)
    assert read.messages == plain.messages
    assert not [note for note in plain.notes if note.startswith("read as")]


@pytest.mark.parametrize("encoding", MARKED)
@pytest.mark.parametrize("name", ["claude-code", "openai list"])
def test_a_byte_order_mark_is_believed_and_said(name: str, encoding: str, tmp_path: Path) -> None:
    said, mark, codec = MARKED[encoding]
    path = tmp_path / "talk"
    path.write_bytes(mark + _raw(name).encode(codec))
    read = load_session(path)
    assert read.messages[0]["content"] == "Où est le café de Zoë?"
    assert read.notes[0] == f"read as {said}, as its byte order mark says"


def test_offsets_count_from_the_first_byte_of_the_file() -> None:
    for data, offset in ((b"\xef\xbb\xbfcaf\xe9", 6), (b"\xff\xfea\0b\0\x00\xd8x\0", 6), (b"caf\xe9 noir", 3)):
        with pytest.raises(NotText, match=f"byte {offset} ") as caught:
            decode_text(data, "x")
        assert caught.value.offset == offset
        assert pickle.loads(pickle.dumps(caught.value)).offset == offset


@given(st.binary(max_size=60))
def test_nothing_is_ever_replaced(data: bytes) -> None:
    """Whatever is decoded without a mark reads back as the same bytes."""
    try:
        decoded = decode_text(data, "x")
    except NotText:
        return
    if not decoded.remark:
        assert decoded.text.encode("utf-8", "surrogatepass") == data


def test_json_lines_that_end_inside_a_character_lose_the_unfinished_line_only(tmp_path: Path) -> None:
    """A writer that died leaves half a character; everything before it is read, and the line is counted."""
    path = tmp_path / "talk.jsonl"
    whole = _raw("claude-code").rstrip("\n") + "\n"
    path.write_bytes(whole.encode() + '{"type": "user", "message": "caf€'.encode()[:-1])
    session = load_session(path)
    assert session.skipped_lines == 1
    assert [message["content"] for message in session.messages] == ["Où est le café de Zoë?", "À Besançon."]


def test_import_names_the_file_and_stores_nothing_of_it(run_cli: Any, tmp_path: Path) -> None:
    path, url = tmp_path / "talk.jsonl", str(tmp_path / "s.db")
    path.write_bytes(_raw("claude-code").encode("latin-1"))
    ran = run_cli("import", path, "--store", url)
    assert ran.code == 2
    assert "talk.jsonl: is not UTF-8 text: byte" in ran.err
    with open_store(url) as store:
        assert store.conversations.page().conversations == ()
    ran = run_cli("import", path, "--store", url, "--encoding", "latin-1", "--json")
    assert ran.code == 0
    (row,) = json.loads(ran.out)["imported"]
    assert row["notes"][0] == "read as latin-1, as asked"
    with open_store(url) as store:
        assert store.log.message(row["conversation"], 1).message["content"] == "Où est le café de Zoë?"


def test_import_of_a_folder_names_recordings_it_cannot_read_and_counts_the_rest(run_cli: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "lost.jsonl").write_bytes(_raw("claude-code").encode("latin-1"))
    (folder / "good.jsonl").write_text(_raw("pi"), "utf-8")
    (folder / "notes.md").write_bytes("# Café".encode("latin-1"))
    ran = run_cli("import", folder, "--store", str(tmp_path / "s.db"), "--json")
    told = json.loads(ran.out)
    assert ran.code == 2
    assert len(told["imported"]) == 1
    assert ["lost.jsonl" in reason for reason in told["failed"]] == [True]
    assert ["notes.md" in reason for reason in told["skipped"]] == [True]


def test_binary_files_are_called_binary(run_cli: Any, tmp_path: Path) -> None:
    ran = run_cli("import", sys.executable, "--store", str(tmp_path / "s.db"))
    assert ran.code == 2
    assert "holds binary data, not text" in ran.err


def test_an_unknown_encoding_is_a_usage_error(run_cli: Any, tmp_path: Path) -> None:
    for command in ("import", "compress"):
        for name in ("klingon", "hex", "with\0zero"):
            ran = run_cli(command, tmp_path / "x", "--encoding", name)
            assert ran.code == 2
            assert "is not a known encoding" in ran.err


def test_compress_reads_by_mark_and_by_name_and_says_so(run_cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    text = json.dumps([{"role": "user", "content": "Où?"}], ensure_ascii=False)
    path.write_bytes(text.encode("latin-1"))
    refused = run_cli("compress", path)
    assert (refused.code, refused.out) == (2, "")
    assert "byte 31 is 0xf9" in refused.err
    read = run_cli("compress", path, "--encoding", "latin-1")
    assert json.loads(read.out)[0]["content"] == "Où?"
    assert "read as latin-1" in read.err
    path.write_bytes(text.encode("utf-16"))
    told = json.loads(run_cli("compress", path, "--json").out)
    assert told["messages"][0]["content"] == "Où?"
    assert "UTF-16" in told["warnings"][-1]


@pytest.mark.parametrize(
    "arguments",
    [("compress", "-"), ("run", "-", "--model", "scripted:demo"), ("chat", "--plain", "--model", "scripted:demo")],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_standard_input_that_is_no_text_is_refused(arguments: tuple[str, ...], locale: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [Path(sys.executable).with_name("leporello"), "--home", tmp_path, *arguments],
        input="Où?\n".encode("latin-1"),
        env={"LC_ALL": locale, "LEPORELLO_HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 2
    assert b"standard input: is not UTF-8 text" in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_banks_and_their_sessions_are_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes('{"questions": [{"question": "Où?", "gold": "là"}]}'.encode("latin-1"))
    with pytest.raises(NotText, match="byte 30 is 0xf9"):
        load_bank(path)
    path.write_bytes(_raw("openai list").encode("latin-1"))
    with pytest.raises(NotText):
        make_bank(path)
