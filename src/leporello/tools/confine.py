"""What keeps commands inside their folder: the system's sandbox, and git that runs no program of a repository.

The sandbox is `bwrap` on Linux, `sandbox-exec` on macOS. The whole disk can be read, without the places where secrets
lie; only the working directory and `tools.paths` can be written; no other process can be seen. Where the system
refuses, `why_not` says so, and the commands run as before. Two tables, kept by kind, say where secrets lie on a disk
and which files other programs obey.

While git only reads, settings of a repository may make it run a program (`diff.external`, `diff.<name>.textconv`,
`filter.<name>.clean`, `core.fsmonitor`), and so may those of its submodules, in which git starts itself. New versions
add settings: the known harmless ones are listed.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import secrets
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from leporello.lazy_regex import lazy_regex
from leporello.tools.secret_places import secret_places

PROBE_SECONDS = 10.0
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
_HOOK = "hooks/post-index-change"  # the one hook that commands run which only look: they may bring the index up to date


def bash() -> str | None:
    """The shell that commands are run by where there is one; elsewhere it is the system's `sh`."""
    return shutil.which("bash")


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
        timeout=PROBE_SECONDS,
        check=False,
    )
    return said.stdout.decode("utf-8", "surrogateescape").split("\0") if said.returncode == 0 else None


_LISTENS = 0x10000  # of a socket in the system's list: it takes connections

OBEYED = frozenset(
    """.git .hg .svn .gitconfig .ssh .envrc .profile .bashrc .bash_profile .bash_login .zshrc .zshenv .zprofile .config
    .zlogin .bash_logout .bash_aliases .husky .githooks .vscode .idea .zed .devcontainer .mcp.json .claude .cursor
    .gemini .codex .windsurf .exrc .vimrc .nvim.lua .nvimrc .dir-locals.el .gdbinit .lldbinit .tmux.conf""".split()
)
"""Names of files and folders that say which programs run: writing them needs a person, whatever the list says."""
READ_ONLY = OBEYED - {".git", ".hg", ".svn", ".config"}
"""Those of them that a command has no need to write; of a repository it is only some files."""


def sockets() -> Iterator[Path]:
    """Every named socket on which a program waits: whoever reaches one may make that program do things."""
    with suppress(OSError):
        for row in Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()[1:]:
            fields = row.split(None, 7)
            if len(fields) == 8 and int(fields[3], 16) & _LISTENS and fields[7].startswith("/"):
                yield Path(fields[7])


MOST_FOLDERS = 5_000  # folders that are looked through for repositories, the nearest first
_TEMPORARY = "/tmp"


@dataclass(frozen=True, slots=True)
class Confinement:
    """What commands may touch, and the program that sees to it."""

    writable: tuple[Path, ...]
    readable: tuple[Path, ...] = ()
    """Read-only, even below a hidden or a writable folder."""
    hidden: tuple[Path, ...] = ()
    absent: tuple[Path, ...] = ()
    """What must not come into being, since other programs obey it: it is set aside when a command has ended."""
    network: bool = True
    program: str = ""
    why_not: str = ""
    """Why commands are not confined; empty when they are."""

    def wrap(self, command: Sequence[str], folder: Path) -> list[str]:
        """The command as it is to be started."""
        if self.why_not:
            return list(command)
        if Path(self.program).name == "sandbox-exec":
            return [self.program, "-p", _profile(self), *command]
        return [self.program, *_bwrap_options(self), "--chdir", str(folder), "--", *command]


def find_confinement(
    workdir: Path, roots: Iterable[Path], readable: Iterable[Path], home: Path, env: Mapping[str, str], network: bool
) -> Confinement:
    """The sandbox this system has, tried out once. `home` is the program's own folder, which holds its keys."""
    name = "sandbox-exec" if sys.platform == "darwin" else "bwrap"
    written = [path.resolve() for path in (workdir, *roots, *_repository(workdir))]
    program = program_outside(name, partial(_is_below, written))
    if program is None:
        why_not = f"{name} is not installed (one in a folder that commands can write to is not used)"
        return Confinement((workdir,), why_not=why_not)
    secrets = secret_places({Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)}, env)
    hidden = {Path(os.path.realpath(path.expanduser())) for path in (*secrets, home)}
    # Those in the folder itself are the project's own; a fresh `/tmp` and `/run` have none.
    hidden |= {path for path in sockets() if not _is_below((*written, Path(_TEMPORARY), Path("/run")), path)}
    obeyed = {file: root for root in written for file in _obeyed(root, written) if not hidden & {file, *file.parents}}
    # A folder above such a file is a mount of its own: another could be put in its place otherwise.
    above = [up for file, root in obeyed.items() for up in file.parents if root in up.parents]
    missing = [file.with_name("commondir") for file in obeyed if file.name == "config"]
    missing += [path.resolve() / name for path in (workdir, *roots) for name in sorted(READ_ONLY)]
    wanted = Confinement(
        tuple(dict.fromkeys([*written, *above])),
        (*(path.resolve() for path in readable), *obeyed),
        tuple(hidden),
        tuple(file for file in missing if not os.path.lexists(file)),
        network,
        program,
    )
    return replace(wanted, why_not=_refusal(wanted, workdir))


def set_aside(paths: Iterable[Path]) -> Iterator[Path]:
    """Give what a command has made there a name that nobody obeys; the new ones, or the old where that failed."""
    for path in paths:
        if os.path.lexists(path):
            other = path.with_name(f"{path.name}.set-aside-{secrets.token_hex(3)}")
            with suppress(OSError):
                path.rename(other)
            yield path if os.path.lexists(path) else other


def _refusal(wanted: Confinement, folder: Path) -> str:
    try:
        tried = subprocess.run(
            wanted.wrap(["/bin/sh", "-c", ":"], folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{wanted.program} did not run: {error}"
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return (
        "" if tried.returncode == 0 else f"the system refuses: {said[0] if said else f'exit code {tried.returncode}'}"
    )


def _repository(workdir: Path) -> list[Path]:
    """Git's own folder, which commits write to."""
    entry = next((folder / ".git" for folder in (workdir, *workdir.parents) if (folder / ".git").exists()), None)
    if entry is None:
        return []
    if entry.is_file():
        # A work tree: `gitdir: <repository>/.git/worktrees/<name>`.
        with suppress(OSError, UnicodeDecodeError):
            entry = (entry.parent / entry.read_text().partition(":")[2].strip()).parent.parent
    return [entry] if (entry / "HEAD").is_file() else []


def _is_below(folders: Iterable[Path], path: Path) -> bool:
    return any(path.resolve().is_relative_to(folder) for folder in folders)


def _obeyed(root: Path, written: Sequence[Path]) -> Iterator[Path]:
    """The files in a folder that name programs which the user's own git, shell or editor would run."""
    waiting = deque([root])
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        folder = waiting.popleft()
        with suppress(OSError):
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in os.scandir(folder)}
            own = "HEAD" in found and ({"objects", "refs"} <= found.keys() or "commondir" in found)
            if own:
                yield from _of_git(folder, root, written)
            if found.get(".git") is False:
                yield folder / ".git"
            if found.get(".hg") and (folder / ".hg/hgrc").is_file():
                yield folder / ".hg/hgrc"
            names = READ_ONLY & found.keys()
            yield from (folder / name for name in names if not (folder / name).is_symlink())
            inside = {name for name, is_folder in found.items() if is_folder} - names
            waiting += (folder / name for name in (inside & {"modules", "worktrees"} if own else inside))


def _of_git(folder: Path, root: Path, written: Sequence[Path]) -> Iterator[Path]:
    """Settings and hooks of one repository. Where its hooks would be a folder is made, so that no command makes it."""
    yield from (path for name in ("config", "config.worktree", "commondir") if (path := folder / name).is_file())
    if (folder / "commondir").is_file():
        return
    is_tree = folder.name == ".git"
    for path in {folder / "hooks", *([hooks_folder(folder.parent, partial(_is_below, written))] if is_tree else [])}:
        place = path.resolve()
        if root in place.parents:
            place.mkdir(parents=True, exist_ok=True)
            yield place


def _bwrap_options(wanted: Confinement) -> list[str]:
    options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Root could otherwise set values of the running kernel there.
    for kernel in ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"):
        options += ["--ro-bind-try", kernel, kernel]
    options += ["--tmpfs", _TEMPORARY, "--setenv", "TMPDIR", _TEMPORARY]
    # Sockets of other services lie there; names are looked up through one of the folders.
    options += ["--tmpfs", "/run", "--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
    mounts: dict[Path, list[str]] = {path: _hide(path) for path in wanted.hidden if os.path.exists(path)}
    mounts |= {path: ["--bind-try", str(path), str(path)] for path in wanted.writable}
    mounts |= {path: ["--ro-bind-try", str(path), str(path)] for path in wanted.readable}
    # A folder before what lies in it: the nearest of them decides.
    for path in sorted(mounts, key=lambda path: len(path.parts)):
        options += mounts[path]
    options += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"]
    return options if wanted.network else [*options, "--unshare-net"]


def _hide(path: Path) -> list[str]:
    return ["--tmpfs", str(path)] if path.is_dir() else ["--dev-bind", "/dev/null", str(path)]


def _profile(wanted: Confinement) -> str:
    """Rules for `sandbox-exec`; the last one that fits counts. Written from its manual, not run by our tests."""

    def places(paths: Iterable[Path]) -> str:
        return " ".join(f"(subpath {json.dumps(str(path), ensure_ascii=False)})" for path in paths)

    temporary = (Path("/private/tmp"), Path("/private/var/folders"), Path("/dev"))
    rules = ["(version 1)", "(allow default)", "(deny file-write*)", f"(allow file-write* {places(temporary)})"]
    if wanted.hidden:
        rules.append(f"(deny file-read* file-write* {places(wanted.hidden)})")
    rules.append(f"(allow file-read* file-write* {places(wanted.writable)})")
    if wanted.readable:
        rules += [f"(deny file-write* {places(wanted.readable)})", f"(allow file-read* {places(wanted.readable)})"]
    if wanted.absent:
        rules.append(f"(deny file-write* {places(wanted.absent)})")
    if not wanted.network:
        rules.append("(deny network*)")
    return "\n".join(rules)
