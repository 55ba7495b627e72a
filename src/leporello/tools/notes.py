"""`memory` and `todo`: notes that outlive the conversation, and the list of steps for the present task."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from leporello.errors import ToolError
from leporello.lazy_regex import lazy_regex
from leporello.tools.base import Tool, ToolContext, ToolResult
from leporello.tools.budget import refuse_marks
from leporello.tools.sandbox import write_atomically
from leporello.tools.schema import tool_from

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
CAPS = {"memory": 8_000, "user": 4_000}  # characters. Together about 3,000 tokens of every request.
_ITEM = lazy_regex(r"[-*+#] ?|\d+\. ")
_BLANK_LINES = lazy_regex(r"\n\s*\n")
_HIDDEN = lazy_regex(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ud800-\udfff]")


def memory_tool(folder: Path) -> Tool:
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


TODO_FILE = "todo.json"
_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]", "cancelled": "[-]"}


class TodoItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    content: Annotated[str, Meta(description="What is to be done.", min_length=1, max_length=1_000)]
    status: Annotated[
        Literal["pending", "in_progress", "done", "cancelled"], Meta(description="How far it has got.")
    ] = "pending"


def todo(context: ToolContext, items: Annotated[list[TodoItem], Meta(max_length=200)] | None = None) -> ToolResult:
    """Keep the list of steps for a task of several steps. Send the whole list each time; without items it is shown.

    Args:
        items: All steps in order, finished ones included. An empty list clears it.
    """
    path = context.outputs / TODO_FILE
    if items is None:
        items = load_todo(context.outputs)
    else:
        for item in items:
            refuse_marks(item.content, where="the todo list")
        write_atomically(path, msgspec.json.encode(items), private=True)
    counts = {status: sum(item.status == status for item in items) for status in _SIGNS}
    return ToolResult(render_todo(items), details=counts)


def load_todo(outputs: Path) -> list[TodoItem]:
    """The list as it was last written; empty when there is none."""
    try:
        return msgspec.json.decode((outputs / TODO_FILE).read_bytes(), type=list[TodoItem])
    except FileNotFoundError:
        return []
    except msgspec.MsgspecError as error:
        raise ToolError(f"the todo list can't be read ({error}); send the whole list again.") from None


def render_todo(items: list[TodoItem]) -> str:
    return "\n".join(f"{_SIGNS[item.status]} {item.content}" for item in items) or "(the list is empty)"


TODO: Tool = tool_from(todo)
