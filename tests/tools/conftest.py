"""A working directory with tools in it, as the tests of the tools need it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from leporello.messages import ToolCall
from leporello.tools.approval import ApprovalMode, PolicyApprover
from leporello.tools.base import ToolContext, ToolResult
from leporello.tools.terminal import BackgroundJobs
from leporello.tools.toolbox import Toolbox, builtin_toolbox


@dataclass
class Workshop:
    """Real tools over a real folder; everything is allowed unless a test says otherwise."""

    root: Path
    context: ToolContext
    box: Toolbox
    jobs: BackgroundJobs
    shown: list[str] = field(default_factory=list)

    @property
    def workdir(self) -> Path:
        return self.context.workdir

    def run(self, tool: str, **arguments: Any) -> ToolResult:
        return self.box.run(call(tool, **arguments), self.context)

    def text(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must succeed."""
        result = self.run(tool, **arguments)
        assert not result.is_error, result.text
        return result.text

    def error(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must fail."""
        result = self.run(tool, **arguments)
        assert result.is_error, result.text
        return result.text

    def with_context(self, **changes: Any) -> Workshop:
        return replace(self, context=replace(self.context, **changes))

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.workdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def call(tool: str, call_id: str = "call_1", **arguments: Any) -> ToolCall:
    return ToolCall(call_id, tool, json.dumps(arguments), 0)


def make_workshop(root: Path, jobs: BackgroundJobs) -> Workshop:
    workdir = root / "work"
    workdir.mkdir(parents=True)
    shown: list[str] = []
    context = ToolContext(workdir, root / "outputs" / "c1", PolicyApprover(ApprovalMode.AUTO), emit=shown.append)
    return Workshop(root, context, builtin_toolbox(root / "memory", jobs), jobs, shown)


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    with closing(BackgroundJobs()) as jobs:
        yield make_workshop(tmp_path, jobs)
