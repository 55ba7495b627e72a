"""Compiled patterns that are kept from run to run are the ones that `re` compiles."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from leporello import regex_cache
from leporello.regex_cache import KNOWN, RegexCache
from tests.regexes.collect import patterns

SOURCES = (r"(?P<name>a+)(b)?", r"[\u3040-\u9fff]|\bword", r"(?i:x)y(?=z)")

pytestmark = pytest.mark.skipif(sys.version_info[:2] not in KNOWN, reason="nothing is kept for this Python")


def filled(file: Path, *sources: str) -> RegexCache:
    cache = RegexCache(file)
    for source in sources:
        cache.compile(source, re.IGNORECASE)
    cache.write()
    return cache


def never(*_: object) -> object:
    raise AssertionError("it was compiled once more")


def test_every_pattern_of_the_package_comes_back_as_it_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = [one.pattern for one in patterns()]
    assert len(found) > 300
    writes = RegexCache(tmp_path / "kept")
    for pattern in found:
        # Two patterns are the same when their code, their flags and their source are.
        assert writes.compile(pattern.pattern, pattern.flags) == pattern
    writes.write()
    monkeypatch.setattr(regex_cache, "_taken_apart", never)
    reads = RegexCache(tmp_path / "kept")
    for pattern in found:
        again = reads.compile(pattern.pattern, pattern.flags)
        assert again == pattern
        assert (again.groups, dict(again.groupindex)) == (pattern.groups, dict(pattern.groupindex))


def test_two_programs_lose_nothing_of_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept"
    first, second = RegexCache(file), RegexCache(file)
    first.compile(SOURCES[0], 0)
    second.compile(SOURCES[1], 0)
    first.write()
    second.write()
    monkeypatch.setattr(regex_cache, "_taken_apart", never)
    third = RegexCache(file)
    assert third.compile(SOURCES[0], 0).fullmatch("aab")
    assert third.compile(SOURCES[1], 0).search("a word")


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def one_bit_turned(data: bytes) -> bytes:
    return data[:-40] + bytes([data[-40] ^ 4]) + data[-39:]


@pytest.mark.parametrize("damage", [cut, one_bit_turned, lambda _: b"", lambda data: b"4" + data[1:]])
def test_a_file_that_is_damaged_or_of_another_python_is_made_anew(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "kept"
    filled(file, *SOURCES)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = filled(file, *SOURCES)
    assert file.read_bytes() == whole
    assert again.compile(SOURCES[2], re.IGNORECASE).search("XYz")


def test_of_too_many_patterns_those_that_were_used_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_cache, "MOST_KEPT", 3)
    file = tmp_path / "kept"
    filled(file, "a", "b", "c")
    filled(file, "c", "d")
    monkeypatch.setattr(regex_cache, "_taken_apart", never)
    reads = RegexCache(file)
    for source in "cd":
        reads.compile(source, re.IGNORECASE)
    with pytest.raises(AssertionError, match="once more"):
        reads.compile("a", re.IGNORECASE)


def test_a_folder_that_may_not_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = filled(tmp_path / "file" / "kept", *SOURCES)
    assert cache.compile(SOURCES[0], 0).fullmatch("aa")
    assert (tmp_path / "file").read_text() == "no folder"


RUN = "import leporello.ledger.units as units; print(bool(units.ERROR.search('it failed')))"


@pytest.mark.parametrize("options", [[], ["-B"]])
def test_a_program_keeps_what_it_compiled_unless_python_may_write_nothing(tmp_path: Path, options: list[str]) -> None:
    command = [sys.executable, *options, "-X", f"pycache_prefix={tmp_path}", "-c", RUN]
    environment = {"PATH": ""}
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout == "True\n"
        assert not done.stderr
    assert len([*tmp_path.rglob("*.regexes")]) == (not options)
