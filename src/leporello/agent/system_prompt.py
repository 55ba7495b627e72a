"""What stands before a conversation in a request, and the messages of one request put together."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct

from leporello.files import shipped
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, Messages, hash_bytes, role_of
from leporello.recall.tools import framed
from leporello.tools.budget import cut_mark
from leporello.tools.notes import CAPS, FILES
from leporello.tools.toolbox import SMALL_WINDOW

PROJECT_FILES = ("AGENTS.md", "CLAUDE.md", ".cursorrules", ".github/copilot-instructions.md")
_FRONT_MATTER = lazy_regex(r"\A---\n(.*?)\n---\n", re.DOTALL)
_HEADING = lazy_regex(r"^#+ +(.+)$", re.MULTILINE)
_TITLE_CHARS = 80
_SUMMARY_CHARS = 160
_SKILL_BYTES = 8_192


class ProjectFile(Struct, frozen=True):
    """One instruction file, possibly cut."""

    path: Path
    text: str


class Skill(Struct, frozen=True):
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


def _candidates(root: Path, workdir: Path) -> list[Path]:
    folders = [folder for folder in reversed((workdir, *workdir.parents)) if folder.is_relative_to(root)]
    return [folder / name for folder in folders for name in PROJECT_FILES if (folder / name).is_file()]


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
    # Loaded for skills that are there.
    import yaml  # noqa: PLC0415

    try:
        data = yaml.safe_load(match[1])
    except yaml.YAMLError:
        return {}
    return {str(key): str(value) for key, value in data.items()} if isinstance(data, dict) else {}


def _one_line(text: str, chars: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= chars else text[: chars - 1].rstrip() + "…"


PROJECT_CHARS = 40_000
SKILL_CHARS = 4_000
_GUIDES = (("todo", "todo"), ("lcm_grep", "recall"), ("memory", "remember"))
"""Tool, and the section that is only worth its tokens when the tool can be called."""


class PromptSources(Struct, frozen=True):
    """Everything the prompt is made of. The same sources give the same bytes."""

    workdir: Path
    memory: Path
    """Folder of MEMORY.md and USER.md."""
    today: date
    """The day the session begins; there is no time of day in a prompt."""
    tools: tuple[str, ...] = ()
    skills: tuple[Path, ...] = ()
    window: int = 0
    """Tokens; small windows get a shorter prompt. 0 is unknown."""
    instructions: str = ""
    """More from the host or the user, taken as it is."""


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """A built prompt. `as_dict` goes into the session, so that a resumed one sends the same bytes."""

    text: str
    note: str = ""
    """The remark about compression; empty before the first."""
    memory_hash: str = ""
    """Of the notes it was built with."""

    def message(self) -> Message:
        """The system message. The note is a block of its own: a cache breakpoint can stand before it."""
        if not self.note:
            return {"role": "system", "content": self.text}
        blocks = [{"type": "text", "text": self.text}, {"type": "text", "text": self.note}]
        return {"role": "system", "content": blocks}

    def after_compression(self, sources: PromptSources) -> SystemPrompt:
        """The prompt of the next session in the chain: noted, and rebuilt only if a memory file changed."""
        fresh = self if memory_hash(sources.memory) == self.memory_hash else build_system_prompt(sources)
        return replace(fresh, note=_prompt("compression"))

    def as_dict(self) -> dict[str, Any]:
        return {"text": self.text, "note": self.note, "memory_hash": self.memory_hash}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SystemPrompt:
        return cls(str(data["text"]), str(data.get("note", "")), str(data.get("memory_hash", "")))


def build_system_prompt(sources: PromptSources) -> SystemPrompt:
    # The hash first: a note that is written in between makes the next compression rebuild, not miss it.
    notes = memory_hash(sources.memory)
    small = 0 < sources.window < SMALL_WINDOW
    opening = "small" if small else "base"
    parts = [_prompt(opening if sources.tools else "talk")]
    if not small:
        parts += [_prompt(guide) for tool, guide in _GUIDES if tool in sources.tools]
    parts += [sources.instructions.strip(), _skills(sources), _project(sources)]
    parts += [_memory(sources), _environment(sources)]
    return SystemPrompt("\n\n".join(part for part in parts if part), memory_hash=notes)


def memory_hash(folder: Path) -> str:
    """Changes exactly when a memory file does."""
    contents = []
    for name in FILES.values():
        try:
            contents.append((folder / name).read_bytes())
        except OSError:
            contents.append(b"")
    return hash_bytes(b"\x00".join(hash_bytes(content).encode() for content in contents))


def _prompt(name: str) -> str:
    return shipped("leporello.agent", f"prompts/{name}.md").decode().strip()


def _share(sources: PromptSources, most: int, part: int) -> int:
    """Characters for a section: `most`, or a part of a character per token of a small window."""
    return min(most, sources.window // part) if sources.window else most


def _skills(sources: PromptSources) -> str:
    reader = next((name for name in ("read_file", "terminal") if name in sources.tools), "")
    room = _share(sources, SKILL_CHARS, 8)
    rows: list[str] = []
    found = skills(sources.skills) if reader else []
    for skill in found:
        load = f'read_file(path="{skill.path}")' if reader == "read_file" else f"cat {skill.path}"
        row = f"- {skill.title}: {skill.summary} Load: {load}" if skill.summary else f"- {skill.title}. Load: {load}"
        if len(row) > room:
            rows.append(cut_mark(f"{len(found) - len(rows)} more skills in the same folders"))
            break
        room -= len(row)
        rows.append(row)
    return "\n".join([_prompt("skills"), "", *rows]) if rows else ""


def _project(sources: PromptSources) -> str:
    files = project_files(sources.workdir, _share(sources, PROJECT_CHARS, 4))
    if not files:
        return ""
    return "\n\n".join([_prompt("project"), *(f"## {file.path}\n\n{file.text}" for file in files)])


def _memory(sources: PromptSources) -> str:
    headings = {"memory": "## The work (MEMORY.md)", "user": "## The user (USER.md)"}
    parts = []
    for kind, name in FILES.items():
        # Twice what the tool writes: a person may have added more by hand.
        text = read_capped(sources.memory / name, _share(sources, 2 * CAPS[kind], 8))
        if text:
            parts.append(f"{headings[kind]}\n\n{text}")
    return "\n\n".join([_prompt("memory"), *parts]) if parts else ""


def _environment(sources: PromptSources) -> str:
    root = repository_root(sources.workdir)
    return (
        f"# Environment\n\n- Working directory: {sources.workdir}\n- Git repository: {root or 'none'}\n"
        f"- System: {platform.system()} {platform.machine()}\n- Day this session began: {sources.today.isoformat()}"
    )


def api_messages(system: SystemPrompt | None, messages: Messages, recalled: str = "") -> list[Message]:
    """What is sent: a list made anew for each request. Neither the messages nor the list itself are changed.

    Recalled text stands at the very end, behind everything that will be sent again: so the next request, without it,
    still begins with the same bytes.
    """
    sent = [] if system is None else [system.message()]
    sent.extend(messages)
    if not recalled.strip():
        return sent
    block = {"type": "text", "text": framed(recalled)}
    if messages and role_of(messages[-1]) == "user":
        sent[-1] = {**messages[-1], "content": [*_as_blocks(messages[-1].get("content")), block]}
    else:
        sent.append({"role": "user", "content": [block]})
    return sent


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
