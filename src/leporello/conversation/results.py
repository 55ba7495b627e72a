"""What a tool result that an agent author hands in belongs to: its call, and what its turn has shown so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.messages import Messages, ToolCall, calls_of, text_of
from leporello.tools.base import ToolResult
from leporello.tools.confine import is_within, real
from leporello.turns import open_group

_LONGEST_PATH = 4_096


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for its result, and the turn it is part of."""

    call: ToolCall
    used: int = 0
    """Characters of the turn's results so far."""
    others: int = 0
    """Further calls of the turn that wait too."""

    def result(self, output: str, saved: Path) -> ToolResult:
        """The output as a result; one that comes from reading a file in the folder `saved` is never saved again."""
        path = next((text for text in _texts(self.call.parsed()) if _lies_in(text, saved)), "")
        return ToolResult(output, details={"path": path} if path else {}, exempt=bool(path))


def waiting_call(messages: Messages, call_id: str) -> Waiting:
    """The first call of the last turn with this id that has no result; without one, a call nobody knows."""
    group = open_group(messages)
    if group is None:
        return Waiting(ToolCall(call_id, "", "", 0))
    calls = calls_of(messages[group.start])
    open_calls = [calls[k] for k in group.unanswered]
    found = next((call for call in open_calls if call.id == call_id), None)
    used = sum(len(text_of(messages[index])) for index in range(group.start + 1, group.stop))
    return Waiting(found or ToolCall(call_id, "", "", 0), used, len(open_calls) - (found is not None))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _lies_in(text: str, folder: Path) -> bool:
    if not text or len(text) > _LONGEST_PATH or "\0" in text:
        return False
    return is_within(real(Path(text)), folder)
