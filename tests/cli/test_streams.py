"""Every command with streams that fail: one sentence and an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from leporello.cli import COMMANDS
from leporello.testing.sessions import generate

PROGRAM = Path(sys.executable).with_name("leporello")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
PRINTING: dict[str, list[tuple[str, ...]]] = {
    "chat": [("--plain", "--model", "scripted:demo")],
    "run": [("hello", "--model", "scripted:demo"), ("hello", "--model", "scripted:demo", "--json")],
    "compress": [("long.json", "--window", "8000"), ("long.json", "--window", "8000", "--json")],
    "import": [("long.json", "--store", "new.db"), ("long.json", "--json")],
    "doctor": [(), ("--json",)],
    "insights": [(), ("--json",)],
    "store": [("info",), ("backup", "backup.db", "--json")],
    "sessions": [("list",), ("list", "--json"), ("show", "openai:"), ("search", "the"), ("export", "openai:")],
    "exam": [("--make", "long.json")],
    "replay": [("long.json", "--window", "8000"), ("long.json", "--window", "8000", "--json")],
    "serve": [("--add-key", "somebody")],
    "mcp": [()],
    "plugins": [("list",)],
    "setup": [("--help",)],
    "config": [(), ("--json",)],
    "explain": [(), ("--help",)],
}
"""For each command calls of it that print."""
CALLS = [(name, *arguments) for name, calls in PRINTING.items() for arguments in calls] + [("--help",), ("--version",)]


def test_every_command_is_tried() -> None:
    assert PRINTING.keys() == COMMANDS.keys()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    (folder / "long.json").write_text(json.dumps(generate(seed=1, messages=60).messages))
    _run(folder, ("import", "long.json"), subprocess.PIPE)
    return folder


@pytest.fixture(autouse=True)
def _no_backup_yet(place: Path) -> None:
    (place / "backup.db").unlink(missing_ok=True)


def _run(place: Path, call: tuple[str, ...], out: int, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [PROGRAM, "--home", place / "home", *call],
        cwd=place,
        stdout=out,
        stderr=subprocess.PIPE,
        input=given or _said(call),
        check=False,
    )


def _said(call: tuple[str, ...]) -> bytes:
    return json.dumps(INITIALIZE).encode() + b"\n" if call[0] == "mcp" else b"hello\n"


def _one_sentence(ran: subprocess.CompletedProcess[bytes]) -> str:
    told = ran.stderr.decode()
    for word in ("Traceback", "Exception", "Error:", 'File "'):
        assert word not in told
    lines = told.strip().splitlines()
    return lines[-1] if lines else ""


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_full_disk_behind_stdout_is_said(call: tuple[str, ...], place: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        ran = _run(place, call, full)
    finally:
        os.close(full)
    assert _one_sentence(ran) == "leporello: The output can't be written: No space left on device."
    assert ran.returncode == 1


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_reader_that_has_seen_enough_is_no_failure(call: tuple[str, ...], place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = _run(place, call, writing)
    finally:
        os.close(writing)
    assert _one_sentence(ran) != "Interrupted."
    assert ran.returncode == 0 or (call[0] == "serve" and b"already" in ran.stderr)


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_closed_stdout_wants_nothing(call: tuple[str, ...], place: Path) -> None:
    command = f'exec "$0" --home "{place / "home"}" "$@" >&-'
    ran = subprocess.run(
        ["/bin/sh", "-c", command, PROGRAM, *call], cwd=place, input=_said(call), stderr=subprocess.PIPE, check=False
    )
    _one_sentence(ran)
    assert ran.returncode == 0 or (call[0] == "serve" and b"already" in ran.stderr)


def test_a_key_that_nobody_saw_is_not_kept(place: Path) -> None:
    home = place / "unseen"
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        _run(place, ("--home", str(home), "serve", "--add-key", "somebody"), full)
    finally:
        os.close(full)
    assert not (home / "gateway-keys.json").exists()


READING = [
    ("compress", "-"),
    ("compress", sys.executable),
    ("import", sys.executable),
    ("exam", sys.executable),
    ("exam", "--make", sys.executable),
    ("run", "-", "--model", "scripted:demo"),
    ("chat", "--plain", "--model", "scripted:demo"),
    ("setup", "--provider", "openai", "--model", "gpt-5", "--key-stdin"),
]


@pytest.mark.parametrize("call", READING, ids=lambda call: " ".join(call[:2]))
def test_binary_input_is_refused(call: tuple[str, ...], place: Path) -> None:
    ran = _run(place, call, subprocess.PIPE, Path("/bin/ls").read_bytes()[:50_000])
    _one_sentence(ran)
    assert ran.returncode == 2
    assert b"not text" in ran.stderr or b"is not UTF-8 text" in ran.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_binary_input_harms_no_command(name: str, place: Path) -> None:
    ran = _run(place, (name, *PRINTING[name][0]), subprocess.PIPE, Path("/bin/ls").read_bytes()[:50_000])
    assert b"Traceback" not in ran.stderr
    assert ran.returncode in (0, 2)
