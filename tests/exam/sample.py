"""A small session with one of everything that can be asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leporello.messages import Message


def group(call_id: str, said: str, command: str, output: str) -> list[Message]:
    """An answer with one call, and its result."""
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": said, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": output},
    ]


def session() -> list[Message]:
    """About thirty messages of a day's work."""
    filler = [
        message
        for number in range(6)
        for message in group(
            f"f{number}", f"Looking at part {number}.", f"cat part{number}.txt", f"plain words {number}\n" * 40
        )
    ]
    return [
        {"role": "system", "content": "You help with code."},
        {"role": "user", "content": "The parser drops the last row. Please never touch the generated files."},
        *group("a", "Running the tests.", "pytest -q", "ValueError: row 17 has no end\n3 failed, 41 passed in 2.31s"),
        *filler[:6],
        *group("b", "Searching.", "grep -rn flush src", "src/parser/reader.py:88:    self.flush_rows()"),
        {
            "role": "assistant",
            "content": "I keep the buffer in the reader because the writer is shared by two threads.",
        },
        {"role": "user", "content": "Good. You must use tabs in the Makefile. Then commit it."},
        *group(
            "c",
            "Committing.",
            "git commit -am fix",
            "[main 4f2a9c1] Flush the last row at end of file",
        ),
        *filler[6:],
        {"role": "user", "content": "Now write the release notes for this change."},
        {"role": "assistant", "content": "Done."},
    ]


def long_day() -> list[Message]:
    """The same session and so much reading behind it that any small window folds all but its beginning."""
    read = [
        (f"l{page}", f"Reading page {page}.", f"cat page{page}.txt", f"page {page}, a line\n" * 40)
        for page in range(40)
    ]
    return [*session()[:-2], *(message for one in read for message in group(*one))]


def write_session(folder: Path, messages: list[Message] | None = None) -> Path:
    """The session as a file of OpenAI messages."""
    path = folder / "day.json"
    path.write_text(json.dumps(messages if messages is not None else session()), "utf-8")
    return path


QUESTIONS: list[dict[str, Any]] = [
    {"id": "q1", "kind": "rule", "question": "Which files are off limits?", "gold": "never touch the generated files"},
    {"id": "q2", "kind": "error", "question": "Which row broke the parser?", "gold": "row 17 has no end"},
    {"id": "q3", "kind": "identifier", "question": "Which commit flushes the last row?", "gold": "4f2a9c1"},
    {"id": "q4", "kind": "path", "question": "Where is flush_rows called?", "gold": "src/parser/reader.py:88"},
]


def write_bank(folder: Path, questions: list[dict[str, Any]] | None = None) -> Path:
    """A bank over that session."""
    path = folder / "bank.json"
    path.write_text(json.dumps({"session": "day.json", "questions": questions or QUESTIONS}), "utf-8")
    return path
