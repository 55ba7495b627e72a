"""`todo` and `memory`: small files that are never half-written and never grow without bound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.tools.notes import CAPS, change_notes, load_todo, split_notes


def test_the_list_is_written_whole_and_read_back(workshop: Any) -> None:
    assert workshop.text("todo") == "(the list is empty)"
    items = [{"content": "read", "status": "done"}, {"content": "write", "status": "in_progress"}, {"content": "test"}]
    assert workshop.text("todo", items=items) == "[x] read\n[>] write\n[ ] test"
    assert workshop.text("todo") == "[x] read\n[>] write\n[ ] test"
    assert [item.content for item in load_todo(workshop.context.outputs)] == ["read", "write", "test"]
    assert workshop.text("todo", items=[]) == "(the list is empty)"


@pytest.mark.parametrize(
    "items",
    [[{"content": ""}], [{"content": "x", "status": "maybe"}], [{"status": "done"}], "x", [{"content": "x", "id": 1}]],
)
def test_a_list_that_is_none_changes_nothing(workshop: Any, items: Any) -> None:
    workshop.text("todo", items=[{"content": "keep"}])
    workshop.error("todo", items=items)
    assert workshop.text("todo") == "[ ] keep"


def test_a_damaged_list_is_said(workshop: Any) -> None:
    workshop.text("todo", items=[{"content": "x"}])
    (workshop.context.outputs / "todo.json").write_text("{")
    assert "send the whole list again" in workshop.error("todo")
    assert workshop.text("todo", items=[{"content": "y"}]) == "[ ] y"


def test_notes_are_added_replaced_and_removed(workshop: Any) -> None:
    workshop.text("memory", action="add", text="The build needs Node 22.")
    workshop.text("memory", action="add", text="Tests run with make test.")
    workshop.text("memory", action="add", target="user", text="Prefers short answers.")
    workshop.text("memory", action="replace", old="Node 22", text="The build needs Node 24.")
    assert workshop.text("memory", action="view") == "- The build needs Node 24.\n- Tests run with make test.\n"
    workshop.text("memory", action="remove", old="make test")
    assert (workshop.root / "memory" / "MEMORY.md").read_text() == "- The build needs Node 24.\n"
    assert (workshop.root / "memory" / "USER.md").read_text() == "- Prefers short answers.\n"


def test_a_file_edited_by_hand_keeps_its_shape(workshop: Any) -> None:
    path = workshop.root / "memory" / "MEMORY.md"
    path.parent.mkdir()
    path.write_text("# Project\n\nWritten by hand,\non two lines.\n\n- one\n  more of one\n- last\n")
    workshop.text("memory", action="remove", old="last")
    workshop.error("memory", action="remove", old="nothing like this")
    workshop.text("memory", action="replace", old="two lines", text="By the agent.")
    assert path.read_text() == "# Project\n\n- By the agent.\n- one\n  more of one\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"action": "add"}, "text is empty"),
        ({"action": "add", "text": "one"}, "already there"),
        ({"action": "add", "text": "a\x00b"}, "can't be seen"),
        ({"action": "add", "text": "ab\u202ec"}, "can't be seen"),
        ({"action": "add", "text": "the key is [REDACTED]"}, "stands for text"),
        ({"action": "replace", "text": "x"}, "needs old"),
        ({"action": "remove", "old": "o"}, "2 notes contain"),
        ({"action": "remove", "old": "zzz"}, "no note contains"),
        ({"action": "forget"}, "invalid enum value"),
    ],
)
def test_what_does_not_fit_is_said_and_changes_nothing(workshop: Any, arguments: dict[str, Any], words: str) -> None:
    workshop.text("memory", action="add", text="one")
    workshop.text("memory", action="add", text="two")
    assert words in workshop.error("memory", **arguments)
    assert workshop.text("memory", action="view") == "- one\n- two\n"


def test_a_full_file_takes_no_more_but_can_be_shortened(workshop: Any) -> None:
    for n in range(7):
        workshop.text("memory", action="add", text=f"{n} " + "x" * 1_100)
    assert "may hold 8,000 characters" in workshop.error("memory", action="add", text="y" * 1_100)
    workshop.text("memory", action="remove", old="3 x")
    workshop.text("memory", action="add", text="y" * 1_100)
    assert len((workshop.root / "memory" / "MEMORY.md").read_text()) <= CAPS["memory"]


ADD_MANY = """
import json, sys
from pathlib import Path
from leporello.messages import ToolCall
from leporello.tools.approval import ApprovalMode, PolicyApprover
from leporello.tools.base import ToolContext
from leporello.tools.notes import memory_tool
from leporello.tools.toolbox import Toolbox
folder = Path(sys.argv[1])
box = Toolbox([memory_tool(folder)])
context = ToolContext(folder, folder, PolicyApprover(ApprovalMode.AUTO))
for n in range(25):
    box.run(ToolCall("c", "memory", json.dumps({"action": "add", "text": f"note {sys.argv[2]} {n}"}), 0), context)
"""


def test_notes_of_several_processes_at_once_all_arrive(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", ADD_MANY, str(tmp_path), str(k)]) for k in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    notes = (tmp_path / "MEMORY.md").read_text().splitlines()
    assert sorted(notes) == sorted(f"- note {k} {n}" for k in range(3) for n in range(25))


WORDS = st.lists(st.text("abcxyz.,-#", min_size=1, max_size=8).map("w".__add__), min_size=1, max_size=4)


@given(st.lists(st.lists(WORDS.map(" ".join), min_size=1, max_size=2).map("\n".join), max_size=6, unique=True))
def test_notes_come_back_one_by_one(texts: list[str]) -> None:
    file = ""
    for text in texts:
        file = change_notes(file, "add", text, "")
    assert _texts(file) == texts
    for text in texts:
        if sum(text in other for other in texts) == 1:
            assert text not in _texts(change_notes(file, "remove", "", text))


def _texts(file: str) -> list[str]:
    return [note.removeprefix("- ").replace("\n  ", "\n") for note in split_notes(file)]
