"""`read_file` and `write_file`: what is read is what is there, and a write is whole or not at all."""

from __future__ import annotations

import os
import re
import resource
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello.tools.base import OutputLimits
from leporello.tools.sandbox import write_all_atomically

GO_ON = re.compile(r'\n\[… .* go on with read_file\(path="(.*)", offset=(\d+)(?:, column=(\d+))?\) …\]$')


def read_on(shop: Any, path: str) -> str:
    """The text of a file, put together by doing literally what each part says."""
    text = ""
    arguments: dict[str, Any] = {"path": path}
    while True:
        part = shop.text("read_file", **arguments)
        assert len(part) <= shop.context.limits.read_chars + 300
        more = GO_ON.search(part)
        body = part[: more.start()] if more else part
        for row in body.split("\n"):
            number, _, line = row.partition("\t")
            # A number that has been seen is a line that goes on; a number left out would leave a gap here.
            text += "\n" * (int(number) - text.count("\n") - 1) + line
        if not more:
            return text
        arguments = {"path": more[1], "offset": int(more[2]), "column": int(more[3] or 1)}


@given(
    text=st.lists(
        st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=120)
        | st.integers(200, 900).map(lambda n: "xy" * n),
        min_size=1,
        max_size=30,
    ).map("\n".join),
    chars=st.integers(60, 400),
    lines=st.integers(1, 9),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_following_the_hints_gives_the_whole_file(workshop: Any, text: str, chars: int, lines: int) -> None:
    """However small the parts: nothing is skipped, nothing comes twice, and it ends."""
    if not text or "\x00" in text or text.startswith(("\ufeff", "%PDF", "GIF8")):
        return
    shop = workshop.with_context(limits=OutputLimits(read_chars=chars, read_lines=lines))
    shop.write("file.txt", text)
    assert read_on(shop, "file.txt") == text.removesuffix("\n")


def test_lines_have_their_numbers_and_offset_and_limit_count_lines(workshop: Any) -> None:
    workshop.write("a.txt", "".join(f"line {n}\n" for n in range(1, 101)))
    assert workshop.text("read_file", path="a.txt", offset=99) == "99\tline 99\n100\tline 100"
    part = workshop.text("read_file", path="a.txt", offset=10, limit=2)
    assert part.startswith("10\tline 10\n11\tline 11\n[… lines 10-11 of 100 shown;")
    assert 'read_file(path="a.txt", offset=12)' in part


def test_one_call_shows_2000_lines_and_50000_characters_at_most(workshop: Any) -> None:
    workshop.write("many.txt", "x\n" * 5_000)
    assert "lines 1-2000 of 5,000" in workshop.text("read_file", path="many.txt", limit=9_999)
    workshop.write("wide.txt", ("y" * 999 + "\n") * 200)
    part = workshop.text("read_file", path="wide.txt")
    assert 45_000 < len(part) < 50_300


def test_a_line_of_50_megabytes_can_be_read_in_parts(workshop: Any) -> None:
    workshop.write("long.json", b"[" + b"1," * 25_000_000 + b"0]")
    first = workshop.text("read_file", path="long.json")
    assert len(first) < 50_300
    more = GO_ON.search(first)
    assert more is not None
    assert more[2] == "1"
    last = workshop.text("read_file", path="long.json", column=50_000_003)
    assert last == "1\t]"
    assert "shorter than column" in workshop.error("read_file", path="long.json", column=60_000_000)


def test_a_line_that_fits_into_a_read_is_not_split_over_two(workshop: Any) -> None:
    workshop.write("a.txt", "a" * 3_000 + "\n" + "b" * 3_000 + "\n")
    part = workshop.with_context(limits=OutputLimits(read_chars=5_000)).text("read_file", path="a.txt")
    assert part.startswith("1\t" + "a" * 3_000 + "\n[… line 1 of 2 shown;")
    assert "offset=2)" in part


def test_a_line_far_down_is_found(workshop: Any) -> None:
    workshop.write("deep.txt", "".join(f"{n}\n" for n in range(1, 400_001)))
    assert workshop.text("read_file", path="deep.txt", offset=399_999) == "399999\t399999\n400000\t400000"
    assert "only 400,000 lines" in workshop.error("read_file", path="deep.txt", offset=400_001)


def test_small_windows_read_less(workshop: Any) -> None:
    workshop.write("a.txt", "z" * 99 + "\n" * 1 + "z" * 99_000)
    shop = workshop.with_context(limits=OutputLimits.for_window(8_000))
    assert len(shop.text("read_file", path="a.txt")) < 4_300


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n rest", "a PNG image"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\x7fELF\x02", "an ELF program"),
        (b"abc\x00def", "binary data"),
    ],
)
def test_binary_files_are_named_not_shown(workshop: Any, content: bytes, words: str) -> None:
    workshop.write("data", content)
    text = workshop.error("read_file", path="data")
    assert words in text
    assert f"{len(content)} bytes" in text


def test_odd_encodings_are_readable(workshop: Any) -> None:
    workshop.write("bom.txt", b"\xef\xbb\xbfhello")
    assert workshop.text("read_file", path="bom.txt") == "1\thello"
    workshop.write("wide.txt", "eins\nzwei\n".encode("utf-16"))
    assert workshop.text("read_file", path="wide.txt", offset=2) == "2\tzwei"
    workshop.write("latin.txt", "caf\xe9".encode("latin-1"))
    assert workshop.text("read_file", path="latin.txt") == "1\tcaf\ufffd"


def test_missing_files_directories_and_empty_files(workshop: Any) -> None:
    workshop.write("src/Server.py", "x")
    assert "Similar names there: Server.py" in workshop.error("read_file", path="src/server.py")
    assert "its folder does not exist" in workshop.error("read_file", path="nowhere/a.py")
    assert "It holds: Server.py" in workshop.error("read_file", path="src")
    assert "It holds: src/" in workshop.error("read_file", path=".")
    workshop.write("empty", "")
    assert workshop.text("read_file", path="empty") == "(empty file)"


def test_only_reads_of_saved_outputs_are_exempt(workshop: Any) -> None:
    workshop.write("a.txt", "x")
    saved = workshop.context.outputs / "saved.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text("x")
    assert not workshop.run("read_file", path="a.txt").exempt
    assert workshop.run("read_file", path=str(saved)).exempt


def test_write_creates_folders_and_replaces(workshop: Any) -> None:
    assert workshop.text("write_file", path="a/b/c.txt", content="one\ntwo") == "created a/b/c.txt: 2 lines, 7 bytes"
    assert workshop.text("write_file", path="a/b/c.txt", content="") == "replaced a/b/c.txt: 0 lines, 0 bytes"
    assert (workshop.workdir / "a/b/c.txt").read_bytes() == b""
    assert os.listdir(workshop.workdir / "a/b") == ["c.txt"]


@given(text=st.text(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_what_is_in_the_file(workshop: Any, text: str) -> None:
    result = workshop.run("write_file", path="t.txt", content=text, literal_marks=True)
    path = workshop.workdir / "t.txt"
    if result.is_error:
        assert any(0xD800 <= ord(char) <= 0xDFFF for char in text)
    else:
        assert path.read_bytes() == text.encode()


def test_modes_are_kept_and_links_are_written_through(workshop: Any) -> None:
    script = workshop.write("run.sh", "old")
    script.chmod(0o750)
    (workshop.workdir / "alias").symlink_to("run.sh")
    workshop.text("write_file", path="alias", content="new")
    assert (workshop.workdir / "alias").is_symlink()
    assert script.read_text() == "new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


def test_what_can_not_be_written_is_answered(workshop: Any) -> None:
    workshop.write("file", "x")
    (workshop.workdir / "folder").mkdir()
    assert "is a directory" in workshop.error("write_file", path="folder", content="x")
    assert "part of the path is a file" in workshop.error("write_file", path="file/inner", content="x")


def test_a_full_disk_leaves_the_old_file(workshop: Any) -> None:
    """The kernel refuses the write half-way, by its limit on the size of files."""
    path = workshop.write("a.txt", "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        text = workshop.error("write_file", path="a.txt", content="x" * 5_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert "as it was" in text
    assert path.read_text() == "old"
    assert os.listdir(workshop.workdir) == ["a.txt"]


def test_several_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    with pytest.raises(FileExistsError):
        write_all_atomically({tmp_path / "one": b"changed", tmp_path / "one" / "below": b"never"})
    assert (tmp_path / "one").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


MARKS = [
    "[REDACTED]",
    "[REDACTED:api key]",
    "[… 1,200 characters not shown here …]",
    "[…]",
    "[old tool output cleared]",
    "[terminal: make → exit 0; output cleared here, kept as m12]",
    "[read_file a.py → same output as m7]",
    "<persisted-output>",
    "<leporello-fold id=f1",
]


@pytest.mark.parametrize("mark", MARKS)
def test_marks_for_missing_text_are_not_written_back(workshop: Any, mark: str) -> None:
    """A model that copies a placeholder would destroy what it stands for."""
    path = workshop.write("conf.env", "KEY=real\n")
    assert "stands for text" in workshop.error("write_file", path="conf.env", content=f"KEY={mark}\n")
    assert "stands for text" in workshop.error("patch", path="conf.env", old_string="real", new_string=mark)
    diff = f"--- conf.env\n+++ conf.env\n@@ -1 +1,2 @@\n KEY=real\n+OTHER={mark}\n"
    assert "stands for text" in workshop.error("patch", diff=diff)
    assert path.read_text() == "KEY=real\n"


def test_marks_that_are_in_the_file_already_may_stay(workshop: Any) -> None:
    workshop.write("doc.md", "we print [REDACTED] instead\n")
    workshop.text("patch", path="doc.md", old_string="we print", new_string="it prints")
    assert "stands for text" in workshop.error("write_file", path="doc.md", content="[REDACTED] and [REDACTED]")
    workshop.text("write_file", path="doc.md", content="[REDACTED] and [REDACTED]", literal_marks=True)
