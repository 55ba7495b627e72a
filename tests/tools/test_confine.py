"""No path a model can write leads out of the folders that were allowed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello.errors import ToolError
from leporello.tools.sandbox import readable, writable

SECRET = "canary-outside"


@pytest.fixture
def fenced(workshop: Any) -> Any:
    """A working directory with every kind of way out that a file system knows."""
    outside = workshop.root / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (workshop.root / "work-sibling").mkdir()
    (workshop.root / "work-sibling" / "secret.txt").write_text(SECRET)
    workshop.write("inside.txt", "fine")
    workshop.write("deep/er/file.txt", "fine")
    (workshop.workdir / "link").symlink_to(outside)
    (workshop.workdir / "file-link").symlink_to(outside / "secret.txt")
    (workshop.workdir / "up").symlink_to("..")
    (workshop.workdir / "chain").symlink_to("link")
    (workshop.workdir / "new-link").symlink_to(outside / "not-there.txt")
    (workshop.workdir / "loop").symlink_to("loop")
    return workshop


ESCAPES = [
    "../outside/secret.txt",
    "deep/../../outside/secret.txt",
    "./deep/er/../../../outside/secret.txt",
    "link/secret.txt",
    "file-link",
    "up/outside/secret.txt",
    "chain/secret.txt",
    "../work-sibling/secret.txt",
    "/etc/hostname",
    "//etc/hostname",
    "/proc/self/environ",
    "/proc/self/root/etc/hostname",
    "/proc/self/cwd/../outside/secret.txt",
    "/proc/1/environ",
    "/dev/zero",
    "/dev/stdin",
    "/sys/kernel/hostname",
    "~/secret.txt",
    "~root/.bashrc",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_reading_outside_is_refused(fenced: Any, path: str) -> None:
    text = fenced.error("read_file", path=path)
    assert SECRET not in text
    assert "not allowed to read" in text or "system interfaces" in text or "not a usable path" in text


@pytest.mark.parametrize("path", [*ESCAPES, "new-link", "link/new.txt", "../new.txt"])
@pytest.mark.parametrize("tool", ["write_file", "patch"])
def test_writing_outside_is_refused(fenced: Any, path: str, tool: str) -> None:
    before = sorted(fenced.root.rglob("*"))
    diff = f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n"
    arguments = {"content": "x"} if tool == "write_file" else {"diff": diff}
    fenced.error(tool, path=path, **arguments)
    assert sorted(fenced.root.rglob("*")) == before
    assert (fenced.root / "outside" / "secret.txt").read_text() == SECRET


def test_searching_and_running_outside_is_refused(fenced: Any) -> None:
    assert "not allowed" in fenced.error("search_files", pattern=SECRET, path="../outside")
    assert "not allowed" in fenced.error("terminal", command="ls", workdir="..")


def test_a_search_does_not_follow_links_out(fenced: Any) -> None:
    assert fenced.text("search_files", pattern=SECRET) == "(nothing found)"


@pytest.mark.parametrize("path", ["", "  ", "a\x00b", "loop/x", "x" * 5000, "\ud800"])
def test_paths_that_are_none_are_answered(fenced: Any, path: str) -> None:
    fenced.error("read_file", path=path)
    fenced.error("write_file", path=path, content="x")


@pytest.mark.parametrize(
    "path", ["inside.txt", "./inside.txt", "deep/../inside.txt", "/".join(("up", "work", "inside.txt"))]
)
def test_every_way_to_a_file_inside_works(fenced: Any, path: str) -> None:
    assert fenced.text("read_file", path=path) == "1\tfine"


def test_absolute_paths_inside_work(fenced: Any) -> None:
    assert fenced.text("read_file", path=str(fenced.workdir / "inside.txt")) == "1\tfine"


def test_an_allowed_folder_can_be_used_by_every_name_it_has(fenced: Any) -> None:
    shop = fenced.with_context(roots=(fenced.root / "outside",))
    assert shop.text("read_file", path="link/secret.txt").endswith(SECRET)
    shop.text("write_file", path="../outside/new.txt", content="x")
    assert (fenced.root / "outside" / "new.txt").read_text() == "x"


def test_a_readable_folder_can_not_be_written(fenced: Any) -> None:
    shop = fenced.with_context(readable=(fenced.root / "outside",))
    assert shop.text("read_file", path="../outside/secret.txt").endswith(SECRET)
    assert "may only be read" in shop.error("write_file", path="../outside/secret.txt", content="x")


def test_system_interfaces_stay_closed_even_when_everything_is_allowed(fenced: Any) -> None:
    shop = fenced.with_context(roots=(Path("/"),))
    assert "system interfaces" in shop.error("read_file", path="/proc/self/environ")
    assert "system interfaces" in shop.error("read_file", path="/dev/zero")


def test_saved_outputs_are_readable_and_never_written(fenced: Any) -> None:
    saved = fenced.context.outputs / "call-1.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text("kept")
    assert fenced.text("read_file", path=str(saved)) == "1\tkept"
    everything = fenced.with_context(roots=(fenced.root,))
    assert "saved output" in everything.error("write_file", path=str(saved), content="x")
    assert saved.read_text() == "kept"


def test_a_pipe_is_refused_instead_of_waited_for(fenced: Any) -> None:
    os.mkfifo(fenced.workdir / "pipe")
    assert "a pipe" in fenced.error("read_file", path="pipe")
    assert "a pipe" in fenced.error("write_file", path="pipe", content="x")


PARTS = ["..", ".", "deep", "er", "link", "up", "chain", "file-link", "secret.txt", "inside.txt", "outside", "work", ""]


@given(parts=st.lists(st.sampled_from(PARTS), max_size=8), absolute=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_allowed_really_lies_inside(fenced: Any, parts: list[str], absolute: bool) -> None:
    """Against the kernel's own answer: opening an allowed path ends up below the working directory."""
    path = "/".join([str(fenced.workdir), *parts] if absolute else parts) or "."
    for judge in (readable, writable):
        try:
            allowed = judge(fenced.context, path)
        except ToolError:
            continue
        if allowed.exists():
            for way in (allowed, fenced.workdir / path):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    assert Path(_opened(way)).is_relative_to(os.path.realpath(fenced.workdir))


def _opened(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
