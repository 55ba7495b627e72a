"""The built-in tools, put together for one conversation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from leporello.tools.base import Tool
from leporello.tools.jobs import Jobs, jobs_tool
from leporello.tools.memory import memory_tool
from leporello.tools.patch import PATCH
from leporello.tools.read_file import READ_FILE
from leporello.tools.search_files import ripgrep, search_tool
from leporello.tools.terminal import terminal_tool
from leporello.tools.todo import TODO
from leporello.tools.toolbox import Toolbox
from leporello.tools.write_file import WRITE_FILE


def builtin_toolbox(memory: Path, jobs: Jobs, more: Iterable[Tool] = ()) -> Toolbox:
    """All built-in tools, then `more` (recall, the engine's own, plugins). `memory` is the folder of the notes."""
    return Toolbox(
        (
            READ_FILE,
            WRITE_FILE,
            PATCH,
            search_tool(ripgrep()),
            terminal_tool(jobs),
            jobs_tool(jobs),
            TODO,
            memory_tool(memory),
            *more,
        )
    )
