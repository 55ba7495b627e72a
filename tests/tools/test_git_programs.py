"""A command of git that only looks starts no program that the repository names."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leporello.tools.approval import ApprovalMode, PolicyApprover
from leporello.tools.confine import find_confinement
from leporello.tools.toolbox import builtin_toolbox

LISTED = ["git status", "git diff", "git log", "git show", "git describe", "git blame", "git grep"]


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def make_repository(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("one\n")
    (folder / ".gitattributes").write_text("*.txt diff=q filter=f\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")
    git(folder, "tag", "v1")
    (folder / "a.txt").write_text("two\n")


@pytest.fixture
def repository(workshop: Any) -> Any:
    make_repository(workshop.workdir)
    return workshop.with_context(approver=PolicyApprover(ApprovalMode.DENY, LISTED))


def looks(shop: Any, folder: str = ".") -> bool:
    """Whether every listed command runs; none of them may leave a trace of the trap."""
    texts = [
        shop.run("terminal", command=line, workdir=folder).text
        for line in ("git status", "git diff", "git log -p", "git show", "git describe --dirty", "git blame a.txt")
    ]
    assert not list(shop.workdir.parent.rglob("made"))
    allowed = {"not allowed" not in text for text in texts}
    assert len(allowed) == 1
    return allowed.pop()


def test_an_ordinary_repository_is_looked_at_unasked(repository: Any) -> None:
    work = repository.workdir
    git(work, "config", "core.hooksPath", ".husky")
    git(work, "config", "branch.main.merge", "refs/heads/main")
    git(work, "remote", "add", "origin", "https://example.org/a.git")
    (work / ".git" / "hooks").mkdir(exist_ok=True)
    (work / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\ntouch made\n")
    assert looks(repository)


@pytest.mark.parametrize(
    "name",
    """diff.external diff.q.command diff.q.textconv filter.f.clean filter.f.process core.fsmonitor core.pager pager.log
    gpg.program core.sshCommand core.editor alias.st include.path includeIf.gitdir:/.path core.attributesFile
    core.worktree remote.origin.uploadpack remote.origin.promisor extensions.partialClone credential.helper
    diff.submodule hook.x.command blame.ignoreRevsFile merge.q.driver status.submoduleSummary
    core.alternateRefsCommand diff.tool mailmap.file interactive.diffFilter trailer.q.command""".split(),
)
def test_a_setting_that_may_name_a_program_is_asked_about(repository: Any, name: str) -> None:
    git(repository.workdir, "config", name, f"{repository.workdir}/.git/trap")
    (repository.workdir / ".git" / "trap").write_text(f"#!/bin/sh\ntouch {repository.workdir}/made\n")
    (repository.workdir / ".git" / "trap").chmod(0o755)
    assert not looks(repository)


@pytest.mark.parametrize("place", [".git/hooks", ".husky"])
def test_the_hook_of_the_index_is_asked_about(repository: Any, place: str) -> None:
    hook = repository.workdir / place / "post-index-change"
    if place == ".husky":
        git(repository.workdir, "config", "core.hooksPath", ".husky")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repository.workdir}/made\n")
    hook.chmod(0o755)
    assert not looks(repository)


def test_settings_of_a_submodule_count(repository: Any) -> None:
    """Git starts itself there, without the settings that it was given for this run."""
    work = repository.workdir
    make_repository(work / "sub")
    git(work, "add", "sub")
    git(work, "commit", "-qm", "sub")
    assert looks(repository)
    git(work / "sub", "config", "core.fsmonitor", f"touch {work}/made; false")
    assert not looks(repository)


def test_settings_of_the_folder_it_runs_in_count(repository: Any) -> None:
    sub = repository.workdir / "vendor" / "lib"
    make_repository(sub)
    git(sub, "config", "diff.external", f"touch {repository.workdir}/made")
    assert looks(repository)
    assert not looks(repository, "vendor/lib")


def test_only_a_repository_that_may_be_read_is_shown(repository: Any) -> None:
    """`git diff` and `git grep x :/` show the whole repository, wherever in it they are run."""
    inner = repository.workdir / "inner"
    inner.mkdir()
    (inner / "a.txt").write_text("one\n")
    git(repository.workdir, "add", ".")
    assert looks(repository, "inner")
    assert not looks(repository.with_context(workdir=inner))
    assert looks(repository.with_context(workdir=inner, roots=(repository.workdir,)))


def test_what_runs_without_a_sandbox_is_not_taken_from_the_project(
    repository: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command could have put a `git`, `rg` or `bwrap` into an activated environment in the folder it may write."""
    made = repository.workdir.parent / "made"
    for name in ("git", "rg", "bwrap"):
        trap = repository.write(f".venv/bin/{name}", f"#!/bin/sh\ntouch {made}\n")
        trap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{repository.workdir}/.venv/bin:{os.environ['PATH']}")
    shop = replace(repository, box=builtin_toolbox(repository.root / "memory", repository.jobs))
    assert "not allowed" in shop.error("terminal", command="git status")
    assert "a.txt" in shop.text("search_files", pattern="two")
    find_confinement(shop.workdir, (), (), repository.root / "home", {}, True)
    assert not made.exists()
