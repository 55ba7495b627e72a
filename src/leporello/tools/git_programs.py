"""Whether a repository could make git run a program while git only reads, or shows what tools may not read.

Its settings may name one (`diff.external`, `diff.<name>.textconv`, `filter.<name>.clean`, `core.fsmonitor`), and so
may those of its submodules, in which git starts itself. New versions add settings: the known harmless ones are listed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from leporello.lazy_regex import lazy_regex

SECONDS = 10.0
MOST_SUBMODULES = 50
_SETTINGS = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
CAREFUL = (
    f"GIT_CONFIG_COUNT={len(_SETTINGS)}",
    *(f"GIT_CONFIG_KEY_{place}={name}" for place, name in enumerate(_SETTINGS)),
    *(f"GIT_CONFIG_VALUE_{place}={value}" for place, value in enumerate(_SETTINGS.values())),
)
"""Environment for every command: a folder with the files of a repository, or a setting in one, runs nothing."""
_OWN = ("local", "worktree")
"""Where settings come from that the user may not have written; the others lie outside of the repository."""
_HARMLESS = lazy_regex(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf"
    r"|eol|safecrlf|quotepath|longpaths|hookspath|fscache|preloadindex|untrackedcache|sparsecheckout(?:cone)?|abbrev"
    r"|compression|bigfilethreshold|sharedrepository|protect(?:hfs|ntfs))"
    r"|extensions\.(?:objectformat|worktreeconfig|refstorage)|merge\.(?:ff|conflictstyle|log|renames)"
    r"|(?:branch|user|author|committer|advice|color|index|feature|pack|pull|push|fetch|rebase|init|rerere|checkout"
    r"|commit|tag|gc|maintenance|gui|gitflow|vscode)\..{1,400}"
    r"|remote\..{1,400}\.(?:url|pushurl|fetch|push|tagopt|prune|mirror|gh-resolved)|remote\.pushdefault"
    r"|submodule\..{1,400}\.(?:url|active|branch|ignore|fetchrecursesubmodules)|submodule\.(?:active|recurse)"
    r"|status\.(?:short|branch|showuntrackedfiles|relativepaths)|lfs\.repositoryformatversion",
    re.IGNORECASE | re.DOTALL,
)
_HOOK = "hooks/post-index-change"
"""The one hook that commands run which only look: they may bring the index up to date."""


def program_outside(name: str, may_touch: Callable[[Path], bool]) -> str | None:
    """The program on the path that no command of ours can have put there: this process runs it without a sandbox."""
    folders = [folder for folder in os.get_exec_path() if os.path.isabs(folder) and not may_touch(Path(folder))]
    return shutil.which(name, path=os.pathsep.join(folders))


def only_looks(folder: Path, may_read: Callable[[Path], bool], submodules: int = MOST_SUBMODULES) -> bool:
    """Whether git in this folder starts no program that the repository names, and all it shows may be read."""
    try:
        settings = _git(may_read, folder, "config", "--list", "--name-only", "--show-scope", "-z")
        if settings is None:
            return False
        rows = zip(settings[::2], settings[1::2], strict=False)
        if any(scope in _OWN and not _HARMLESS.fullmatch(name) for scope, name in rows):
            return False
        hook = _git(may_read, folder, "rev-parse", "--git-path", _HOOK)
        if hook is not None and (folder / hook[0].rstrip("\n")).exists():
            return False
        # `git diff` and `:/` mean all of the repository, wherever in it the folder is.
        top = _git(may_read, folder, "rev-parse", "--show-toplevel") or [""]
        entries = _git(may_read, folder, "ls-files", "--stage", "--full-name", "-z", ":(top)") or []
    except subprocess.TimeoutExpired:
        return False
    except OSError:
        # No such folder or no git: then nothing runs at all.
        return True
    if top[0] and not may_read(Path(top[0].rstrip("\n"))):
        return False
    links = [Path(top[0].rstrip("\n"), entry.partition("\t")[2]) for entry in entries if entry.startswith("160000")]
    links = [link for link in links if (link / ".git").exists()]
    return len(links) <= submodules and all(only_looks(link, may_read, submodules - len(links)) for link in links)


def hooks_folder(work_tree: Path, may_touch: Callable[[Path], bool]) -> Path:
    """Where git looks for the hooks of this repository."""
    said = _git(may_touch, work_tree, "rev-parse", "--git-path", "hooks")
    return work_tree / (said[0].rstrip("\n") if said else ".git/hooks")


def _git(may_touch: Callable[[Path], bool], folder: Path, *arguments: str) -> list[str] | None:
    """What git says, by its NULs; None when it can't."""
    git = program_outside("git", may_touch)
    if git is None:
        return None
    said = subprocess.run(
        ["/usr/bin/env", *CAREFUL, git, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return said.stdout.decode("utf-8", "surrogateescape").split("\0") if said.returncode == 0 else None
