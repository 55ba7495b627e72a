"""`todo`: the list of steps for the present task, kept in the conversation's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from leporello.errors import ToolError
from leporello.tools.base import Tool, ToolContext, ToolResult
from leporello.tools.files import write_atomically
from leporello.tools.marks import refuse_marks
from leporello.tools.schema import tool_from

TODO_FILE = "todo.json"
_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]", "cancelled": "[-]"}


class TodoItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step."""

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
    """The list as text."""
    return "\n".join(f"{_SIGNS[item.status]} {item.content}" for item in items) or "(the list is empty)"


TODO: Tool = tool_from(todo)
