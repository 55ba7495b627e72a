"""`memory`: notes that outlive the conversation, in two small files a person can edit.

MEMORY.md holds what the agent learned about the work, USER.md what it learned about the user. Both go into the system
prompt of later sessions, so they are capped, and a note is one bullet. The prompt of the running session does not
change when a note does: it is rebuilt at the next compression.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from leporello.errors import ToolError
from leporello.tools.base import Tool, ToolContext, ToolResult
from leporello.tools.files import write_atomically
from leporello.tools.marks import refuse_marks
from leporello.tools.schema import tool_from

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
CAPS = {"memory": 8_000, "user": 4_000}
"""Characters. Together about 3,000 tokens of every request."""
_ITEM = re.compile(r"[-*+#] ?|\d+\. ")
_BLANK_LINES = re.compile(r"\n\s*\n")
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ud800-\udfff]")


def memory_tool(folder: Path) -> Tool:
    """The tool, writing into `folder`."""

    def memory(
        context: ToolContext,
        action: Literal["add", "replace", "remove", "view"],
        target: Literal["memory", "user"] = "memory",
        text: str = "",
        old: str = "",
    ) -> ToolResult:
        """Keep short notes for later sessions: facts about the work (memory) or about the user (user).

        Note what will still matter next week, in one or two sentences. No secrets, no progress of the present task.

        Args:
            action: What to do; replace and remove act on the one note that contains old.
            target: memory for the work, user for the user.
            text: The note, for add and replace.
            old: Words that occur in exactly one note, for replace and remove.
        """
        path = folder / FILES[target]
        if action == "view":
            return ToolResult(_read(path) or "(no notes)")
        with _locked(folder):
            before = _read(path)
            after = change_notes(before, action, text, old)
            if len(after) > CAPS[target] and len(after) > len(before):
                raise ToolError(
                    f"{FILES[target]} may hold {CAPS[target]:,} characters and would have {len(after):,}. "
                    "Shorten, merge or remove notes first."
                )
            write_atomically(path, after.encode(), private=True)
        text = f"{FILES[target]} saved ({len(after):,} of {CAPS[target]:,} characters). Later sessions start with it."
        return ToolResult(text, details={"path": str(path), "changed": before != after})

    return tool_from(memory, name="memory")


def change_notes(before: str, action: str, text: str, old: str) -> str:
    """The file's new content."""
    notes = split_notes(before)
    if action in ("add", "replace"):
        text = _clean(text)
    if action == "add":
        if any(_body(note) == text for note in notes):
            raise ToolError("this note is already there.")
        return _join([*notes, _bullet(text)])
    if not old.strip():
        raise ToolError(f"{action} needs old: words of the note that is meant.")
    matching = [k for k, note in enumerate(notes) if old in note or old in _body(note)]
    if len(matching) != 1:
        found = "no note contains" if not matching else f"{len(matching)} notes contain"
        raise ToolError(f"{found} {old!r}. The notes are:\n{before.strip() or '(none)'}")
    kept = list(notes)
    kept[matching[0] : matching[0] + 1] = [_bullet(text)] if action == "replace" else []
    return _join(kept)


def split_notes(text: str) -> list[str]:
    """The blocks of a notes file: bullets with their indented lines, headings, paragraphs."""
    blocks: list[str] = []
    open_block = False
    for line in text.splitlines():
        if not line.strip():
            open_block = False
        elif open_block and not _ITEM.match(line):
            blocks[-1] += "\n" + line
        else:
            blocks.append(line)
            open_block = not line.startswith("#")
    return blocks


def _join(blocks: list[str]) -> str:
    """Bullets close together, everything else with a blank line before it."""
    text = ""
    for block in blocks:
        if text and not (block.startswith("- ") and text.rpartition("\n\n")[2].lstrip().startswith("- ")):
            text += "\n"
        text += block + "\n"
    return text


def _clean(text: str) -> str:
    text = text.strip()
    if not text:
        raise ToolError("text is empty.")
    if _HIDDEN.search(text):
        raise ToolError("the note contains characters that can't be seen; write it in plain text.")
    refuse_marks(text, where="a note")
    return _BLANK_LINES.sub("\n", text)


def _bullet(text: str) -> str:
    return "- " + text.replace("\n", "\n  ")


def _body(note: str) -> str:
    return note.removeprefix("- ").replace("\n  ", "\n")


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time, over all processes: a note must not vanish because two sessions write at once."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
