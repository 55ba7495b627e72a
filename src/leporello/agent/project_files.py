"""Files that tell an agent how to work: a project's instruction files, and skills."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from leporello.tools.marks import cut_mark

PROJECT_FILES = ("AGENTS.md", "CLAUDE.md", ".cursorrules", ".github/copilot-instructions.md")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_TITLE_CHARS = 80
_SUMMARY_CHARS = 160
_SKILL_BYTES = 8_192


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """One instruction file, possibly cut."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill file: what it is called, what it is for, and where it is."""

    title: str
    summary: str
    path: Path


def repository_root(workdir: Path) -> Path | None:
    """The folder with .git that holds the working directory."""
    return next((folder for folder in (workdir, *workdir.parents) if (folder / ".git").exists()), None)


def project_files(workdir: Path, chars: int) -> list[ProjectFile]:
    """Instruction files from the repository's root down to the working directory, `chars` at most together.

    The same text is taken once (one file is often a link to the other). A link that leads out of the project is left
    out: a repository must not be able to pull a private file into the prompt.
    """
    workdir = Path(os.path.realpath(workdir))
    root = repository_root(workdir) or workdir
    found: list[ProjectFile] = []
    seen: set[str] = set()
    for path in _candidates(root, workdir):
        if not Path(os.path.realpath(path)).is_relative_to(root):
            continue
        text = read_capped(path, chars // 2)
        if text and text not in seen:
            seen.add(text)
            found.append(ProjectFile(path, text))
    return _fit(found, chars)


def _candidates(root: Path, workdir: Path) -> Iterator[Path]:
    folders = [root]
    for part in workdir.relative_to(root).parts:
        folders.append(folders[-1] / part)
    for folder in folders:
        for name in PROJECT_FILES:
            if (folder / name).is_file():
                yield folder / name


def _fit(files: Sequence[ProjectFile], chars: int) -> list[ProjectFile]:
    """Deeper files are about the work at hand, so they are the last to be left out."""
    kept: list[ProjectFile] = []
    for file in reversed(files):
        text = file.text
        if len(text) > chars:
            text = cut_mark(f"left out for its length; it is in {file.path}")
        chars -= len(text)
        kept.append(ProjectFile(file.path, text))
    return kept[::-1]


def read_capped(path: Path, chars: int) -> str:
    """A text file without blanks around it, cut visibly at `chars`; empty when there is none."""
    try:
        with path.open("rb") as file:
            # A character has at most four bytes; one byte more tells that something is left.
            data = file.read(4 * chars + 1)
            more = bool(file.read(1))
    except OSError:
        return ""
    text = data.decode("utf-8-sig", "replace").strip()
    if len(text) <= chars and not more:
        return text
    return text[:chars].rstrip() + "\n" + cut_mark(f"the file goes on; read the rest in {path}")


def skills(folders: Sequence[Path]) -> list[Skill]:
    """All skills, by folder and name."""
    return [skill for folder in folders for path in sorted(folder.glob("*.md")) if (skill := _skill(path)) is not None]


def _skill(path: Path) -> Skill | None:
    text = read_capped(path, _SKILL_BYTES)
    if not text:
        return None
    front = _front_matter(text)
    body = _FRONT_MATTER.sub("", text)
    heading = _HEADING.search(body)
    title = front.get("title") or front.get("name") or (heading[1] if heading else path.stem)
    plain = [line.strip() for line in body.splitlines() if line.strip() and not line.startswith("#")]
    summary = front.get("description") or (plain[0] if plain else "")
    return Skill(_one_line(title, _TITLE_CHARS), _one_line(summary, _SUMMARY_CHARS), path)


def _front_matter(text: str) -> dict[str, str]:
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}
    try:
        data = yaml.safe_load(match[1])
    except yaml.YAMLError:
        return {}
    return {str(key): str(value) for key, value in data.items()} if isinstance(data, dict) else {}


def _one_line(text: str, chars: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= chars else text[: chars - 1].rstrip() + "…"
