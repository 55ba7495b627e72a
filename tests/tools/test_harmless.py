"""What the allow-list covers can only read, and only where tools may read."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from leporello.tools.approval import ApprovalMode, PolicyApprover, covers
from leporello.tools.harmless import TABLE
from leporello.tools.sandbox import may_read

EVERY = [*TABLE, *(f"{name} *" for name in TABLE), "xargs *", "awk *", "env *", "tar *", "bash *", "git *", "python *"]


@pytest.fixture
def fenced(workshop: Any) -> Any:
    """A project with a way out, and with file names that are flags."""
    (workshop.root / "outside").mkdir()
    (workshop.root / "outside" / "secret.txt").write_text("canary-outside")
    for name in ("src/a.py", "src/b.py", "a.txt", "tests/test_a.py", "flags/--pre=sh", "links/fine.txt"):
        workshop.write(name, "one\n")
    (workshop.workdir / "links" / "out").symlink_to(workshop.root / "outside" / "secret.txt")
    (workshop.workdir / "up").symlink_to("..")
    return workshop


def lines(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text().splitlines()


def is_covered(shop: Any, line: str, allow: list[str] | None = None) -> bool:
    return covers(allow or EVERY, line, shop.workdir, lambda path: may_read(shop.context, path))


@pytest.mark.parametrize("line", lines("lines_that_read.txt"))
def test_reading_runs_unasked(fenced: Any, line: str) -> None:
    """The list is of use: everyday commands that only read are covered."""
    assert is_covered(fenced, line)


@pytest.mark.parametrize("line", [*lines("lines_that_do_more.txt"), "sed -n '1p\ne id' a.txt"])
def test_anything_that_does_more_is_asked_about(fenced: Any, line: str) -> None:
    """Even with every program of the table in the list, and with patterns over others."""
    assert not is_covered(fenced, line)


def test_a_file_named_like_a_flag_is_not_passed_on(fenced: Any) -> None:
    """`*` may stand for `--pre=sh`."""
    shop = fenced.with_context(workdir=fenced.workdir / "flags")
    assert not is_covered(shop, "rg x *")
    assert not is_covered(shop, "ls *")
    assert is_covered(shop, "ls ./*")


def test_covered_lines_run_in_the_folder_they_were_judged_in(fenced: Any) -> None:
    """A path counts from the folder the command runs in."""
    shop = fenced.with_context(approver=PolicyApprover(ApprovalMode.DENY, ["cat"]))
    assert shop.text("terminal", command="cat ../a.txt", workdir="src") == "one\n"
    assert "not allowed" in shop.error("terminal", command="cat ../a.txt")
    assert "not allowed" in shop.error("terminal", command="cat ../../outside/secret.txt", workdir="src")


def test_an_entry_that_says_all_of_it_still_counts(fenced: Any) -> None:
    """Whoever writes the whole command into the list means it."""
    for line in ("sort -o made a.txt", "xargs rm", "cat /etc/hostname", "./deploy.sh --now"):
        assert is_covered(fenced, line, [line])
        assert not is_covered(fenced, f"{line} more", [line])


def test_what_programs_obey_is_not_written_unasked(fenced: Any) -> None:
    """A written `.git/config` would run a program at the next `git status`."""
    shop = fenced.with_context(approver=PolicyApprover(ApprovalMode.DENY, ["write_file", "patch", "git status"]))
    subprocess.run(["git", "init", "-q", str(shop.workdir)], check=True)
    evil = f"[core]\n\tfsmonitor = touch {shop.workdir}/made\n"
    assert "not allowed" in shop.error("write_file", path=".git/config", content=evil)
    assert "not allowed" in shop.error("write_file", path="src/../.GIT/hooks/pre-commit", content="touch made")
    assert "created" in shop.text("write_file", path="new.txt", content="fine")
    shop.run("terminal", command="git status")
    assert not Path(shop.workdir / "made").exists()


def test_a_folder_that_looks_like_a_repository_runs_nothing(fenced: Any) -> None:
    """Files named as in a bare repository need no `.git`; git would take the settings beside them."""
    shop = fenced.with_context(approver=PolicyApprover(ApprovalMode.DENY, ["write_file", "git status", "git log"]))
    made = shop.workdir / "made"
    for name, content in {
        "trap/HEAD": "ref: refs/heads/main\n",
        "trap/config": f'[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = "touch {made};:"\n',
        "trap/objects/keep": "",
        "trap/refs/keep": "",
    }.items():
        shop.text("write_file", path=name, content=content)
    shop.run("terminal", command="git status", workdir="trap")
    assert not made.exists()


def test_a_folder_that_is_compared_is_read_as_far_as_its_links_lead(fenced: Any) -> None:
    """`diff` opens what the links in a folder lead to."""
    fenced.write("plain/fine.txt", "two\n")
    assert is_covered(fenced, "diff src plain")
    for line in ("diff links plain", "diff -q plain links", "diff plain/fine.txt links", "diff links/out a.txt"):
        assert not is_covered(fenced, line)


@pytest.mark.parametrize("program", ["cat", "head", "tail", "wc", "cmp a.txt", "sort", "nl", "md5sum", "comm a.txt"])
def test_links_that_lead_out_are_not_read(fenced: Any, program: str) -> None:
    assert is_covered(fenced, f"{program} links/fine.txt")
    for path in ("links/out", "links/*", "up/outside/secret.txt", "links/o?t"):
        assert not is_covered(fenced, f"{program} {path}")


def test_a_line_is_read_as_the_shell_that_runs_it_does(fenced: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sh` takes `&>` for the end of a command that is left in the background."""
    shop = fenced.with_context(approver=PolicyApprover(ApprovalMode.DENY, ["echo"]))
    line = "echo x &> /dev/null touch made"
    assert "no output" in shop.text("terminal", command=line)
    bins = fenced.root / "bins"
    bins.mkdir()
    (bins / "env").symlink_to("/usr/bin/env")
    monkeypatch.setenv("PATH", str(bins))
    assert "not allowed" in shop.error("terminal", command=line)
    assert "no output" in shop.text("terminal", command="echo x > /dev/null 2>&1")


def test_a_number_of_a_redirection_is_no_word(fenced: Any) -> None:
    assert not is_covered(fenced, "head -n 10>/dev/null a.txt")
    assert is_covered(fenced, "head -n 10 2>/dev/null a.txt")


def test_start_files_are_not_written_unasked(fenced: Any) -> None:
    shop = fenced.with_context(approver=PolicyApprover(ApprovalMode.DENY, ["write_file"]))
    for name in (".bashrc", ".gitconfig", ".ssh/config", ".config/git/config", ".envrc"):
        assert "not allowed" in shop.error("write_file", path=name, content="x")


def test_a_quoted_tilde_is_a_file_name(fenced: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cat "~/work/a.txt"` opens a file below a folder named `~`, not the one in the home folder."""
    monkeypatch.setenv("HOME", str(fenced.root))
    assert is_covered(fenced, "cat ~/work/a.txt")
    fenced.write("~/work/b.txt", "two\n")
    (fenced.workdir / "~/work/a.txt").symlink_to(fenced.root / "outside" / "secret.txt")
    for quoted in ('"~/work/{}"', "'~'/work/{}", "\\~/work/{}", "''\"~\"/work/{}"):
        assert not is_covered(fenced, "cat " + quoted.format("a.txt"))
        assert is_covered(fenced, "cat " + quoted.format("b.txt"))


def test_programs_that_commands_may_have_put_there_are_asked_about(
    fenced: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An activated environment in the project comes first on the path."""
    for name in ("ls", "pytest"):
        fenced.write(f".venv/bin/{name}", "#!/bin/sh\n").chmod(0o755)
    assert is_covered(fenced, "ls src")
    monkeypatch.setenv("PATH", f"{fenced.workdir}/.venv/bin:/usr/bin:/bin")
    assert not is_covered(fenced, "ls src")
    assert is_covered(fenced, "pytest -q")
    assert is_covered(fenced, "cat a.txt")
