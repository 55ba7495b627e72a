"""The system prompt: instruction files, skills and memory, built once per session, then the same bytes in every request."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any

from leporello.agent.project_files import project_files, read_capped, repository_root, skills
from leporello.messages import Message, hash_bytes
from leporello.tools.marks import cut_mark
from leporello.tools.memory import CAPS, FILES
from leporello.tools.toolbox import SMALL_WINDOW

PROJECT_CHARS = 40_000
SKILL_CHARS = 4_000
_GUIDES = (("todo", "todo"), ("lcm_grep", "recall"), ("memory", "remember"))
"""Tool, and the section that is only worth its tokens when the tool can be called."""


@dataclass(frozen=True, slots=True)
class PromptSources:
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
        """For storing."""
        return {"text": self.text, "note": self.note, "memory_hash": self.memory_hash}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SystemPrompt:
        """As it was stored."""
        return cls(str(data["text"]), str(data.get("note", "")), str(data.get("memory_hash", "")))


def build_system_prompt(sources: PromptSources) -> SystemPrompt:
    """Read all sources and put the prompt together."""
    # The hash first: a note that is written in between makes the next compression rebuild, not miss it.
    notes = memory_hash(sources.memory)
    small = 0 < sources.window < SMALL_WINDOW
    opening = "small" if small else "base"
    parts = [_prompt(opening if sources.tools else "talk")]
    if not small:
        parts += [_prompt(guide) for tool, guide in _GUIDES if tool in sources.tools]
    sections: tuple[Callable[[PromptSources], str], ...] = (
        lambda given: given.instructions.strip(),
        _skills,
        _project,
        _memory,
        _environment,
    )
    parts += [section(sources) for section in sections]
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
    return (resources.files("leporello.agent") / "prompts" / f"{name}.md").read_text("utf-8").strip()


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
    rows = [
        "# Environment",
        "",
        f"- Working directory: {sources.workdir}",
        f"- Git repository: {root if root else 'none'}",
        f"- System: {platform.system()} {platform.machine()}",
        f"- Day this session began: {sources.today.isoformat()}",
    ]
    return "\n".join(rows)
