"""Files that commands write: never over what was read, whole or not at all, and never in place of a device."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from leporello.files import open_atomically
from leporello.testing.sessions import generate
from tests.conftest import RunCli

PROGRAM = Path(sys.executable).with_name("leporello")


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(generate(seed=1, messages=120).messages))
    return path


def _spellings(session: Path) -> dict[str, Path]:
    folder = session.parent
    (folder / "inner").mkdir()
    (folder / "symbolic").symlink_to(session)
    (folder / "indirect").symlink_to("symbolic")
    (folder / "hard").hardlink_to(session)
    return {
        "itself": session,
        "another spelling": folder / "inner" / ".." / "." / session.name,
        "relative": Path(os.path.relpath(session)),
        "symbolic link": folder / "symbolic",
        "link to a link": folder / "indirect",
        "hard link": folder / "hard",
    }


def test_compress_does_not_write_over_the_only_transcript(session: Path, run_cli: RunCli) -> None:
    before = session.read_bytes()
    for name, out in _spellings(session).items():
        ran = run_cli("compress", session, "--window", "16000", "--out", out)
        assert ran.code == 2, name
        assert "is the input file; nothing was written. --force" in ran.err, name
        assert session.read_bytes() == before, name


def test_compress_from_standard_input_does_not_either(session: Path) -> None:
    before = session.read_bytes()
    with session.open("rb") as stream:
        ran = subprocess.run(
            [PROGRAM, "compress", "-", "--window", "16000", "--out", session],
            stdin=stream,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 2
    assert "is the input file" in ran.stderr
    assert session.read_bytes() == before


def test_with_force_it_does_through_a_link_too(session: Path, run_cli: RunCli) -> None:
    before = session.read_bytes()
    link = session.parent / "link"
    link.symlink_to(session)
    assert run_cli("compress", session, "--window", "16000", "--out", link, "--force").code == 0
    assert link.is_symlink()
    assert len(session.read_bytes()) < len(before)
    assert json.loads(session.read_text())


def test_another_file_is_replaced(session: Path, run_cli: RunCli) -> None:
    out = session.parent / "out.json"
    out.write_text("older")
    assert run_cli("compress", session, "--window", "16000", "--out", out).code == 0
    assert json.loads(out.read_text())


def test_a_bank_does_not_replace_its_session(session: Path, run_cli: RunCli) -> None:
    before = session.read_bytes()
    ran = run_cli("exam", "--make", session, "--out", session)
    assert ran.code == 2
    assert "is the input file" in ran.err
    assert session.read_bytes() == before


def test_a_failure_leaves_the_old_file_whole_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with open_atomically(path) as stream:
            stream.write(b"half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_device_is_written_to_and_stays_a_device(session: Path) -> None:
    """An ordinary file in its place would break the machine of whoever may write there."""
    for device in ("/dev/null", "/dev/stdout"):
        ran = subprocess.run(
            [PROGRAM, "compress", session, "--window", "16000", "--out", device], capture_output=True, check=False
        )
        assert ran.returncode == 0
        assert bool(ran.stdout) is (device == "/dev/stdout")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert os.path.islink("/dev/stdout")
    full = subprocess.run([PROGRAM, "compress", session, "--out", "/dev/full"], capture_output=True, check=False)
    assert full.returncode == 2
    assert b"/dev/full: No space left on device" in full.stderr
